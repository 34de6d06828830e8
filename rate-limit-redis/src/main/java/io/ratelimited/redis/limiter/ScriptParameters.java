package io.ratelimited.redis.limiter;

import io.ratelimited.core.Algorithm.Attribute;
import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.connection.ScriptArguments;
import java.math.BigInteger;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of a limit's script, and the cost of permits. Does not change with the limit, which gets new ones.
 * Thread-safe.
 *
 * <p>One permit of a rate takes {@code step / one} microseconds, exactly; see {@code virtual_time.lua}.
 */
final class ScriptParameters {

    /** Microseconds. */
    private static final long SECOND = 1_000_000;

    /** The longest time anyone waits, in microseconds: as in the scripts. */
    static final long FAR = (1L << 60) / 1000;

    /** The largest count of permits: as in the scripts. */
    private static final long MOST = 1L << 52;

    /** Below it a number of Lua is exact. */
    private static final double EXACT = 1L << 53;

    private static final BigInteger MOST_PARTS = BigInteger.ONE.shiftLeft(40);
    private static final BigInteger MOST_STEP = BigInteger.ONE.shiftLeft(52);
    /** A call without a lease of its own counts so long after its node was last heard of. */
    static final Duration NODE_LEASE = Duration.ofSeconds(30);

    private final Limit limit;
    private final String letter;
    /** What the state of a bucket depends on, stored with it; empty for a window, whose state does not. */
    private final String meta;
    /** Names the algorithm and the period, slots and zone of a window: what counts in another way has another key. */
    private final String keyEnd;

    private final List<String> parameters = new ArrayList<>();
    /** The parameters, if they are the same in every call. */
    private final @Nullable ScriptArguments always;

    private final LongSupplier origin;
    private final @Nullable ZoneOffsets offsets;

    /** Parts of a microsecond. */
    final long one;
    /** Parts that one permit takes. */
    final BigInteger step;
    /** What a bucket holds, as a time. */
    final Cost depth;
    /** The same in whole permits. */
    private final long stored;

    private final double mostPermits;

