package io.ratelimited.core.internals.memory;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A bucket in which a grant was refunded while later ones stayed, or in which a charge made debt. The later
 * callers keep their times, so V no longer shows how much was granted after a given grant. A second word does: W, the value
 * that V would have if nothing had been refunded from the middle. Grants are marked by W, which only the cancellation of
 * the last grant lowers.
 *
 * <p>The monitor guards every change but {@link #retire}.
 */
final class DividedTime extends DatedTime {

    /** Beyond so many marks the oldest two are merged, as if the grants had come earlier; that gives nobody more. */
    private static final int MAX_MARKS = 4096;

    /** Beyond 146 years of refill nothing more is refunded from the middle until the bucket is full. */
    private static final long MOST_RETURNED = 4 * PermitTime.FAR;

    private static final long[] NONE = {};

    /** W − V; saturates at {@link #MOST_RETURNED}. */
    private long returned;
    /** The latest time at which a waiting caller goes. A charge moves V, but no caller waits for that. */
    private long due;
    /**
     * The marks of grants that were refunded from the middle, in order, each before the units refunded. They are needed
     * until the bucket is full again.
     */
    private long[] backs = NONE;

    private int count;

    DividedTime(VirtualTime before, long zeroAt, long latest) {
        super(before, zeroAt, latest);
        this.due = zeroAt;
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

    /** A rejection changes no state (I1), because the next call may have an earlier time. */
    private void refillIfAdmitted(long permits, long now, long maxWait) {
        if (returned > 0 && peek(permits, now, maxWait) >= 0) {
            refill(now);
        }
    }

    /** Moves V and W forward as the next call would, when the bucket has become full since the last one. */
    private void refill(long now) {
        long full = parameters().time.at(now) - parameters().fullDepth;
        long v = zeroAt;
        if (returned > 0 && v < full && v != RETIRED && ZERO_AT.compareAndSet(this, v, full)) {
            returned = Math.max(0, v + returned - full);
            count = 0;
            backs = NONE;
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
            long behind = v + returned - grant.mark();
            long last = Math.min(due, v + returned);
            long units = p.time.at(now);
            long back = back(p, grant, cost, v, behind, returnedAfter(grant.mark()), last, latest(units), units);
            boolean divides = behind != 0 || p.staysAhead(grant, permits, v, units);
            if (divides) {
                back = Math.min(back, MOST_RETURNED - returned);
            }
            if (back <= 0) {
                return true;
            }
            if (ZERO_AT.compareAndSet(this, v, v - back)) {
                if (divides) {
                    returned += back;
                    remember(grant.mark(), back);
                }
                return true;
            }
        }
    }

    /**
     * Units that a grant refunds. The last grant refunds its whole cost. Where the next caller pays, the times of
     * later grants stand, and an earlier one refunds nothing. In a bucket, while later callers wait, their times
     * stand, and the grant refunds its cost less their costs.
     *
     * <p>When all later callers have gone, the grant refunds the units that the bucket would hold in addition without
     * the call. That is at most the least room that the bucket has had since the grant: the room now, or the
     * room just before a later call. The latter has two lower bounds, of which the larger counts: the room at the latest
     * call, if all later grants had come in that instant; and the room that the grant made, less the refill until that call.
     *
     * @param cost of the permits to refund
     * @param behind units granted after it
     * @param returned units of the later grants that were refunded
     * @param due no earlier than any waiting caller's time
     * @param latest no earlier than any time at which permits were used
     */
    static long back(
            Parameters p,
            Grant grant,
            long cost,
            long v,
            long behind,
            long returned,
            long due,
            long latest,
            long units) {
        if (behind == 0) {
            return cost;
        }
        if (!p.paysFirst) {
            return 0;
        }
        long room = v - (units - p.fullDepth);
        if (due > units) {
            return Math.min(cost, room) - behind;
        }
        long late = Math.min(latest, units);
        long afterAll = v - (late - p.fullDepth) - (behind - returned);
        long own = p.time.cost(grant.permits()) - (late - grant.instant());
        return Math.min(Math.min(cost, room), Math.max(afterAll, own));
    }

    /** Units that were refunded of grants later than the one with a mark. */
    private long returnedAfter(long mark) {
        long sum = 0;
        for (int i = count - 2; i >= 0 && backs[i] > mark; i -= 2) {
            sum += backs[i + 1];
        }
        return sum;
    }

    private void remember(long mark, long back) {
        if (count == backs.length) {
            backs = Arrays.copyOf(backs, Math.max(2, 2 * count));
        }
        int position = count;
        while (position > 0 && backs[position - 2] > mark) {
            position -= 2;
        }
        System.arraycopy(backs, position, backs, position + 2, count - position);
        backs[position] = mark;
        backs[position + 1] = back;
        count += 2;
        if (count > 2 * MAX_MARKS) {
            backs[1] += backs[3];
            count -= 2;
            System.arraycopy(backs, 4, backs, 2, count - 2);
        }
    }

    @Override
    synchronized boolean charge(long permits, long now) {
        refill(now);
        Parameters p = parameters();
        long units = p.time.at(now);
        while (true) {
            long v = zeroAt;
            if (v == RETIRED || p.change() != null) {
                return false;
            }
            use(units);
            if (ZERO_AT.compareAndSet(this, v, p.charged(v, permits, units))) {
                return true;
            }
        }
    }
}
