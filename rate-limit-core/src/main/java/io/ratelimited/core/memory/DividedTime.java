package io.ratelimited.core.memory;

import org.jspecify.annotations.Nullable;

/**
 * A cell in which a grant was given back while later ones stayed. The later callers keep their times, so V no longer shows
 * how much was granted after a given grant. A second word does: W, the value that V would have if nothing had been given
 * back from the middle. Grants are marked by W, which only the cancellation of the last grant lowers.
 *
 * <p>The monitor guards every change but {@link #retire}.
 */
final class DividedTime extends VirtualTime {

    private final VirtualTime before;
    /** W − V. */
    private long returned;

    DividedTime(VirtualTime before, long zeroAt) {
        super(before.parameters(), zeroAt);
        this.before = before;
    }

    @Override
    boolean succeeds(Cell other) {
        return other == before;
    }

    @Override
    synchronized long reserve(long permits, long now, long maxWait, @Nullable Grant into) {
        settleIfAdmitted(permits, now, maxWait);
        long outcome = super.reserve(permits, now, maxWait, into);
        if (into != null && outcome >= 0) {
            into.mark(into.mark() + returned);
        }
        return outcome;
    }

    @Override
    synchronized long take(long permits, long now) {
        settleIfAdmitted(permits, now, 0);
        return super.take(permits, now);
    }

    /** A refusal changes no state (I1), because the next call may have an earlier time. */
    private void settleIfAdmitted(long permits, long now, long maxWait) {
        if (returned > 0 && peek(permits, now, maxWait) >= 0) {
            settle(now);
        }
    }

    /** Moves V and W forward when the bucket has been full since, as the next call would. */
    private void settle(long now) {
        long full = parameters().time.at(now) - parameters().most;
        long v = zeroAt;
        if (returned > 0 && v < full && v != RETIRED && ZERO_AT.compareAndSet(this, v, full)) {
            returned = Math.max(0, v + returned - full);
        }
    }

    @Override
    synchronized boolean cancel(Grant grant, long now) {
        settle(now);
        Parameters p = parameters();
        long cost = p.time.cost(grant.permits());
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return false;
            }
            long w = v + returned;
            long behind = w - grant.mark();
            long back = p.back(cost, behind, v, w, p.time.at(now));
            if (back <= 0) {
                return true;
            }
            if (ZERO_AT.compareAndSet(this, v, v - back)) {
                returned += behind == 0 ? 0 : back;
                return true;
            }
        }
    }
}
