package io.ratelimited.redis.internals.script;

import io.ratelimited.core.Rate;
import java.math.BigInteger;

/**
 * The time that permits of a rate take: one permit takes {@code step / one} microseconds, exactly.
 *
 * @param one parts of a microsecond
 * @param step parts that one permit takes
 */
public record PermitCost(long one, long step) {

    /** The longest time that a call waits, in microseconds: as in the scripts. */
    public static final long FAR = (1L << 60) / 1000;

    private static final BigInteger MAX_PARTS = BigInteger.ONE.shiftLeft(40);
    private static final BigInteger MAX_STEP = BigInteger.ONE.shiftLeft(52);

    /**
     * A time.
     *
     * @param micros whole microseconds
     * @param parts of one more microsecond
     */
    public record Time(long micros, long parts) {

        private static final Time ENDLESS = new Time(FAR, 0);
    }

    public static PermitCost of(Rate rate) {
        boolean counts = rate.isClosed() || rate.isUnlimited();
        BigInteger period = BigInteger.valueOf(counts ? 1000 : rate.period().toNanos());
        BigInteger thousands = BigInteger.valueOf(counts ? 1 : rate.permits()).multiply(BigInteger.valueOf(1000));
        BigInteger common = period.gcd(thousands);
        BigInteger parts = thousands.divide(common);
        BigInteger exact = period.divide(common);
        if (parts.compareTo(MAX_PARTS) > 0) {
            exact = ceilDiv(exact.multiply(MAX_PARTS), parts);
            parts = MAX_PARTS;
        }
        if (exact.compareTo(MAX_STEP) > 0) {
            exact = ceilDiv(exact, parts);
            parts = BigInteger.ONE;
        }
        return new PermitCost(parts.longValueExact(), exact.longValueExact());
    }

    private static BigInteger ceilDiv(BigInteger dividend, BigInteger divisor) {
        return dividend.add(divisor).subtract(BigInteger.ONE).divide(divisor);
    }

    /** Returns the cost of permits, as a time; at most {@link #FAR}. */
    public Time of(long permits) {
        if (Math.multiplyHigh(step, permits) == 0 && step * permits >= 0) {
            long parts = step * permits;
            return parts / one >= FAR ? Time.ENDLESS : new Time(parts / one, parts % one);
        }
        BigInteger[] both = BigInteger.valueOf(step)
                .multiply(BigInteger.valueOf(permits))
                .divideAndRemainder(BigInteger.valueOf(one));
        return both[0].bitLength() > 60 || both[0].longValue() >= FAR
                ? Time.ENDLESS
                : new Time(both[0].longValue(), both[1].longValue());
    }

    /** Returns the cost of permits, in nanoseconds, rounded up. */
    public long nanos(long permits) {
        Time cost = of(permits);
        return cost.micros * 1000 + (cost.parts * 1000 + one - 1) / one;
    }

    /** Permits that a time brings, rounded down: so many microseconds less a part. */
    public long permits(long micros, long part) {
        if (Math.multiplyHigh(micros, one) == 0 && micros * one >= 0) {
            return (micros * one - part) / step;
        }
        return BigInteger.valueOf(micros)
                .multiply(BigInteger.valueOf(one))
                .subtract(BigInteger.valueOf(part))
                .divide(BigInteger.valueOf(step))
                .longValue();
    }
}
