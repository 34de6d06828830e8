package io.ratelimited.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * Token bucket, GCRA, leaky bucket and smooth bursty: one word, the time V (in units of {@link PermitTime}) at which
 * the bucket holds, or held, zero permits. A bucket of depth D holds {@code now − max(V, now − D)}; a negative amount is
 * debt. A call of cost c moves V to {@code max(V, now − D) + c}.
 *
 * <table>
 * <caption>How the four differ</caption>
 * <tr><th>algorithm</th><th>D</th><th>goes when</th><th>refused for ever</th><th>start</th></tr>
 * <tr><td>TOKEN_BUCKET, GCRA</td><td>burst</td><td>its own permits are there</td><td>more than burst</td><td>full</td></tr>
 * <tr><td>SMOOTH_BURSTY</td><td>burst</td><td>its predecessors' debt is paid</td><td>never</td><td>empty</td></tr>
 * <tr><td>LEAKY_BUCKET</td><td>0</td><td>its slot begins, less than burst slots ahead</td><td>more than burst</td>
 * <td>idle</td></tr>
 * </table>
 */
class VirtualTime extends Cell {

    static final VarHandle ZERO_AT;
    /** Reserved value of {@link #zeroAt}: retired (I4). No reachable time comes near it. */
    static final long RETIRED = Long.MIN_VALUE;

    static {
        try {
            ZERO_AT = MethodHandles.lookup().findVarHandle(VirtualTime.class, "zeroAt", long.class);
        } catch (ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    private final Terms terms;
    /** V: units since the base of the terms' time; {@link #RETIRED}. */
    volatile long zeroAt;

    VirtualTime(Terms terms, long zeroAt) {
        this.terms = terms;
        this.zeroAt = zeroAt;
    }

    @Override
    final Terms terms() {
        return terms;
    }

    @Override
    long reserve(long permits, long now, long maxWait, @Nullable CellReservation into) {
        Terms t = terms;
        if (t.change() != null) {
            return MOVED;
        }
        if (permits > t.capacity) {
            return NEVER;
        }
        long cost = t.time.cost(permits);
        long units = t.time.at(now);
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return MOVED;
            }
            long end = Math.max(v, units - t.most) + cost;
            long wait = t.wait(end, cost, units, now, maxWait);
            if (wait < 0 || ZERO_AT.compareAndSet(this, v, end)) {
                if (into != null) {
                    into.mark(end);
                }
                return wait;
            }
        }
    }

