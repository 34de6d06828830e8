package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import org.jspecify.annotations.Nullable;

/**
 * A ring of slots. The window is the slot of the call and the {@code slots} before it: one more than the period holds,
 * so that the oldest, partly covered slot counts in full and no interval of the period ever exceeds the limit. A call
 * that waits takes its permits in the first later slot with room, and later calls go no earlier.
 */
final class SlidingWindow extends GuardedCell {

    /**
     * Highest charge of one slot: twice what any limit allows, so that it closes the window even when all its calls give
     * back. A higher charge would have the same effect.
     */
    private static final long MOST_OF_A_SLOT = 1L << 51;
    /** Highest charge of all slots together: that of 2,048 slots. */
    private static final long MOST_OF_ALL = 1L << 62;

    private final Parameters parameters;
    /** Permits taken in slot s at s modulo the length. */
    private final long[] taken;
    /** The last slot anyone has a permit in, counted from the base of the parameters. */
    private long head;
    /** The begin of the slot of the head, and its position in {@link #taken}: both are computed once a slot. */
    private long headStart;

    private int headIndex;
    /** Sum of {@link #taken}. */
    private long total;

    private SlidingWindow(Parameters parameters, long head) {
        this.parameters = parameters;
        this.taken = new long[parameters.limit().slots() + 1];
        moveTo(head);
    }

    private void moveTo(long slot) {
        head = slot;
        headStart = parameters.start(slot);
        headIndex = index(slot);
    }

    @Override
    Parameters parameters() {
        return parameters;
    }

    @Override
    long decide(long permits, long now, long maxWait, @Nullable Grant into) {
        long since = now - headStart;
        if (since >= 0 && since < parameters.slotNanos && permits <= parameters.permits - total) {
            taken[headIndex] += permits;
            total += permits;
            if (into != null) {
                into.mark(head);
            }
            return 0;
        }
        long slot = slotFor(permits, now);
        long wait = wait(slot, permits, now, maxWait);
        if (wait >= 0) {
            if (into != null && wait > 0 && slot > head) {
                into.more(twin());
            }
            advance(slot);
            taken[index(slot)] += permits;
            total += permits;
            if (into != null) {
                into.mark(slot);
            }
        }
        return wait;
    }

    @Override
    long peekGuarded(long permits, long now, long maxWait) {
        return wait(slotFor(permits, now), permits, now, maxWait);
    }

    private long wait(long slot, long permits, long now, long maxWait) {
        if (permits > parameters.permits) {
            return NEVER;
        }
        long wait = Math.max(0, parameters.start(slot) - now);
        return wait > maxWait ? ~(wait - maxWait) : wait;
    }

    /** The first slot, not before now or the head, whose window has room. */
    private long slotFor(long permits, long now) {
        long slot = Math.max(head, parameters.slot(now));
        long inWindow = total;
        for (long oldest = head - taken.length + 1; oldest <= head; oldest++) {
            boolean gone = oldest + taken.length <= slot;
            if (!gone && inWindow + permits <= parameters.permits) {
                break;
            }
            inWindow -= taken[index(oldest)];
            slot = Math.max(slot, oldest + taken.length);
        }
        return slot;
    }

    private int index(long slot) {
        return (int) Math.floorMod(slot, (long) taken.length);
    }

    private void advance(long slot) {
        for (long next = head + 1; next <= slot && next <= head + taken.length; next++) {
            total -= taken[index(next)];
            taken[index(next)] = 0;
        }
        if (slot > head) {
            moveTo(slot);
        }
    }

    /**
     * Gives the permits back while their slot is remembered: each later call was admitted while they counted. When the waiting
     * call that has opened the last slot is the last to leave it, the slots before it are open again.
     */
    @Override
    void undo(Grant grant, long permits) {
        long slot = grant.mark();
        if (slot > head - taken.length) {
            taken[index(slot)] -= permits;
            total -= permits;
        }
        if (slot == head && taken[headIndex] == 0 && grant.more() instanceof SlidingWindow opened) {
            goBackTo(opened);
        }
    }

