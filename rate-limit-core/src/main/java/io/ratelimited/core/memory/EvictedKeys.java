package io.ratelimited.core.memory;

import io.ratelimited.core.memory.block.SaltedHash;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The spent permits of evicted keys, in fixed memory: a count-min sketch with conservative update (Estan and Varghese,
 * 2002), of cells instead of counters. Each key has one cell in each row.
 *
 * <ul>
 *   <li>E1 All cells of a key {@link Cell#covers cover} the permits that the key had spent when it was evicted.
 *   <li>E2 The key continues with the least spent of them. It covers the key's own spending (E1), so no key is
 *       ever admitted above its limit; it is above it only if other keys have raised every cell of the key.
 *   <li>E3 An evicted key raises only those of its cells that do not cover it, and none above the larger of the two. So
 *       keys that share a cell do not add up, unless they share all their cells with others.
 * </ul>
 *
 * The rows are cut into blocks, and the cells of one key stand side by side in one block, which the processor fetches at
 * once. A cell belongs to its block alone and is used under the lock of the block. Thread-safe.
 */
final class EvictedKeys {

    private static final int ROWS = 3;
    /** A block has thirty references, which are two cache lines of a processor. Smaller blocks differ more in their load. */
    private static final int CELLS_OF_A_ROW = 10;

    private static final int MIN_CELLS = 8192;
    private static final int MAX_CELLS = 1 << 24;
    private static final int LOCKS = 64;

    private final SaltedHash hash;
    private final @Nullable Cell[] cells;
    private final int blocks;
    /** Cells of one row in one block. */
    private final int width;

    private final Object[] locks = Stream.generate(Object::new).limit(LOCKS).toArray();

    /** @param maximumKeys of the cache; there are as many cells */
    EvictedKeys(long maximumKeys) {
        this(
                (int) Math.max(MIN_CELLS, Math.min(MAX_CELLS, maximumKeys)) / (ROWS * CELLS_OF_A_ROW),
                CELLS_OF_A_ROW,
                new SaltedHash());
    }

    EvictedKeys(int blocks, int width, SaltedHash hash) {
        this.blocks = blocks;
        this.width = width;
        this.hash = hash;
        this.cells = new Cell[blocks * ROWS * width];
    }

    /** Remembers a key that has left the cache. The cell is no longer used by anybody else. */
    void add(Object key, Cell spent) {
        long hashed = hash.of(key);
        int block = block(hashed);
        Cell added = spent;
        synchronized (lock(block)) {
            for (int row = 0; row < ROWS; row++) {
                int position = position(hashed, block, row);
                Cell known = cells[position];
                if (known == null) {
                    cells[position] = added.copy();
                    continue;
                }
                while (known.parameters() != added.parameters()
                        || known.parameters().change() != null) {
                    known = known.newest();
                    added = added.newest();
                    cells[position] = known;
                }
                if (!known.covers(added)) {
                    known.absorb(added);
                }
            }
        }
    }

    /** Returns a new cell that continues with the known spending of a key; null when the key has spent nothing. */
    @Nullable
    Cell continued(Object key, long now) {
        long hashed = hash.of(key);
        int block = block(hashed);
        synchronized (lock(block)) {
            Cell least = null;
            for (int row = 0; row < ROWS; row++) {
                Cell next = cells[position(hashed, block, row)];
                if (next == null) {
                    return null;
                }
                if (least == null || isLessSpent(next, least, now)) {
                    least = next;
                }
            }
            return least == null ? null : least.copy().newest();
        }
    }

    /** Cells of several words may not cover each other either way. */
    private static boolean isLessSpent(Cell one, Cell other, long now) {
        return one.parameters() == other.parameters()
                && (other.covers(one) || (!one.covers(other) && one.remaining(now) > other.remaining(now)));
    }

    /** Drops the cells that are in their initial state, and brings the others to the present limit. */
    void forget(Predicate<Cell> isInitial) {
        int size = ROWS * width;
        for (int block = 0; block < blocks; block++) {
            synchronized (lock(block)) {
                for (int position = block * size; position < (block + 1) * size; position++) {
                    Cell cell = cells[position];
                    if (cell != null) {
                        Cell current = cell.newest();
                        cells[position] = isInitial.test(current) ? null : current;
                    }
                }
            }
        }
    }

    private Object lock(int block) {
        return locks[block % LOCKS];
    }

    /** The upper half of the hash chooses the block, without a division; the lower one the cells. */
    private int block(long hashed) {
        return (int) (((hashed >>> 32) * blocks) >>> 32);
    }

    private int position(long hashed, int block, int row) {
        int bits = (int) (hashed >>> (10 * row)) & 0x3ff;
        return (block * ROWS + row) * width + ((bits * width) >>> 10);
    }
}
