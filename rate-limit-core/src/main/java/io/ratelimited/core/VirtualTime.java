package io.ratelimited.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLong;
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
final class VirtualTime extends Cell {

    private static final VarHandle ZERO_AT;
    /** Reserved value of {@link #zeroAt}: retired (I4). No reachable time comes near it. */
    private static final long RETIRED = Long.MIN_VALUE;

    static {
        try {
            ZERO_AT = MethodHandles.lookup().findVarHandle(VirtualTime.class, "zeroAt", long.class);
        } catch (ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    private final Terms terms;
    /** V: units since the base of the terms' time; {@link #RETIRED}. */
    private volatile long zeroAt;

    private VirtualTime(Terms terms, long zeroAt) {
        this.terms = terms;
        this.zeroAt = zeroAt;
    }

    @Override
    Terms terms() {
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
            long epoch = into == null ? 0 : t.cancels.get();
            long v = zeroAt;
            if (v == RETIRED) {
                return MOVED;
            }
            long end = Math.max(v, units - t.most) + cost;
            long wait = t.wait(end, cost, units, now, maxWait);
            if (wait < 0 || ZERO_AT.compareAndSet(this, v, end)) {
                if (into != null) {
                    into.mark(end, epoch);
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
            if ((t.paysFirst ? end : end - cost) - units > 0) {
                return UNKNOWN;
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
     * The last reservation is undone exactly. Behind a call that paid for itself (token bucket) others may have reserved.
     * If all of them have gone already, what the bucket could still hold had the call never been is given back: no more
     * than the room that was left above it since. If some still wait, their times stand and only the rest is free. Where
     * the next caller pays, slots behind stand and nothing is free.
     *
     * <p>What was reserved behind is told by V, but only until permits are given back from the middle: reservations made
     * before that (in an earlier epoch) give nothing back any more. A reservation reads the epoch before V, and such a
     * cancel begins a new epoch between reading V and changing it, so that none is wrong about its own.
     */
    @Override
    void cancel(CellReservation reservation, long now) {
        long cost = terms.time.cost(reservation.permits());
        long end = reservation.mark();
        long epoch = reservation.epoch();
        long units = terms.time.at(now);
        while (true) {
            long v = zeroAt;
            if (v == RETIRED || terms.cancels.get() != epoch) {
                return;
            }
            if (v == end) {
                if (ZERO_AT.compareAndSet(this, v, v - cost)) {
                    return;
                }
                continue;
            }
            long back = v <= units ? Math.min(cost, end - (units - terms.most)) : cost - (v - end);
            if (back <= 0 || !terms.paysFirst || !terms.cancels.compareAndSet(epoch, epoch + 1)) {
                return;
            }
            epoch++;
            if (ZERO_AT.compareAndSet(this, v, v - back)) {
                return;
            }
        }
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
            return terms.depth == 0
                    ? new Budget(1, 1, 0, 0)
                    : new Budget(Math.min(terms.depth, units - v), terms.depth, 0, 0);
        }
        return new Budget(0, 1, terms.time.permitsExactly(v - units), terms.time.nanosUntil(v, now));
    }

    /** The parameters of the four algorithms. */
    static final class Terms extends io.ratelimited.core.Terms {

        private final PermitTime time;
        /** Units of one permit. */
        private final long unit;
        /** D: units the bucket can hold. */
        private final long depth;
        /** D and the grain of the clock: a call that could only come a nanosecond late loses nothing by it. */
        private final long most;
        /**
         * The least V of a fresh cell: a bucket that starts empty was empty when the limit was made, so that a key not
         * seen since has stored permits like a key that has been idle.
         */
        private long emptyAt;
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
        /** The epoch: how often permits were given back from the middle, to any cell. */
        private final AtomicLong cancels = new AtomicLong();

        Terms(Limit limit, long base) {
            super(limit);
            Algorithm algorithm = limit.algorithm();
            this.time = new PermitTime(limit.rate(), base);
            this.unit = time.cost(1);
            this.paysFirst = algorithm == Algorithm.TOKEN_BUCKET || algorithm == Algorithm.GCRA;
            boolean queues = algorithm == Algorithm.LEAKY_BUCKET;
            this.depth = queues || limit.burst() == 0 ? 0 : time.cost(limit.burst());
            this.most = depth + time.grain();
            this.emptyAt = paysFirst ? Long.MIN_VALUE : 0;
            this.queue = queues ? time.cost(limit.burst()) : Long.MAX_VALUE;
            this.capacity = limit.capacity();
            this.mostAtOnce = Math.min(capacity, (PermitTime.FAR - 1) / unit);
            this.base = base;
            this.unitIsNano = time.unitIsNano();
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
        Cell fresh(long now) {
            return new VirtualTime(this, Math.max(emptyAt, time.at(now) - depth));
        }

        @Override
        void startEmpty() {
            emptyAt = 0;
        }

        @Override
        void inherit(Budget untouched, long now) {
            if (!paysFirst) {
                emptyAt = cell(untouched, now).zeroAt;
            }
        }

        @Override
        Cell resume(Budget budget, long now) {
            return cell(budget, now);
        }

        private VirtualTime cell(Budget budget, long now) {
            long units = time.at(now);
            if (budget.debt() == 0) {
                return new VirtualTime(this, units - budget.shareOf(depth));
            }
            boolean keepsTime = limit().algorithm() == Algorithm.SMOOTH_BURSTY;
            long debt = keepsTime ? time.at(now + budget.debtNanos()) - units : time.units(budget.debt());
            return new VirtualTime(this, units + Math.min(PermitTime.FAR, debt));
        }

        @Override
        long idleNanos() {
            return time.nanos(Math.max(depth, unit));
        }
    }
}
