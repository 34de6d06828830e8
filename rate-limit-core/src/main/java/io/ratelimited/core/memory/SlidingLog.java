package io.ratelimited.core.memory;

import io.ratelimited.core.Limit;
import org.jspecify.annotations.Nullable;

/**
 * The instants of the last permits: at most as many as the limit has, and those granted in advance. A call may go when
 * the permit that would be one too many has left the window, and never before a call that was granted earlier. An
 * instant leaves the window exactly one period later.
 */
final class SlidingLog extends GuardedCell {

    private static final int FIRST_CAPACITY = 8;

    private final Parameters parameters;
    /** A ring of instants in order, one a permit. */
    private long[] instants;

    private int oldest;
    private int size;
    /** Permits before the oldest instant, which is the latest of theirs; they count as long as it does. */
    private long older;
    /** The largest number of permits that the limit had since this log began. */
    private long largest;

    private SlidingLog(Parameters parameters, long[] instants, long older, long largest) {
        this.parameters = parameters;
        this.instants = instants;
        this.size = instants.length;
        this.older = older;
        this.largest = Math.max(largest, parameters.permits);
    }

    @Override
    Parameters parameters() {
        return parameters;
    }

    @Override
    long decide(long permits, long now, long maxWait, @Nullable Grant into) {
        long wait = peekGuarded(permits, now, maxWait);
        if (wait >= 0) {
            for (int i = 0; i < permits; i++) {
                append(now + wait, now);
            }
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
        long last = size - 1 - (parameters.permits - permits);
        if (last + older >= 0) {
            wait = Math.max(wait, instant((int) Math.max(0, last)) + parameters.period - now);
        }
        return wait > maxWait ? ~(wait - maxWait) : wait;
    }

    private long instant(int position) {
        return instants[index(position)];
    }

    private int index(int position) {
        int index = oldest + position;
        return index < instants.length ? index : index - instants.length;
    }

    /**
     * Appends an instant, and drops those that have left the window. Others stay even if the limit does not look that far
     * back now: it will when a waiting call is cancelled.
     */
    private void append(long instant, long now) {
        while (size > 0 && instant(0) + parameters.period - now <= 0) {
            dropOldest(1);
            older = 0;
        }
        if (size == instants.length) {
            long doubled = Math.max(FIRST_CAPACITY, size * 2L);
            instants = toArray((int) (size < parameters.permits ? Math.min(parameters.permits, doubled) : doubled));
            oldest = 0;
        }
        instants[index(size)] = instant;
        size++;
    }

    private long[] toArray(int capacity) {
        long[] copy = new long[capacity];
        for (int i = 0; i < size; i++) {
            copy[i] = instant(i);
        }
        return copy;
    }

    /** Gives permits back that are still remembered: each later call was admitted while they counted. */
    @Override
    void undo(Grant grant, long permits) {
        int end = size;
        while (end > 0 && instant(end - 1) - grant.mark() > 0) {
            end--;
        }
        int begin = end;
        while (begin > 0 && end - begin < permits && instant(begin - 1) == grant.mark()) {
            begin--;
        }
        for (int newer = end; newer < size; newer++) {
            instants[index(begin + newer - end)] = instant(newer);
        }
        size -= end - begin;
    }

    /**
     * Counts at the present instant, or at that of the last waiting call. Only the newest instants stay: those after now,
     * and twice the largest number of permits that the limit had. So many are calls whose permits may still be given back,
     * and charges behind them, which close the window without the older instants. Of all that is older the number stays, in
     * case that the limit is raised.
     */
    @Override
    void add(long permits, long now) {
        long last = size == 0 ? now : instant(size - 1);
        int ahead = 0;
        while (ahead < size && instant(size - 1 - ahead) - now > 0) {
            ahead++;
        }
        long kept = 2 * largest;
        long remembered = Math.min(permits, kept);
        for (long left = remembered; left > 0; left--) {
            append(last - now > 0 ? last : now, now);
        }
        long dropped = Math.max(0, size - kept - (remembered < permits ? 0 : ahead));
        dropOldest((int) dropped);
        older = Math.min(PermitTime.FAR, older + dropped + (permits - remembered));
    }

    private void dropOldest(int count) {
        oldest = index(count);
        size -= count;
    }

    @Override
    synchronized long remaining(long now) {
        boolean waited = size > 0 && instant(size - 1) - now > 0;
        return waited ? 0 : Math.max(0, parameters.permits - inWindow(now));
    }

    private long inWindow(long now) {
        int low = 0;
        int high = size;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (instant(middle) + parameters.period - now <= 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return size - low + (low == 0 ? older : 0);
    }

    @Override
    synchronized long nanosToInitial(long now) {
        return size == 0 ? 0 : Math.max(0, instant(size - 1) + parameters.period - now);
    }

    @Override
    SlidingLog twin() {
        return new SlidingLog(parameters, toArray(size), older, largest);
    }

    @Override
    boolean isAtLeast(Cell other) {
        SlidingLog that = (SlidingLog) other;
        if (total() < that.total()) {
            return false;
        }
        for (int i = 1; i <= that.size; i++) {
            if (newest(i) - that.newest(i) < 0) {
                return false;
            }
        }
        return that.older == 0 || newest(that.total()) - that.instant(0) >= 0;
    }

    /** Permits that are remembered. */
    private long total() {
        return size + older;
    }

    /** The instant of a permit, counted from 1 for the newest. */
    private long newest(long number) {
        return instant((int) Math.max(0, size - number));
    }

    /** Permit by permit from the newest, the later instant of the two. */
    @Override
    void merge(Cell other) {
        SlidingLog that = (SlidingLog) other;
        long[] merged = new long[Math.max(size, that.size)];
        long most = Math.max(total(), that.total());
        for (int i = 1; i <= merged.length; i++) {
            boolean mine = i <= total() && (i > that.total() || newest(i) - that.newest(i) >= 0);
            merged[merged.length - i] = mine ? newest(i) : that.newest(i);
        }
        instants = merged;
        oldest = 0;
        size = merged.length;
        older = most - size;
        largest = Math.max(largest, that.largest);
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

        @Override
        Cell full(long now) {
            return new SlidingLog(this, new long[0], 0, permits);
        }

        @Override
        Cell resume(Cell before, long at) {
            SlidingLog log = (SlidingLog) before;
            return new SlidingLog(this, log.toArray(log.size), log.older, log.largest);
        }

        @Override
        long idleNanos() {
            return period;
        }
    }
}
