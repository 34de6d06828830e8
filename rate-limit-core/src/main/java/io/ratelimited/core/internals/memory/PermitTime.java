package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Rate;
import java.math.BigInteger;

/**
 * Time in units of which one permit takes a whole number, so that no rate drifts: for R permits in P nanoseconds one
 * permit is {@code m = max(1, floor(P / R))} units of {@code P / (R·m)} nanoseconds each (from 1 to 2; above one permit
 * a nanosecond a unit is a permit, down to a tenth). The clock is converted by multiplication; the conversion is
 * monotone, at most one unit above the exact value rounded down, and since it is made from absolute time its error does
 * not add up. It reaches 146 years from the base, or 29 at the highest rate. Immutable.
 */
final class PermitTime {

    /** No sum of three values below this overflows. */
    static final long FAR = 1L << 60;

    private final long base;
    private final long unitsPerPermit;
    /** The largest number of permits whose cost is not above {@link #FAR}. */
    private final long maxPermits;
    /** Whole units per nanosecond, and the rest times 2^63: 1 and 0 when a unit is exactly a nanosecond. */
    private final long unitsPerNano;

    private final long partOfUnitPerNano;
    /** Nanoseconds per unit, times 2^62; 0 when a unit is exactly a nanosecond. */
    private final long nanosPerUnit;

    /** @param base the nanosecond time that is unit 0 */
    PermitTime(Rate rate, long base) {
        long nanos = rate.period().toNanos();
        this.base = base;
        this.unitsPerPermit = Math.max(1, nanos / rate.permits());
        this.maxPermits = FAR / unitsPerPermit;
        long units = Math.multiplyExact(rate.permits(), unitsPerPermit);
        this.unitsPerNano = units / nanos;
        this.partOfUnitPerNano = ceilDiv(BigInteger.valueOf(units % nanos).shiftLeft(63), BigInteger.valueOf(nanos))
                .longValueExact();
        this.nanosPerUnit = unitsPerNano == 1 && partOfUnitPerNano == 0
                ? 0
                : BigInteger.valueOf(nanos)
                        .shiftLeft(62)
                        .divide(BigInteger.valueOf(units))
                        .longValueExact();
    }

    private static BigInteger ceilDiv(BigInteger dividend, BigInteger divisor) {
        return dividend.add(divisor).subtract(BigInteger.ONE).divide(divisor);
    }

    /** Returns whether a unit is exactly a nanosecond, as with most rates. */
    boolean unitIsNano() {
        return nanosPerUnit == 0;
    }

    /** The time in units. */
    long at(long nanos) {
        long elapsed = nanos - base;
        long units = elapsed * unitsPerNano;
        return partOfUnitPerNano == 0 ? units : units + Math.multiplyHigh(elapsed << 1, partOfUnitPerNano);
    }

    /** Units that may pass unseen between two readings of the clock: 0 where a unit is no shorter than a nanosecond. */
    long grain() {
        return Math.max(0, unitsPerNano + Long.signum(partOfUnitPerNano) - 1);
    }

    /** Units that the permits take, at most {@link #FAR}. */
    long cost(long permits) {
        return permits <= maxPermits ? permits * unitsPerPermit : FAR;
    }

    /** Whole permits in a span of units, rounded down; 0 for a negative span. */
    long permits(long units) {
        return Math.max(0, units) / unitsPerPermit;
    }

    /** Permits in a span of units, with their fraction. */
    double permitsExactly(long units) {
        return (double) units / unitsPerPermit;
    }

    /** Units of a number of permits with a fraction, rounded up. */
    long units(double permits) {
        return (long) Math.ceil(permits * unitsPerPermit);
    }

    /** Nanoseconds that a span of units takes, rounded up. */
    long nanos(long units) {
        return nanosUntil(units, base);
    }

    /**
     * The smallest wait from now, in nanoseconds, after which the time in units has reached the target; a target more
     * than {@link #FAR} units ahead counts as that far.
     */
    long nanosUntil(long distantTarget, long nanos) {
        long start = at(nanos);
        long units = Math.min(FAR, distantTarget - start);
        long target = start + units;
        if (units <= 0) {
            return 0;
        }
        if (nanosPerUnit == 0) {
            return units;
        }
        long wait = Math.multiplyHigh(units << 2, nanosPerUnit);
        while (at(nanos + wait) < target) {
            wait++;
        }
        while (wait > 0 && at(nanos + wait - 1) >= target) {
            wait--;
        }
        return wait;
    }
}
