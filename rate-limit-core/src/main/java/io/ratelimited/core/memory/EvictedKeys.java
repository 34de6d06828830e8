package io.ratelimited.core.memory;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What evicted keys have spent, in fixed memory: a count-min sketch with conservative update (Estan and Varghese, 2002), of
 * cells instead of counters. Each key has one place in each row.
 *
 * <ul>
 *   <li>E1 All places of a key {@link Cell#covers cover} what the key had spent when it was evicted.
 *   <li>E2 The least spent of them is what the key continues with. It covers the key's own spending (E1), so no key is
 *       ever admitted above its limit; it is above it only if other keys have raised every place of the key.
 *   <li>E3 An evicted key raises only those of its places that do not cover it, and none above the larger of the two. So
 *       keys that share a place do not add up, unless they share all their places with others.
 * </ul>
 *
 * The cells in the places never change: a place is raised by a compare-and-set to another cell, and one cell may stand in
 * several places. Thread-safe.
 */
final class EvictedKeys {

    private static final int ROWS = 3;
    private static final int FEWEST_PLACES = 8192;
    private static final int MOST_PLACES = 1 << 24;

    private final SaltedHash hash;
    private final AtomicReferenceArray<@Nullable Cell> places;
    private final int width;

    /** @param maximumKeys of the cache; there are as many places */
    EvictedKeys(long maximumKeys) {
        this((int) Math.max(FEWEST_PLACES, Math.min(MOST_PLACES, maximumKeys)) / ROWS, new SaltedHash());
    }

    EvictedKeys(int width, SaltedHash hash) {
        this.width = width;
        this.hash = hash;
        this.places = new AtomicReferenceArray<>(width * ROWS);
    }

    /** Remembers a key that has left the cache. The cell is no longer used by anybody else. */
    void add(Object key, Cell spent) {
        long hashed = hash.of(key);
        for (int row = 0; row < ROWS; row++) {
            int place = place(hashed, row);
            Cell before;
            Cell after;
            do {
                before = places.get(place);
                after = before == null ? spent : raised(before, spent);
            } while (after != before && !places.compareAndSet(place, before, after));
        }
    }

    private static Cell raised(Cell before, Cell spent) {
        Cell old = before;
        Cell added = spent;
        while (old.parameters() != added.parameters() || old.parameters().change() != null) {
            old = current(old);
            added = current(added);
        }
        if (old.covers(added)) {
            return old;
        }
        if (added.covers(old)) {
            return added;
        }
        Cell both = old.copy();
        both.absorb(added);
        return both;
    }

    /** A cell in a place is never retired, because another place may have it. */
    private static Cell current(Cell cell) {
        return cell.parameters().change() == null ? cell : cell.copy().newest();
    }

    /** A new cell that continues with what is known of a key; null when the key has spent nothing. */
    @Nullable
    Cell continued(Object key, long now) {
        long hashed = hash.of(key);
        Cell least = null;
        for (int row = 0; row < ROWS; row++) {
            Cell next = places.get(place(hashed, row));
            if (next == null) {
                return null;
            }
            least = least == null || isLessSpent(next, least, now) ? next : least;
        }
        return least == null ? null : least.copy().newest();
    }

    private static boolean isLessSpent(Cell one, Cell other, long now) {
        if (one == other || one.parameters() != other.parameters()) {
            return false;
        }
        long more = one.remaining(now) - other.remaining(now);
        return more > 0 || (more == 0 && one.nanosToFresh(now) < other.nanosToFresh(now));
    }

    /** Empties the places whose cells equal fresh ones, and brings the others to the present limit. */
    void forget(Predicate<Cell> isFresh) {
        for (int place = 0; place < places.length(); place++) {
            Cell cell = places.get(place);
            if (cell != null) {
                Cell current = current(cell);
                places.compareAndSet(place, cell, isFresh.test(current) ? null : current);
            }
        }
    }

    private int place(long hashed, int row) {
        // The row is mixed in with the finalizer of MurmurHash3; the upper half chooses the place without a division.
        long mixed = hashed + row * 0x9e3779b97f4a7c15L;
        mixed = (mixed ^ (mixed >>> 33)) * 0xff51afd7ed558ccdL;
        mixed = (mixed ^ (mixed >>> 33)) * 0xc4ceb9fe1a85ec53L;
        return row * width + (int) (((mixed >>> 32) * width) >>> 32);
    }

    /**
     * SipHash-1-3 (Aumasson and Bernstein, 2012) of a key under a secret of this process, so that nobody can choose texts that
     * collide. A key that is no text is hashed by its {@code hashCode}. Immutable.
     */
    static final class SaltedHash {

        private final long k0;
        private final long k1;

        SaltedHash() {
            this(
                    ThreadLocalRandom.current().nextLong(),
                    ThreadLocalRandom.current().nextLong());
        }

        SaltedHash(long k0, long k1) {
            this.k0 = k0;
            this.k1 = k1;
        }

        long of(Object key) {
            State state = new State(k0, k1);
            if (key instanceof CharSequence text) {
                int length = text.length();
                long word = 0;
                for (int i = 0; i < length; i++) {
                    word |= (long) text.charAt(i) << (i << 4);
                    if ((i & 3) == 3) {
                        state.add(word);
                        word = 0;
                    }
                }
                state.add(word);
                state.add(length);
            } else {
                state.add(key.hashCode());
            }
            return state.finish();
        }

        private static final class State {

            private long v0;
            private long v1;
            private long v2;
            private long v3;

            State(long k0, long k1) {
                v0 = k0 ^ 0x736f6d6570736575L;
                v1 = k1 ^ 0x646f72616e646f6dL;
                v2 = k0 ^ 0x6c7967656e657261L;
                v3 = k1 ^ 0x7465646279746573L;
            }

            void add(long word) {
                v3 ^= word;
                round();
                v0 ^= word;
            }

            private void round() {
                v0 += v1;
                v1 = Long.rotateLeft(v1, 13) ^ v0;
                v0 = Long.rotateLeft(v0, 32);
                v2 += v3;
                v3 = Long.rotateLeft(v3, 16) ^ v2;
                v0 += v3;
                v3 = Long.rotateLeft(v3, 21) ^ v0;
                v2 += v1;
                v1 = Long.rotateLeft(v1, 17) ^ v2;
                v2 = Long.rotateLeft(v2, 32);
            }

            long finish() {
                v2 ^= 0xff;
                round();
                round();
                round();
                return v0 ^ v1 ^ v2 ^ v3;
            }
        }
    }
}
