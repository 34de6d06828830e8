package io.ratelimited.core.memory;

import org.jspecify.annotations.Nullable;

/**
 * A cell in which a grant was given back while later ones stayed, or in which a charge made debt. The later callers keep
 * their times, so V no longer shows how much was granted after a given grant. A second word does: W, the value that V
 * would have if nothing had been given back from the middle. Grants are marked by W, which only the cancellation of the
 * last grant lowers.
 *
 * <p>The monitor guards every change but {@link #retire}.
 */
final class DividedTime extends VirtualTime {

    /** What was given back beyond so many times is counted as if it had been granted earlier, which gives nobody more. */
    private static final int MOST_MARKS = 32;

    private final VirtualTime before;
    /** W − V. */
    private long returned;
    /** No waiting caller goes later. A charge moves V, but nobody waits for it. */
    private long due;
    /** The marks of grants that were given back from the middle, in order, and the units given back. */
    private final long[] marks = new long[MOST_MARKS + 1];

    private final long[] units = new long[MOST_MARKS + 1];
    private int count;

    DividedTime(VirtualTime before, long zeroAt) {
        super(before.parameters(), zeroAt);
        this.before = before;
        this.due = zeroAt;
    }

    @Override
    boolean succeeds(Cell other) {
        return other == before;
    }

    @Override
    synchronized long reserve(long permits, long now, long maxWait, @Nullable Grant into) {
        refillIfAdmitted(permits, now, maxWait);
        long outcome = super.reserve(permits, now, maxWait, into);
        if (outcome > 0) {
            due = Math.max(due, zeroAt);
        }
        if (into != null && outcome >= 0) {
            into.mark(into.mark() + returned);
        }
        return outcome;
    }

    @Override
    synchronized long take(long permits, long now) {
        refillIfAdmitted(permits, now, 0);
        return super.take(permits, now);
    }

    /** A refusal changes no state (I1), because the next call may have an earlier time. */
    private void refillIfAdmitted(long permits, long now, long maxWait) {
        if (returned > 0 && peek(permits, now, maxWait) >= 0) {
            refill(now);
        }
    }

    /** Moves V and W forward when the bucket has been full since, as the next call would. */
    private void refill(long now) {
        long full = parameters().time.at(now) - parameters().most;
        long v = zeroAt;
        if (returned > 0 && v < full && v != RETIRED && ZERO_AT.compareAndSet(this, v, full)) {
            returned = Math.max(0, v + returned - full);
            count = 0;
        }
    }

    @Override
    synchronized boolean giveBack(Grant grant, long permits, long now) {
        refill(now);
        Parameters p = parameters();
        long cost = p.time.cost(permits);
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return false;
            }
            long w = v + returned;
            long behind = w - grant.mark();
            long back = p.back(cost, behind, returnedAfter(grant.mark()), v, Math.min(due, w), p.time.at(now));
            if (back <= 0) {
                return true;
            }
            if (ZERO_AT.compareAndSet(this, v, v - back)) {
                if (behind != 0) {
                    returned += back;
                    remember(grant.mark(), back);
                }
                return true;
            }
        }
    }

    /** Units that were given back of grants later than the one with a mark. */
    private long returnedAfter(long mark) {
        long sum = 0;
        for (int i = count - 1; i >= 0 && marks[i] > mark; i--) {
            sum += units[i];
        }
        return sum;
    }

    private void remember(long mark, long back) {
        int at = count;
        while (at > 0 && marks[at - 1] > mark) {
            marks[at] = marks[at - 1];
            units[at] = units[at - 1];
            at--;
        }
        marks[at] = mark;
        units[at] = back;
        if (++count > MOST_MARKS) {
            units[0] += units[1];
            count--;
            System.arraycopy(marks, 2, marks, 1, count - 1);
            System.arraycopy(units, 2, units, 1, count - 1);
        }
    }

    @Override
    synchronized boolean charge(long permits, long now) {
        refill(now);
        Parameters p = parameters();
        while (true) {
            long v = zeroAt;
            if (v == RETIRED || p.change() != null) {
                return false;
            }
            if (ZERO_AT.compareAndSet(this, v, p.charged(v, permits, p.time.at(now)))) {
                return true;
            }
        }
    }
}