    /** The slots from then to now are empty. */
    private void goBackTo(SlidingWindow before) {
        long last = Math.min(before.head, head - taken.length);
        for (long slot = before.head - taken.length + 1; slot <= last; slot++) {
            taken[index(slot)] = before.taken[index(slot)];
            total += taken[index(slot)];
        }
        moveTo(before.head);
    }

    /** Counts in the present slot, or in the last slot that a waiting call was granted. */
    @Override
    void add(long permits, long now) {
        advance(Math.max(head, parameters.slot(now)));
        long room = Math.min(MOST_OF_A_SLOT - taken[index(head)], MOST_OF_ALL - total);
        long counted = Math.max(0, Math.min(permits, room));
        taken[index(head)] += counted;
        total += counted;
    }

    @Override
    synchronized long remaining(long now) {
        long slot = parameters.slot(now);
        if (slot < head) {
            return 0;
        }
        long inWindow = total;
        for (long oldest = head - taken.length + 1; oldest <= head && oldest + taken.length <= slot; oldest++) {
            inWindow -= taken[index(oldest)];
        }
        return Math.max(0, parameters.permits - inWindow);
    }

    @Override
    synchronized long nanosToInitial(long now) {
        for (long slot = head; slot > head - taken.length; slot--) {
            if (taken[index(slot)] > 0) {
                return Math.max(0, parameters.start(slot + taken.length) - now);
            }
        }
        // A later slot of which all permits were given back still closes the slots before it.
        return Math.max(0, parameters.start(head) - now);
    }

    @Override
    SlidingWindow twin() {
        return under(parameters);
    }

    private SlidingWindow under(Parameters next) {
        SlidingWindow twin = new SlidingWindow(next, head);
        System.arraycopy(taken, 0, twin.taken, 0, taken.length);
        twin.total = total;
        return twin;
    }

    /** Compares sums from each slot on, since a call sees a slot and all later ones. */
    @Override
    boolean isAtLeast(Cell other) {
        SlidingWindow that = (SlidingWindow) other;
        if (head < that.head) {
            return false;
        }
        that.advance(head);
        long sum = 0;
        long others = 0;
        for (long slot = head; slot > head - taken.length; slot--) {
            sum += taken[index(slot)];
            others += that.taken[index(slot)];
            if (sum < others) {
                return false;
            }
        }
        return true;
    }

    /** Takes the larger sum of the two from each slot on: permits of two cells in different slots are not added. */
    @Override
    void merge(Cell other) {
        SlidingWindow that = (SlidingWindow) other;
        advance(that.head);
        that.advance(head);
        long sum = 0;
        long others = 0;
        total = 0;
        for (long slot = head; slot > head - taken.length; slot--) {
            sum += taken[index(slot)];
            others += that.taken[index(slot)];
            taken[index(slot)] = Math.max(sum, others) - total;
            total += taken[index(slot)];
        }
    }

    /** The slots of one limit. */
    static final class Parameters extends CellParameters {

        private final long base;
        private final long permits;
        /** Rounded up, so that the window is never shorter than the period. */
        private final long slotNanos;

        Parameters(Limit limit, long base) {
            super(limit);
            this.base = base;
            this.permits = limit.rate().permits();
            this.slotNanos = (limit.rate().period().toNanos() - 1) / limit.slots() + 1;
        }

        private long slot(long now) {
            return Math.floorDiv(now - base, slotNanos);
        }

        private long start(long slot) {
            return base + slot * slotNanos;
        }

        @Override
        Cell full(long now) {
            return new SlidingWindow(this, slot(now));
        }

        @Override
        Cell resume(Cell before, long at) {
            SlidingWindow window = (SlidingWindow) before;
            return window.under(this).continuing(window);
        }

        @Override
        long idleNanos() {
            return slotNanos * (limit().slots() + 1L);
        }
    }
}
