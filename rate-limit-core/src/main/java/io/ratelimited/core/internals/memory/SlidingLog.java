package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The instants of the last permits, and of those granted in advance: one entry for all permits of an instant. A call may
 * go when the permits that would be too many have left the window, and never before a call that was granted earlier. An
 * instant leaves the window exactly one period later. Of entries that have given everything back there are at most as many as
 * of others.
 */
final class SlidingLog extends GuardedCell {

    private static final int FIRST_CAPACITY = 4;
    /** So many entries take about as much memory as a key without its log. */
    private static final int ENTRIES_OF_A_KEY = 64;
    /** Entries that are kept of an evicted log, however few the limit itself has. */
    private static final int FEWEST_KEPT = 16;
    /**
     * Highest charge of one instant: twice what any limit allows, so that it closes the window even when all its calls give
     * back. A higher charge would have the same effect.
     */
    private static final long MOST_OF_AN_INSTANT = 1L << 51;
    /** Highest charge of all instants together. More than any limit allows is left when the oldest are forgotten. */
    private static final long MOST = 1L << 62;

    private final Parameters parameters;
    /** A ring of entries in order of time: at 2i the instant, at 2i + 1 its permits. The newest entry has permits. */
    private long[] ring;

    private int oldest;
    private int size;
    /** How many entries have no permits left. */
    private int empty;
    /** The permits of all entries. */
    private long total;
    /** Whether there is room for more entries than the limit itself needs, and nobody has asked since. Written under the monitor. */
    private volatile boolean grown;

    private SlidingLog(Parameters parameters, long[] entries, long total) {
        this.parameters = parameters;
        this.ring = entries;
        this.size = entries.length / 2;
        this.total = total;
    }

    @Override
    Parameters parameters() {
        return parameters;
    }

    @Override
    long decide(long permits, long now, long maxWait, @Nullable Grant into) {
        long wait = peekGuarded(permits, now, maxWait);
        if (wait >= 0) {
            append(now + wait, permits, now);
            if (into != null) {
                into.mark(now + wait);
            }
        }
        return wait;
    }

    @Override
    long peekGuarded(long permits, long now, long maxWait) {
        if (permits > parameters.permits) {
            return NEVER;
        }
        long wait = size == 0 ? 0 : Math.max(0, instant(size - 1) - now);
        long over = total - (parameters.permits - permits);
        if (over > 0) {
            int last = 0;
            for (long left = over - permits(0); left > 0; left -= permits(last)) {
                last++;
            }
            wait = Math.max(wait, instant(last) + parameters.period - now);
        }
        return wait > maxWait ? ~(wait - maxWait) : wait;
    }

    private long instant(int position) {
        return ring[index(position)];
    }

    private long permits(int position) {
        return ring[index(position) + 1];
    }

    private int index(int position) {
        int index = 2 * (oldest + position);
        return index < ring.length ? index : index - ring.length;
    }

    private boolean hasLeft(int position, long now) {
        return instant(position) + parameters.period - now <= 0;
    }

    /**
     * Adds permits at an instant that is no earlier than all others, and drops the entries that have left the window. Others
     * stay even if the limit does not look that far back now: it will when it is raised, or a waiting call is cancelled.
     */
    private void append(long instant, long permits, long now) {
        while (size > 0 && (hasLeft(0, now) || total > MOST - permits)) {
            total -= permits(0);
            empty -= permits(0) == 0 ? 1 : 0;
            oldest = index(1) / 2;
            size--;
        }
        total += permits;
        if (size > 0 && instant(size - 1) == instant) {
            ring[index(size - 1) + 1] += permits;
            return;
        }
        if (2 * size == ring.length) {
            int doubled = Math.max(FIRST_CAPACITY, 2 * size);
            rebuild(size < parameters.permits ? (int) Math.min(parameters.permits, doubled) : doubled);
            grown |= ring.length / 2 > parameters.entriesOfTheLimit();
        }
        size++;
        ring[index(size - 1)] = instant;
        ring[index(size - 1) + 1] = permits;
    }

    private void rebuild(int capacity) {
        ring = toArray(capacity);
        oldest = 0;
        size -= empty;
        empty = 0;
    }

    /** The entries that have permits. */
    private long[] toArray() {
        return toArray(size - empty);
    }

    private long[] toArray(int capacity) {
        long[] copy = new long[2 * capacity];
        int next = 0;
        for (int i = 0; i < size; i++) {
            if (permits(i) > 0) {
                copy[next++] = instant(i);
                copy[next++] = permits(i);
            }
        }
        return copy;
    }

    /** So many entries have room. */
    synchronized int capacity() {
        return ring.length / 2;
    }

    @Override
    synchronized int weight() {
        grown = false;
        double keys = (double) (ENTRIES_OF_A_KEY + capacity()) / (ENTRIES_OF_A_KEY + parameters.entriesOfTheLimit());
        return (int) Math.max(1, Math.round(keys));
    }

    @Override
    boolean hasGrown() {
        return grown;
    }

    /**
     * {@inheritDoc} The entries of a slot become one at the instant of the last: permits count longer, and never shorter. Slots are
     * the same each time, so that a log that is evicted again and again moves none of them out of its slot.
     */
    @Override
    synchronized Cell compacted() {
        long most = Math.max(FEWEST_KEPT, parameters.entriesOfTheLimit());
        long[] all = toArray();
        if (all.length / 2 <= most) {
            return this;
        }
        // A window is within so many slots; waiting calls may be beyond it.
        for (long slot = parameters.period / (most - 1) + 1; all.length / 2 > most; slot *= 2) {
            all = ofSlots(all, slot);
        }
        return new SlidingLog(parameters, all, total);
    }

