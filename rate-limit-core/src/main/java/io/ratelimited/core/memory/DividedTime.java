package io.ratelimited.core.memory;

import org.jspecify.annotations.Nullable;

/**
 * A cell in which a grant was given back while later ones stayed, or in which a charge made debt. The later callers keep
 * their times, so V no longer shows how much was granted after a given grant. A second word does: W, the value that V would have if nothing had been given
 * back from the middle. Grants are marked by W, which only the cancellation of the last grant lowers.
 *
 * <p>The monitor guards every change but {@link #retire}.
 */
final class DividedTime extends VirtualTime {

    private final VirtualTime before;
    /** W − V. */
    private long returned;
    /** What was charged since the last grant, if debt came of it: no caller waits for it. */
    private long charged;

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
        refillIfAdmitted(permits, now, maxWait);
        long outcome = super.reserve(permits, now, maxWait, into);
        if (outcome >= 0) {
            charged = 0;
            if (into != null) {
                into.mark(into.mark() + returned);
            }
        }
        return outcome;
    }

    @Override
    synchronized long take(long permits, long now) {
        refillIfAdmitted(permits, now, 0);
        long outcome = super.take(permits, now);
        if (outcome >= 0) {
            charged = 0;
        }
        return outcome;
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
            long back = p.back(cost, behind, v, w - charged, p.time.at(now));
            if (back <= 0) {
                return true;
            }
            if (ZERO_AT.compareAndSet(this, v, v - back)) {
                returned += behind == 0 ? 0 : back;
                return true;
            }
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
            long end = p.charged(v, permits, units);
            if (ZERO_AT.compareAndSet(this, v, end)) {
                charged = end > units ? charged + end - Math.max(v, units - p.most) : 0;
                return true;
            }
        }
    }
}
