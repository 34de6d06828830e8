package io.ratelimited.core;

import java.math.BigInteger;

/**
 * Time in units of which one permit takes a whole number, so that no rate drifts: for R permits in P nanoseconds one
 * permit is {@code m = max(1, floor(P / R))} units of {@code P / (R·m)} nanoseconds each (from 1 to 2). The clock is
 * converted by one multiplication; the conversion is monotone, at most one unit above the exact value, and since it is
 * made from absolute time its error does not add up. Above one permit a nanosecond a unit stands for {@code g} permits
 * and a call costs {@code ceil(n / g)} units. Immutable.
 */
final class PermitTime {

    /** No sum of three values below this overflows. */
    static final long FAR = 1L << 60;

    private final long base;
    private final long unitsPerPermit;
    private final long permitsPerUnit;
    /** The most permits whose cost is below {@link #FAR}. */
    private final long mostPermits;
    /** Units per nanosecond, times 2^63; 0 when a unit is exactly a nanosecond. */
    private final long unitsPerNano;
    /** Nanoseconds per unit, times 2^62. */
    private final long nanosPerUnit;

    /** @param base the nanosecond time that is unit 0 */
    PermitTime(Rate rate, long base) {
        long nanos = rate.period().toNanos();
        this.base = base;
        this.unitsPerPermit = Math.max(1, nanos / rate.permits());
        this.permitsPerUnit = Math.max(1, (rate.permits() - 1) / nanos + 1);
        this.mostPermits = FAR / unitsPerPermit;
        BigInteger units = BigInteger.valueOf(rate.permits()).multiply(BigInteger.valueOf(unitsPerPermit));
        BigInteger span = BigInteger.valueOf(nanos).multiply(BigInteger.valueOf(permitsPerUnit));
        boolean exact = units.equals(span);
        this.unitsPerNano = exact ? 0 : ceilDiv(units.shiftLeft(63), span).longValueExact();
        this.nanosPerUnit = exact ? 0 : span.shiftLeft(62).divide(units).longValueExact();
    }

    private static BigInteger ceilDiv(BigInteger dividend, BigInteger divisor) {
        return dividend.add(divisor).subtract(BigInteger.ONE).divide(divisor);
    }

    /** The time in units. */
    long at(long nanos) {
        long elapsed = nanos - base;
        return unitsPerNano == 0 ? elapsed : Math.multiplyHigh(elapsed << 1, unitsPerNano);
    }

    /** Units that the permits take, at most {@link #FAR}. */
    long cost(long permits) {
        if (permitsPerUnit == 1) {
            return permits <= mostPermits ? permits * unitsPerPermit : FAR;
        }
        return Math.min(FAR, (permits - 1) / permitsPerUnit + 1);
    }

    /** Whole permits in a span of units, rounded down; 0 for a negative span. */
    long permits(long units) {
        return units <= 0 ? 0 : units / unitsPerPermit * permitsPerUnit;
    }

    /** Permits in a span of units, with their fraction. */
    double permitsExactly(long units) {
        return (double) units / unitsPerPermit * permitsPerUnit;
    }

    /** Units of a number of permits with a fraction, rounded up. */
    long units(double permits) {
        return (long) Math.ceil(permits / permitsPerUnit * unitsPerPermit);
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
        if (unitsPerNano == 0) {
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