    /**
     * The shortest way to a decision. The clock is a barrier to the processor, so every step from its reading to the
     * swap counts in full; what does not depend on the time does not.
     */
    @Override
    long take(long permits, long now) {
        Terms t = terms;
        if (t.change() != null) {
            return MOVED;
        }
        if (permits > t.mostAtOnce) {
            return NEVER;
        }
        long cost = permits * t.unit;
        long units = t.unitIsNano ? now - t.base : t.time.at(now);
        long full = units - (t.most - cost);
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return MOVED;
            }
            long end = v + cost;
            if (end < full) {
                end = full;
            }
            long ahead = (t.paysFirst ? end : end - cost) - units;
            if (ahead > 0) {
                return ~(t.unitIsNano ? ahead : ahead >> 4);
            }
            if (ZERO_AT.compareAndSet(this, v, end)) {
                return 0;
            }
        }
    }

    @Override
    long peek(long permits, long now, long maxWait) {
        long v = zeroAt;
        if (v == RETIRED || terms.change() != null) {
            return MOVED;
        }
        if (permits > terms.capacity) {
            return NEVER;
        }
        long cost = terms.time.cost(permits);
        long units = terms.time.at(now);
        return terms.wait(Math.max(v, units - terms.most) + cost, cost, units, now, maxWait);
    }

    /**
     * The last reservation is undone exactly, in this word. One that others have reserved behind needs a second word, and
     * with it another cell: {@link DividedTime}.
     */
    @Override
    boolean cancel(CellReservation reservation, long now) {
        long cost = terms.time.cost(reservation.permits());
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return false;
            }
            long behind = v - reservation.mark();
            if (behind != 0) {
                return terms.back(cost, behind, v, v, terms.time.at(now)) <= 0;
            }
            if (ZERO_AT.compareAndSet(this, v, v - cost)) {
                return true;
            }
        }
    }

    @Override
    @Nullable
    Cell divide() {
        long v = (long) ZERO_AT.getAndSet(this, RETIRED);
        return v == RETIRED ? null : new DividedTime(this, v);
    }

    @Override
    long stamp() {
        return zeroAt;
    }

    /** Where the next caller pays, one call goes on credit beside what is stored. */
    @Override
    long remaining(long now) {
        long units = terms.time.at(now);
        long v = Math.max(zeroAt, units - terms.most);
        long stored = terms.time.permits(Math.min(terms.depth, units - v));
        if (terms.paysFirst) {
            return stored;
        }
        return v - units > 0 ? 0 : stored + 1;
    }

    /** What is stored of a last permit, where a fraction can be stored, adds none to what remains. */
    @Override
    long nanosToWhole(long now) {
        return terms.time.nanosUntil(zeroAt + terms.depth - terms.depth % terms.unit, now);
    }

    @Override
    long nanosToFresh(long now) {
        return terms.time.nanosUntil(zeroAt + terms.depth, now);
    }

    @Override
    Cell retire() {
        return new VirtualTime(terms, (long) ZERO_AT.getAndSet(this, RETIRED));
    }

    @Override
    Cell copy() {
        return new VirtualTime(terms, zeroAt);
    }

    @Override
    void absorb(Cell other) {
        long that = ((VirtualTime) other).zeroAt;
        for (long v = zeroAt; v < that && !ZERO_AT.compareAndSet(this, v, that); ) {
            v = zeroAt;
        }
    }

    @Override
    Budget leave(long now) {
        long units = terms.time.at(now);
        long v = Math.max(zeroAt, units - terms.most);
        if (v <= units) {
            return Budget.ofStored(Math.min(terms.depth, units - v), terms.depth, terms.unit, !terms.paysFirst);
        }
        return Budget.ofDebt(terms.time.permitsExactly(v - units), terms.time.nanosUntil(v, now), !terms.paysFirst);
    }

    /** The parameters of the four algorithms. */
    static final class Terms extends io.ratelimited.core.Terms {

        private static final long SECOND = 1_000_000_000L;

        final PermitTime time;
        /** Units of one permit. */
        private final long unit;
        /** D: units the bucket can hold. */
        private final long depth;
        /** D and the grain of the clock: a call that could only come a nanosecond late loses nothing by it. */
        final long most;
        /** A call waits for its own permits; otherwise for those of its predecessors. */
        private final boolean paysFirst;
        /** A wait of so many units is refused. */
        private final long queue;
        /** The most permits of one call. */
        private final long capacity;
        /** The most permits of one call whose cost is below {@link PermitTime#FAR}. */
        private final long mostAtOnce;
        /** What {@link #time} would work out, at hand for {@link VirtualTime#take}. */
        private final long base;

        private final boolean unitIsNano;

        Terms(Limit limit, long base) {
            super(limit);
            Algorithm algorithm = limit.algorithm();
            this.time = new PermitTime(limit.rate(), base);
            this.unit = time.cost(1);
            this.paysFirst = algorithm == Algorithm.TOKEN_BUCKET || algorithm == Algorithm.GCRA;
            boolean queues = algorithm == Algorithm.LEAKY_BUCKET;
            this.depth = queues ? 0 : limit.storesOneSecond() ? time.at(base + SECOND) : time.cost(limit.burst());
            this.most = depth + time.grain();
            this.queue = queues ? time.cost(limit.burst()) : Long.MAX_VALUE;
            this.capacity = limit.capacity();
            this.mostAtOnce = Math.min(capacity, (PermitTime.FAR - 1) / unit);
            this.base = base;
            this.unitIsNano = time.unitIsNano();
            if (algorithm == Algorithm.SMOOTH_BURSTY) {
                beginWith(new VirtualTime(this, 0));
            }
        }

        /**
         * Units that a reservation gives back. The last one: all. Behind a call that paid for itself (token bucket) others
         * may have reserved. If all of them have gone already, what the bucket could still hold had the call never been: no
         * more than the room that was left above it since. If some still wait, their times stand and only the rest is
         * free. Where the next caller pays, slots behind stand and nothing is free.
         *
         * @param behind units reserved behind it
         * @param latest no earlier than any caller's time
         */
        long back(long cost, long behind, long v, long latest, long units) {
            if (behind == 0) {
                return cost;
            }
            if (!paysFirst) {
                return 0;
            }
            long free = latest <= units ? cost : cost - behind;
            return Math.min(free, v - (units - most) - behind);
        }

        /** The wait of a call that would move V to the end, or the complement of its retry-after. */
        private long wait(long end, long cost, long units, long now, long maxWait) {
            long due = paysFirst ? end : end - cost;
            if (cost >= PermitTime.FAR) {
                return NEVER;
            }
            if (due - units <= 0) {
                return 0;
            }
            if (due - units > PermitTime.FAR) {
                return UNKNOWN;
            }
            long wait = time.nanosUntil(due, now);
            long tooLong =
                    Math.max(wait - maxWait, queue == Long.MAX_VALUE ? 0 : time.nanosUntil(due - queue + 1, now));
            return tooLong > 0 ? ~tooLong : wait;
        }

        @Override
        Cell whole(long now) {
            return new VirtualTime(this, time.at(now) - depth);
        }

        @Override
        void startEmpty() {
            if (limit().algorithm() != Algorithm.LEAKY_BUCKET) {
                beginWith(new VirtualTime(this, 0));
            }
        }

        /** Debt in permits. Guava keeps it in time: so does SMOOTH_BURSTY, where that forgives none of it. */
        @Override
        Cell resume(Budget handed, long now) {
            Budget budget = handed.as(!paysFirst);
            long units = time.at(now);
            if (budget.debt() == 0) {
                return new VirtualTime(this, units - budget.leftOf(depth, unit));
            }
            long debt = time.units(budget.debt());
            if (limit().algorithm() == Algorithm.SMOOTH_BURSTY) {
                debt = Math.max(debt, time.at(now + budget.debtNanos()) - units);
            }
            return new VirtualTime(this, units + Math.min(PermitTime.FAR, debt));
        }

        @Override
        long idleNanos() {
            return time.nanos(Math.max(depth, unit));
        }
    }
}
