package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.internals.memory.block.SaltedHash;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The state of evicted keys, in fixed memory: a table of cells, each with the part of the hash by which its owner finds it
 * again. When there are more keys than cells, two of similar hash share one, which then belongs to all hashes of their common
 * prefix.
 *
 * <ul>
 *   <li>E1 A cell of a key {@link Cell#covers covers} the permits that the key had spent when it was evicted, and its block.
 *   <li>E2 The key continues with the cell of the longest prefix that it has. It covers the key's own spending (E1), so no key
 *       is ever admitted above its limit, and no block is lost. Other keys have raised it only if it is shared, which the key
 *       learns.
 *   <li>E3 A shared cell is raised to the larger of both states, and not to their sum.
 *   <li>E4 Of all pairs in a set of cells those two are merged that then belong to the fewest hashes. So keys that were never
 *       seen find no cell until the table is full, and few of them do when as many keys were evicted as it has cells.
 * </ul>
 *
 * The cells of a key stand in one set, which the hash chooses, and are used under the lock of the set. Thread-safe.
 */
final class EvictedKeys {

    /** Larger sets are filled more evenly, and take longer to search. */
    private static final int CELLS_OF_A_SET = 16;

    private static final int MIN_CELLS = 8192;
    private static final int MAX_CELLS = 1 << 25;
    private static final int LOCKS = 64;
    /** Bits of a hash that tell the keys of a set apart. */
    private static final int BITS = 31;

    private final SaltedHash hash;
    private final int sets;
    private final int size;
    private final @Nullable Cell[] cells;
    /** The prefix of the hashes that a cell belongs to, followed by a bit that ends it. */
    private final int[] prefixes;
    /**
     * By the position of a cell: one with other numbers that it covers and that is in its initial state later. The shared cell
     * is kept until then.
     */
    private final Map<Integer, Cell> later = new ConcurrentHashMap<>();

    private final Object[] locks = Stream.generate(Object::new).limit(LOCKS).toArray();

    /** @param maximumKeys of the cache; there are twice as many cells */
    EvictedKeys(long maximumKeys) {
        this(
                (int) Math.max(MIN_CELLS, Math.min(MAX_CELLS, 2 * maximumKeys)) / CELLS_OF_A_SET,
                CELLS_OF_A_SET,
                new SaltedHash());
    }

    EvictedKeys(int sets, int size, SaltedHash hash) {
        this.sets = sets;
        this.size = size;
        this.hash = hash;
        this.cells = new Cell[sets * size];
        this.prefixes = new int[sets * size];
    }

    /**
     * Remembers a key that has left the cache. The cell is no longer used by anybody else.
     *
     * @param now in the time of the cell
     */
    void add(Object key, Cell spent, long now) {
        long hashed = hash.of(key);
        int set = set(hashed);
        int whole = whole(hashed);
        synchronized (lock(set)) {
            int free = -1;
            for (int i = set * size; i < (set + 1) * size; i++) {
                Cell known = cells[i];
                if (known == null) {
                    free = i;
                } else if (prefixes[i] == whole) {
                    cells[i] = both(known, spent, i, now);
                    return;
                }
            }
            if (free < 0) {
                free = makeRoom(set, whole, now);
            }
            Cell known = cells[free];
            cells[free] = known == null ? spent : both(known, spent, free, now);
            prefixes[free] = known == null ? whole : common(prefixes[free], whole);
        }
    }

    /**
     * A cell that covers both. Neither is used by anybody else. Where their keys have different numbers, it has those under which
     * permits come back later.
     *
     * @param position of the cell that covers both
     */
    private Cell both(Cell known, Cell added, int position, long now) {
        Cell one = known.newest();
        Cell other = added.newest();
        if (one.parameters() != other.parameters()) {
            boolean slower = other.parameters().isSlowerThan(one.parameters());
            Cell last = slower ? other : one;
            Cell faster = slower ? one : other;
            // A window ends at the same time under any number, and the copy of a log is as long as the log.
            boolean window = last.parameters().limit().algorithm().family() == Algorithm.Family.WINDOW;
            Cell own = window ? null : faster.budget().copy();
            one = last;
            other = last.parameters().follow(faster, now);
            if (own != null && own.nanosToInitial(now) > Math.max(one.nanosToInitial(now), other.nanosToInitial(now))) {
                keepFor(own, position, now);
            }
        }
        if (other.covers(one)) {
            return other;
        }
        one.absorb(other);
        return one.compacted();
    }

    /** Keeps the cell of a position until the given one is in its initial state. */
    private void keepFor(Cell cell, int position, long now) {
        later.merge(position, cell, (known, added) -> {
            Cell kept = known.newest();
            return added.nanosToInitial(now) > kept.nanosToInitial(now) ? added : kept;
        });
    }

    /** The position of a cell for a new prefix: one that is free now, or the one to share. */
    private int makeRoom(int set, int whole, long now) {
        int first = set * size;
        int shared = first;
        int merged = -1;
        double least = Double.MAX_VALUE;
        for (int i = first; i < first + size; i++) {
            for (int j = i; j < first + size; j++) {
                int other = j == i ? whole : prefixes[j];
                double more = share(common(prefixes[i], other)) - share(prefixes[i]) - share(other);
                if (more < least) {
                    least = more;
                    shared = i;
                    merged = j == i ? -1 : j;
                }
            }
        }
        if (merged < 0) {
            return shared;
        }
        Cell one = cells[shared];
        Cell other = cells[merged];
        if (one != null && other != null) {
            cells[shared] = both(one, other, shared, now);
        }
        Cell kept = later.remove(merged);
        if (kept != null) {
            keepFor(kept.newest(), shared, now);
        }
        prefixes[shared] = common(prefixes[shared], prefixes[merged]);
        cells[merged] = null;
        return merged;
    }

    /** Returns a new cell that continues with the known state of a key; null when the key has spent nothing. */
    @Nullable
    Cell continued(Object key) {
        long hashed = hash.of(key);
        int set = set(hashed);
        int whole = whole(hashed);
        synchronized (lock(set)) {
            int longest = longest(set, whole);
            Cell known = longest < 0 ? null : cells[longest];
            if (known == null) {
                return null;
            }
            Cell cell = known.copy().newest();
            return prefixes[longest] == whole || !(cell instanceof BlockCell shared) ? cell : shared.ofOthers();
        }
    }

    /** Returns whether a new cell of a key would {@link #continued continue} with a known state. */
    boolean knows(Object key) {
        long hashed = hash.of(key);
        int set = set(hashed);
        synchronized (lock(set)) {
            return longest(set, whole(hashed)) >= 0;
        }
    }

    /** The position of the cell of the longest prefix that a hash has; negative for none. */
    private int longest(int set, int whole) {
        int longest = -1;
        for (int i = set * size; i < (set + 1) * size; i++) {
            if (cells[i] != null
                    && common(prefixes[i], whole) == prefixes[i]
                    && (longest < 0 || length(prefixes[i]) > length(prefixes[longest]))) {
                longest = i;
            }
        }
        return longest;
    }

    /** Forgets what is known of a key alone. A cell that it shares stays. */
    void forget(Object key) {
        long hashed = hash.of(key);
        int set = set(hashed);
        int whole = whole(hashed);
        synchronized (lock(set)) {
            for (int i = set * size; i < (set + 1) * size; i++) {
                if (prefixes[i] == whole) {
                    cells[i] = null;
                    later.remove(i);
                }
            }
        }
    }

    /** Drops the cells all of whose keys are in their initial state, and brings the others to the present limit. */
    void forget(Predicate<Cell> isInitial) {
        for (int set = 0; set < sets; set++) {
            synchronized (lock(set)) {
                for (int i = set * size; i < (set + 1) * size; i++) {
                    Cell cell = cells[i];
                    if (cell != null) {
                        Cell current = cell.newest();
                        Cell kept = later.computeIfPresent(i, (position, known) -> {
                            Cell last = known.newest();
                            return isInitial.test(last) ? null : last;
                        });
                        cells[i] = kept == null && isInitial.test(current) ? null : current;
                    }
                }
            }
        }
    }

    private Object lock(int set) {
        return locks[set % LOCKS];
    }

    /** The upper half of the hash chooses the set, without a division; the lower one the prefix. */
    private int set(long hashed) {
        return (int) (((hashed >>> 32) * sets) >>> 32);
    }

    private static int whole(long hashed) {
        return (int) hashed | 1;
    }

    private static int length(int prefix) {
        return BITS - Integer.numberOfTrailingZeros(prefix);
    }

    /** The longest prefix of both. */
    private static int common(int one, int other) {
        int bits = Math.min(Math.min(length(one), length(other)), Integer.numberOfLeadingZeros(one ^ other));
        int end = Integer.MIN_VALUE >>> bits;
        return (one & -end & ~end) | end;
    }

    /** The share of all hashes that have a prefix. */
    private static double share(int prefix) {
        return 1.0 / (1L << length(prefix));
    }
}