    /** @param origin when the cluster began, in microseconds since 1970: a bucket that starts empty was empty then */
    ScriptParameters(Limit limit, Ticker ticker, LongSupplier origin) {
        this.limit = limit;
        this.origin = origin;
        Rate rate = limit.rate();
        boolean counts = rate.isClosed() || rate.isUnlimited();
        BigInteger period = BigInteger.valueOf(counts ? 1000 : rate.period().toNanos());
        BigInteger thousands = BigInteger.valueOf(counts ? 1 : rate.permits()).multiply(BigInteger.valueOf(1000));
        BigInteger common = period.gcd(thousands);
        BigInteger parts = thousands.divide(common);
        BigInteger exact = period.divide(common);
        if (parts.compareTo(MOST_PARTS) > 0) {
            exact = ceilDiv(exact.multiply(MOST_PARTS), parts);
            parts = MOST_PARTS;
        }
        if (exact.compareTo(MOST_STEP) > 0) {
            exact = ceilDiv(exact, parts);
            parts = BigInteger.ONE;
        }
        this.one = parts.longValueExact();
        this.step = exact;
        boolean stores =
                limit.algorithm().uses(Attribute.BURST) && !limit.algorithm().queues();
        this.stored = !stores ? 0 : limit.storesOneSecond() ? permitsInASecond() : limit.burst();
        this.depth = limit.storesOneSecond() ? new Cost(SECOND, 0) : cost(stored);
        this.mostPermits = limit.algorithm().uses(Attribute.WARMUP)
                ? (1L << 60) / (interval(limit) * limit.coldFactor())
                : Double.MAX_VALUE;
        letter = switch (limit.algorithm()) {
            case SLIDING_WINDOW -> "r";
            case SLIDING_LOG -> "q";
            default -> limit.algorithm().name().substring(0, 1).toLowerCase(Locale.ROOT);
        };
        String size = rate.permits() + "/" + brief(rate.period().toNanos());
        String window = "";
        String storedWith = "";
        switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA, SMOOTH_BURSTY, LEAKY_BUCKET -> {
                virtualTime();
                storedWith = size + burst();
            }
            case WARM_UP -> {
                warmUp();
                storedWith = size + "/" + limit.warmup().toNanos() + "/" + limit.coldFactor();
            }
            case FIXED_WINDOW -> {
                add(rate.permits());
                add(micros(rate.period()));
                ZoneId zone = limit.zone().normalized();
                window = brief(micros(rate.period())) + (zone.equals(ZoneOffset.UTC) ? "" : "/" + zone);
            }
            case SLIDING_WINDOW -> {
                long slot = (micros(rate.period()) - 1) / limit.slots() + 1;
                add(rate.permits());
                add(slot);
                add(limit.slots() + 1);
                window = brief(slot) + "/" + limit.slots();
            }
            case SLIDING_LOG -> {
                add(rate.permits());
                add(micros(rate.period()));
                window = brief(micros(rate.period()));
            }
            case CONCURRENCY -> {
                add(limit.maxConcurrent());
                Duration lease = limit.lease();
                add(lease == null ? micros(NODE_LEASE) : Math.min(FAR, micros(lease)));
            }
            case DEFAULT -> throw new IllegalArgumentException("no algorithm: " + limit);
        }
        meta = storedWith;
        keyEnd = "~" + letter + window;
        offsets = limit.algorithm().followsCalendar() ? new ZoneOffsets(limit, ticker) : null;
        always = offsets == null && !limit.algorithm().startsEmpty() ? arguments(-1) : null;
    }

    private void add(long parameter) {
        parameters.add(Long.toString(parameter));
    }

    private void add(double parameter) {
        parameters.add(Double.toString(parameter));
    }

    private void virtualTime() {
        boolean queues = limit.algorithm().queues();
        boolean pays = limit.algorithm().family() == Family.BUCKET;
        Cost burst = cost(limit.burst());
        add(one);
        add(depth.micros);
        add(depth.parts);
        add(queues ? burst.micros : -1);
        add(queues ? burst.parts : 0);
        add(pays ? 1 : 0);
        parameters.add(ORIGIN);
        parameters.add(step.toString());
        add(queues ? limit.burst() : stored);
    }

    /** What can be stored, if it is not the number in the rate. */
    private String burst() {
        if (limit.storesOneSecond()) {
            return micros(limit.rate().period()) == SECOND ? "" : "/s";
        }
        return limit.burst() == limit.rate().permits() ? "" : "/" + limit.burst();
    }

    private long permitsInASecond() {
        return BigInteger.valueOf(limit.rate().permits())
                .multiply(BigInteger.valueOf(1_000_000_000))
                .divide(BigInteger.valueOf(limit.rate().period().toNanos()))
                .longValueExact();
    }

    private void warmUp() {
        double warmup = limit.warmup().toNanos();
        double interval = interval(limit);
        double cold = interval * limit.coldFactor();
        double threshold = 0.5 * warmup / interval;
        double most = threshold + 2.0 * warmup / (interval + cold);
        add(interval);
        add(threshold);
        add(most);
        add(most > threshold ? (cold - interval) / (most - threshold) : 0);
        add(most > 0 ? warmup / most : 0);
    }

    private static double interval(Limit limit) {
        return (double) limit.rate().period().toNanos() / limit.rate().permits();
    }

    /** Stands in {@link #parameters} for when the cluster began. */
    private static final String ORIGIN = "origin";

    /** In few characters, that Lua reads as a number. */
    private static String brief(long number) {
        String digits = Long.toString(number);
        int end = digits.length();
        while (end > 1 && digits.charAt(end - 1) == '0') {
            end--;
        }
        int zeros = digits.length() - end;
        return zeros > 2 ? digits.substring(0, end) + "e" + zeros : digits;
    }

    /** A span of time in microseconds, rounded up. */
    static long micros(Duration duration) {
        return (duration.toNanos() - 1) / 1000 + 1;
    }

    private static BigInteger ceilDiv(BigInteger dividend, BigInteger divisor) {
        return dividend.add(divisor).subtract(BigInteger.ONE).divide(divisor);
    }

    Limit limit() {
        return limit;
    }

    /**
     * The key in Redis that has the state of a caller under this limit.
     *
     * @param name of the caller's budget, whatever the limit becomes
     */
    String key(String name) {
        return name + keyEnd;
    }

    /** Whether {@code virtual_time_usual.lua} takes permits, but for what it cannot foresee. */
    boolean isUsual() {
        return limit.algorithm().family() == Family.BUCKET && (depth.micros + 2.0) * one < EXACT;
    }

    /** Appends the arguments of {@code virtual_time_usual.lua} for this limit. */
    ScriptArguments appendUsual(ScriptArguments args, int calls, PermitRequest each) {
        Cost cost = cost(each.permits());
        return args.add(meta)
                .addPacked(one, depth.micros, depth.parts, step.longValueExact(), stored)
                .addPacked(calls, each.maxWaitMicros(), cost.micros, cost.parts, Math.min(MOST, each.permits()));
    }

    /** Decided without asking anyone: closed, unlimited. */
    boolean isConstant() {
        return limit.isClosed() || limit.isUnlimited();
    }

    /** More permits than can ever be had at once. */
    boolean isNever(long permits) {
        return permits > limit.capacity() || permits > mostPermits || cost(permits).micros >= FAR;
    }

    void appendTo(ScriptArguments args) {
        args.add(always != null ? always : arguments(origin.getAsLong()));
    }

    private ScriptArguments arguments(long began) {
        List<String> zone = offsets == null ? List.of() : offsets.arguments();
        ScriptArguments args = new ScriptArguments().add(letter).add(meta).add((long) parameters.size() + zone.size());
        parameters.forEach(parameter -> args.add(parameter.equals(ORIGIN) ? Long.toString(began) : parameter));
        zone.forEach(args::add);
        return args;
    }

    /** What permits cost, in microseconds and parts of one; at most {@link #FAR}. */
    Cost cost(long permits) {
        long whole = step.longValue();
        if (Math.multiplyHigh(whole, permits) == 0 && whole * permits >= 0) {
            long parts = whole * permits;
            return parts / one >= FAR ? Cost.ENDLESS : new Cost(parts / one, parts % one);
        }
        BigInteger[] both = step.multiply(BigInteger.valueOf(permits)).divideAndRemainder(BigInteger.valueOf(one));
        return both[0].bitLength() > 60 || both[0].longValue() >= FAR
                ? Cost.ENDLESS
                : new Cost(both[0].longValue(), both[1].longValue());
    }

    /** How long what is taken now counts in a window, at the longest. */
    long windowNanos() {
        long period = limit.rate().period().toNanos();
        return limit.algorithm().uses(Attribute.SLOTS) ? period + period / limit.slots() : period;
    }

    /** What permits cost, in nanoseconds. */
    long nanos(long permits) {
        Cost cost = cost(permits);
        return cost.micros * 1000 + (cost.parts * 1000 + one - 1) / one;
    }

    /** Permits left of a budget that follows virtual time and is whole after so many nanoseconds. */
    long remaining(long whole) {
        // Scripts round that time up, by two microseconds at the most.
        double left = stored - Math.max(0, whole - 2_000) / (1_000.0 * step.longValue() / one);
        // Where the next caller pays, one call goes on credit beside what is stored.
        long credit = limit.algorithm().family() == Family.PACED ? 1 : 0;
        return left < 0 ? 0 : (long) left + credit;
    }

    /** Appends permits and what they cost. Scripts count no more than {@link #MOST}, which no call could tell from more. */
    ScriptArguments addCost(ScriptArguments args, long permits) {
        Cost cost = cost(permits);
        return args.add(Math.min(MOST, permits)).add(cost.micros).add(cost.parts);
    }

    /**
     * A time.
     *
     * @param micros whole microseconds
     * @param parts of one more microsecond
     */
    record Cost(long micros, long parts) {

        static final Cost ENDLESS = new Cost(FAR, 0);
    }
}
