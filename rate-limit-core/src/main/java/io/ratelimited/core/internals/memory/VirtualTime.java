package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Limit;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigInteger;
import org.jspecify.annotations.Nullable;

/**
 * Token bucket, GCRA, leaky bucket and smooth bursty: one word, the time V (in units of {@link PermitTime}) at which
 * the bucket holds, or held, zero permits. A bucket of depth D holds {@code now − max(V, now − D)}; a negative amount is
 * debt. A call of cost c moves V to {@code max(V, now − D) + c}.
 *
 * <table>
 * <caption>How the four differ</caption>
 * <tr><th>algorithm</th><th>D</th><th>goes when</th><th>rejected for ever</th><th>start</th></tr>
 * <tr><td>TOKEN_BUCKET, GCRA</td><td>burst</td><td>its own permits are there</td><td>more than burst</td><td>full</td></tr>
 * <tr><td>SMOOTH_BURSTY</td><td>burst</td><td>its predecessors' debt is paid</td><td>never</td><td>empty</td></tr>
 * <tr><td>LEAKY_BUCKET</td><td>0</td><td>its slot starts, less than burst slots ahead</td><td>more than burst</td>
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

    private final Parameters parameters;
    /** V: units since the base of the parameters' time; {@link #RETIRED}. */
    volatile long zeroAt;

    VirtualTime(Parameters parameters, long zeroAt) {
        this.parameters = parameters;
        this.zeroAt = zeroAt;
    }

    @Override
    final Parameters parameters() {
        return parameters;
    }

    @Override
    long reserve(long permits, long now, long maxWait, @Nullable Grant into) {
        Parameters p = parameters;
        if (p.change() != null) {
            return MOVED;
        }
        if (permits > p.capacity) {
            return NEVER;
        }
        long cost = p.time.cost(permits);
        long units = p.time.at(now);
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return MOVED;
            }
            long end = Math.max(v, units - p.fullDepth) + cost;
            long wait = p.wait(end, cost, units, now, maxWait);
            if (wait < 0) {
                return wait;
            }
            long instant = wait == 0 ? units : end;
            use(instant);
            if (ZERO_AT.compareAndSet(this, v, end)) {
                if (into != null) {
                    into.mark(end);
                    into.time(wait == 0 ? units : Grant.UNKNOWN);
                }
                return wait;
            }
        }
    }

    /**
     * The fast path. Reading the clock is a barrier to the processor, so every step from there to the compare-and-set costs
     * its full time; steps that do not use the time run beside the reading.
     */
    @Override
    long take(long permits, long now) {
        Parameters p = parameters;
        if (p.change() != null) {
            return MOVED;
        }
        if (permits > p.maxPermits) {
            return NEVER;
        }
        long cost = permits * p.unit;
        long units = p.unitIsNano ? now - p.base : p.time.at(now);
        long full = units - (p.fullDepth - cost);
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return MOVED;
            }
            long end = v + cost;
            if (end < full) {
                end = full;
            }
            long ahead = (p.paysFirst ? end : end - cost) - units;
            if (ahead > 0) {
                return ~(p.unitIsNano ? ahead : ahead >> 4);
            }
            if (ZERO_AT.compareAndSet(this, v, end)) {
                return 0;
            }
        }
    }

    @Override
    long peek(long permits, long now, long maxWait) {
        long v = zeroAt;
        if (v == RETIRED || parameters.change() != null) {
            return MOVED;
        }
        if (permits > parameters.capacity) {
            return NEVER;
        }
        long cost = parameters.time.cost(permits);
        long units = parameters.time.at(now);
        return parameters.wait(Math.max(v, units - parameters.fullDepth) + cost, cost, units, now, maxWait);
    }

    /**
     * Undoes the last grant exactly, in this word. A grant with later ones behind it needs a second word, and so another
     * cell: {@link DividedTime}.
     */
    @Override
    boolean giveBack(Grant grant, long permits, long now) {
        long cost = parameters.time.cost(permits);
        while (true) {
            long v = zeroAt;
            if (v == RETIRED) {
                return false;
            }
            long behind = v - grant.mark();
            long units = parameters.time.at(now);
            if (behind != 0 || parameters.staysAhead(grant, permits, v, units)) {
                return DividedTime.back(parameters, grant, cost, v, behind, 0, v, latest(units), units) <= 0;
            }
            if (ZERO_AT.compareAndSet(this, v, v - cost)) {
                return true;
            }
        }
    }

    /** Debt that no caller waits for needs a second word, as {@link #giveBack} may. */
    @Override
    boolean charge(long permits, long now) {
        long units = parameters.time.at(now);
        while (true) {
            long v = zeroAt;
            long end = parameters.charged(v, permits, units);
            if (v == RETIRED || parameters.change() != null || (parameters.paysFirst && end > units)) {
                return false;
            }
            use(units);
            if (ZERO_AT.compareAndSet(this, v, end)) {
                return true;
            }
        }
    }

    /** Grants of this cell give back nothing to the other one. */
    @Override
    final Cell refilled(long permits, long now) {
        long v = (long) ZERO_AT.getAndSet(this, RETIRED);
        long full = parameters.time.at(now) - parameters.fullDepth;
        return v == RETIRED
                ? this
                : new VirtualTime(parameters, Math.max(v - parameters.time.cost(permits), Math.min(v, full)));
    }

    /** The cell of one word that this cell continues, or this cell itself. */
    VirtualTime origin() {
        return this;
    }

    /** The latest time at which permits may have been used; at most the present time. */
    long latest(long units) {
        return units;
    }

    /** Records that permits are about to be used at a time. */
    void use(long instant) {}

    @Override
    final boolean hasOriginOf(Cell other) {
        return other instanceof VirtualTime that && origin() == that.origin();
    }

    /** A grant to a bucket that was not full may overlap with one before it. */
    @Override
    boolean needsDate(Grant grant) {
        long begin = grant.mark() - parameters.time.cost(grant.permits());
        return parameters.paysFirst && begin > grant.instant() - parameters.fullDepth;
    }

    @Override
    @Nullable
    Cell dated(long now) {
        long v = (long) ZERO_AT.getAndSet(this, RETIRED);
        return v == RETIRED ? null : new DatedTime(this, v, Math.max(v, parameters.time.at(now)));
    }

    @Override
    @Nullable
    Cell divide(long now) {
        long v = (long) ZERO_AT.getAndSet(this, RETIRED);
        return v == RETIRED ? null : new DividedTime(this, v, latest(Math.max(v, parameters.time.at(now))));
    }

    @Override
    long stamp() {
        return zeroAt;
    }

    /** Where the next caller pays, one call is admitted on credit, in addition to the stored permits. */
    @Override
    long remaining(long now) {
        long units = parameters.time.at(now);
        long v = Math.max(zeroAt, units - parameters.fullDepth);
        long stored = parameters.time.permits(Math.min(parameters.depth, units - v));
        if (parameters.paysFirst) {
            return stored;
        }
        return v - units > 0 ? 0 : stored + 1;
    }

    /** A stored fraction of a permit adds no call to the remaining ones. */
    @Override
    long nanosToFull(long now) {
        return parameters.time.nanosUntil(zeroAt + parameters.depth - parameters.depth % parameters.unit, now);
    }

    @Override
    long nanosToInitial(long now) {
        return Math.max(
                parameters.nanosToForget(now),
                parameters.time.nanosUntil(zeroAt + parameters.depth, now - parameters.nanosUnused()));
    }

    @Override
    Cell retire() {
        return new VirtualTime(parameters, (long) ZERO_AT.getAndSet(this, RETIRED));
    }

    @Override
    boolean retireIfInitial(long now) {
        long full = parameters.time.at(now - parameters.nanosUnused()) - parameters.depth;
        boolean forgets = parameters.nanosToForget(now) == 0;
        for (long v = zeroAt; forgets && v <= full && v != RETIRED; v = zeroAt) {
            if (ZERO_AT.compareAndSet(this, v, RETIRED)) {
                return true;
            }
        }
        return false;
    }

    @Override
    Cell copy() {
        return new VirtualTime(parameters, zeroAt);
    }

    @Override
    boolean covers(Cell other) {
        return zeroAt >= ((VirtualTime) other).zeroAt;
    }

    @Override
    void absorb(Cell other) {
        long that = ((VirtualTime) other).zeroAt;
        for (long v = zeroAt; v < that && !ZERO_AT.compareAndSet(this, v, that); ) {
            v = zeroAt;
        }
    }

    /** The parameters of the four algorithms. */
    static final class Parameters extends CellParameters {

        private static final long SECOND = 1_000_000_000L;

        final PermitTime time;
        /** Units of one permit. */
        private final long unit;
        /** D: units the bucket can hold. */
        private final long depth;
        /** D plus one tick of the clock, so that a caller loses no time that the clock cannot show. */
        final long fullDepth;
        /** A call waits for its own permits; otherwise for those of its predecessors. */
        final boolean paysFirst;
        /** A wait of so many units or more is rejected. */
        private final long queue;
        /** The largest number of permits of one call. */
        private final long capacity;
        /** The largest number of permits of one call whose cost is below {@link PermitTime#FAR}. */
        private final long maxPermits;
        /** Copied from {@link #time} to shorten {@link VirtualTime#take}. */
        private final long base;

        private final boolean unitIsNano;

        Parameters(Limit limit, long base) {
            super(limit);
            Algorithm algorithm = limit.algorithm();
            this.time = new PermitTime(limit.rate(), base);
            this.unit = time.cost(1);
            this.paysFirst = algorithm.family() == Family.BUCKET;
            boolean queues = algorithm.queues();
            this.depth = queues ? 0 : limit.storesOneSecond() ? time.at(base + SECOND) : time.cost(limit.burst());
            this.fullDepth = depth + time.grain();
            this.queue = queues ? time.cost(limit.burst()) : Long.MAX_VALUE;
            this.capacity = limit.capacity();
            this.maxPermits = Math.min(capacity, (PermitTime.FAR - 1) / unit);
            this.base = base;
            this.unitIsNano = time.unitIsNano();
            if (algorithm.startsEmpty()) {
                beginWith(new VirtualTime(this, 0));
            }
        }

        /** Returns whether a part of the last grant stays in the future, and so the whole grant behind earlier ones. */
        boolean staysAhead(Grant grant, long permits, long v, long units) {
            return paysFirst && v > units && permits < grant.permits();
        }

        /** V after a charge. */
        long charged(long v, long permits, long units) {
            return Math.max(v, Math.min(Math.max(v, units - fullDepth) + time.cost(permits), units + PermitTime.FAR));
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
        Cell full(long now) {
            return new VirtualTime(this, time.at(now) - depth);
        }

        /** Keeps debt in permits, and of the stored permits neither more nor, the first time, a larger share. */
        @Override
        Cell resume(Cell before, long at) {
            Parameters old = ((VirtualTime) before).parameters;
            long units = time.at(at);
            long oldUnits = old.time.at(at);
            long ahead = Math.max(((VirtualTime) before).zeroAt, oldUnits - old.fullDepth) - oldUnits;
            return new VirtualTime(
                    this,
                    ahead > 0
                            ? units + Math.min(PermitTime.FAR, time.units(old.time.permitsExactly(ahead)))
                            : units - left(Math.min(old.depth, -ahead), old));
        }

        /** Converts stored time from units of the old parameters into units of these, as much as fits; rounded down. */
        private long left(long stored, Parameters old) {
            if (stored == 0) {
                return 0;
            }
            BigInteger oldRoom = BigInteger.valueOf(old.depth).multiply(BigInteger.valueOf(unit));
            BigInteger room = BigInteger.valueOf(depth).multiply(BigInteger.valueOf(old.unit));
            boolean shares = room.compareTo(oldRoom) < 0 && !old.isOfOneCell();
            return BigInteger.valueOf(stored)
                    .multiply(BigInteger.valueOf(shares ? depth : unit))
                    .divide(BigInteger.valueOf(shares ? old.depth : old.unit))
                    .min(BigInteger.valueOf(depth))
                    .longValueExact();
        }

        @Override
        long idleNanos() {
            return time.nanos(Math.max(depth, unit));
        }
    }
}
