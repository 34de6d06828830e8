package io.ratelimited.core;

import org.jspecify.annotations.Nullable;

/**
 * A cell from whose middle permits were given back: the callers behind keep their times, so V no longer tells what is
 * reserved behind a reservation. A second word does, W: what V would be if nothing had been given back from the
 * middle. Reservations are marked by W, which only the undoing of the last one lowers.
 *
 * <p>Changes under its monitor, except that {@link #retire} ends it.
 */
final class DividedTime extends VirtualTime {

    private final VirtualTime before;
    /** W − V. */
    private long returned;

    DividedTime(VirtualTime before, long zeroAt) {
        super(before.terms(), zeroAt);
        this.before = before;
    }

    @Override
    boolean succeeds(Cell other) {
        return other == before;
    }

    @Override
    synchronized long reserve(long permits, long now, long maxWait, @Nullable CellReservation into) {
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

    /** A refusal changes no state (I1): the next call may come with an earlier time. */
    private void settleIfAdmitted(long permits, long now, long maxWait) {
        if (returned > 0 && peek(permits, now, maxWait) >= 0) {
            settle(now);
        }
    }

    /** The bucket has been full since: V and W are as late as they would be by the next call. */
    private void settle(long now) {
        long full = terms().time.at(now) - terms().most;
        long v = zeroAt;
        if (returned > 0 && v < full && v != RETIRED && ZERO_AT.compareAndSet(this, v, full)) {
            returned = Math.max(0, v + returned - full);
        }
    }

    @Override
    synchronized boolean cancel(CellReservation reservation, long now) {
        settle(now);
        Terms t = terms();
        long cost = t.time.cost(reservation.permits());
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return false;
            }
            long w = v + returned;
            long behind = w - reservation.mark();
            long back = t.back(cost, behind, v, w, t.time.at(now));
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