    private static long[] ofSlots(long[] entries, long slot) {
        long[] merged = entries.clone();
        int next = 0;
        for (int i = 0; i < entries.length; i += 2) {
            boolean same = next > 0 && Math.floorDiv(merged[next - 2], slot) == Math.floorDiv(entries[i], slot);
            long permits = entries[i + 1] + (same ? merged[next - 1] : 0);
            next -= same ? 2 : 0;
            merged[next++] = entries[i];
            merged[next++] = permits;
        }
        return Arrays.copyOf(merged, next);
    }

    /** Gives permits back that are still remembered: each later call was admitted while they counted. */
    @Override
    void undo(Grant grant, long permits) {
        int position = firstNotBefore(grant.mark());
        if (position == size || instant(position) != grant.mark()) {
            return;
        }
        long back = Math.min(permits, permits(position));
        ring[index(position) + 1] -= back;
        total -= back;
        empty += back > 0 && permits(position) == 0 ? 1 : 0;
        while (size > 0 && permits(size - 1) == 0) {
            size--;
            empty--;
        }
        if (empty > FIRST_CAPACITY && 2 * empty > size) {
            rebuild(Math.max(FIRST_CAPACITY, size - empty + 1));
        }
    }

    private int firstNotBefore(long instant) {
        int low = 0;
        int high = size;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (instant(middle) - instant < 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /** Counts at the present instant, or at that of the last waiting call. */
    @Override
    void add(long permits, long now) {
        long instant = size == 0 || instant(size - 1) - now < 0 ? now : instant(size - 1);
        long known = size > 0 && instant(size - 1) == instant ? permits(size - 1) : 0;
        long counted = Math.min(permits, MOST_OF_AN_INSTANT - known);
        if (counted > 0) {
            append(instant, counted, now);
        }
    }

    @Override
    synchronized long remaining(long now) {
        boolean waited = size > 0 && instant(size - 1) - now > 0;
        return waited ? 0 : Math.max(0, parameters.permits - inWindow(now));
    }

    private long inWindow(long now) {
        long inside = total;
        for (int i = 0; i < size && hasLeft(i, now); i++) {
            inside -= permits(i);
        }
        return inside;
    }

    @Override
    synchronized long nanosToInitial(long now) {
        return size == 0 ? 0 : Math.max(0, instant(size - 1) + parameters.period - now);
    }

    @Override
    SlidingLog twin() {
        return new SlidingLog(parameters, toArray(), total);
    }

    /** Compares sums from each instant on, since a call sees the permits from an instant on. */
    @Override
    boolean isAtLeast(Cell other) {
        SlidingLog that = (SlidingLog) other;
        int mine = size;
        long sum = 0;
        long others = 0;
        for (int i = that.size - 1; i >= 0; i--) {
            others += that.permits(i);
            while (mine > 0 && instant(mine - 1) - that.instant(i) >= 0) {
                sum += permits(--mine);
            }
            if (sum < others) {
                return false;
            }
        }
        return true;
    }

    /** Takes the larger sum of the two from each instant on: permits of two logs at different instants are not added. */
    @Override
    void merge(Cell other) {
        SlidingLog that = (SlidingLog) other;
        long[] merged = new long[2 * (size + that.size)];
        int begin = merged.length;
        int mine = size;
        int others = that.size;
        long sum = 0;
        long otherSum = 0;
        long most = 0;
        while (mine > 0 || others > 0) {
            boolean isMine = mine > 0 && (others == 0 || instant(mine - 1) - that.instant(others - 1) >= 0);
            long instant = isMine ? instant(mine - 1) : that.instant(others - 1);
            while (mine > 0 && instant(mine - 1) == instant) {
                sum += permits(--mine);
            }
            while (others > 0 && that.instant(others - 1) == instant) {
                otherSum += that.permits(--others);
            }
            long more = Math.max(sum, otherSum) - most;
            if (more > 0) {
                begin -= 2;
                merged[begin] = instant;
                merged[begin + 1] = more;
                most += more;
            }
        }
        ring = Arrays.copyOfRange(merged, begin, merged.length);
        oldest = 0;
        size = ring.length / 2;
        empty = 0;
        total = most;
    }

    /** The window of one limit. */
    static final class Parameters extends CellParameters {

        private final long permits;
        private final long period;

        Parameters(Limit limit) {
            super(limit);
            this.permits = limit.rate().permits();
            this.period = limit.rate().period().toNanos();
        }

        /** The entries of a key for which there is memory; none where the limit counted nothing. */
        private long entriesOfTheLimit() {
            Limit limit = sized();
            return limit.algorithm() != Algorithm.SLIDING_LOG || limit.isUnlimited()
                    ? 0
                    : limit.rate().permits();
        }

        @Override
        Cell full(long now) {
            return new SlidingLog(this, new long[0], 0);
        }

        @Override
        Cell resume(Cell before, long at) {
            SlidingLog log = (SlidingLog) before;
            return new SlidingLog(this, log.toArray(), log.total).continuing(log);
        }

        @Override
        long idleNanos() {
            return period;
        }
    }
}
