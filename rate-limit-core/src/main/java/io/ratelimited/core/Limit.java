package io.ratelimited.core;

import io.ratelimited.core.Algorithm.Attribute;
import java.math.BigInteger;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Locale;
import java.util.Objects;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * What is allowed: a name, an algorithm and its parameters. Immutable; built by {@link #of}, changed by {@link
 * #toBuilder}. Parameters that were not set have the defaults named at their accessors.
 */
public final class Limit {

    private static final int MAX_SLOTS = 10_000;
    /** The longest time in nanoseconds in which a bucket is refilled, and the longest wait: 36 years. */
    static final long LONGEST = 1L << 60;

    private final String name;
    private final Algorithm algorithm;
    private final Rate rate;
    private final @Nullable Long burst;
    private final Duration warmup;
    private final double coldFactor;
    private final int maxConcurrent;
    private final ZoneId zone;
    private final int slots;
    private final @Nullable Duration lease;
    private final int maxWaiting;

    private Limit(Builder builder) {
        this.name = builder.name;
        this.algorithm = builder.algorithm;
        this.rate = builder.rate == null ? Rate.UNLIMITED : builder.rate;
        this.burst = builder.burst;
        this.warmup = builder.warmup == null ? Duration.ZERO : builder.warmup;
        this.coldFactor = builder.coldFactor == null ? 3.0 : builder.coldFactor;
        this.maxConcurrent = builder.maxConcurrent == null ? 0 : builder.maxConcurrent;
        this.zone = builder.zone == null ? ZoneOffset.UTC : builder.zone;
        this.slots = builder.slots == null ? 10 : builder.slots;
        this.lease = builder.lease;
        this.maxWaiting = builder.maxWaiting;
    }

    /**
     * Starts a limit.
     *
     * @param name the name in decisions, metrics and errors; not blank
     * @param algorithm how it decides
     */
    public static Builder of(String name, Algorithm algorithm) {
        return new Builder(name, algorithm);
    }

    /** A builder with this limit's parameters, as far as they were set. */
    public Builder toBuilder() {
        Builder builder = new Builder(name, algorithm);
        builder.maxWaiting = maxWaiting;
        builder.burst = burst;
        builder.lease = lease;
        if (algorithm.uses(Attribute.RATE)) {
            builder.rate = rate;
        }
        if (algorithm.uses(Attribute.WARMUP)) {
            builder.warmup = warmup;
            builder.coldFactor = coldFactor;
        }
        if (algorithm.uses(Attribute.MAX_CONCURRENT)) {
            builder.maxConcurrent = maxConcurrent;
        }
        if (algorithm.uses(Attribute.ZONE)) {
            builder.zone = zone;
        }
        if (algorithm.uses(Attribute.SLOTS)) {
            builder.slots = slots;
        }
        return builder;
    }

    public String name() {
        return name;
    }

    public Algorithm algorithm() {
        return algorithm;
    }

    /** Permits per period; {@link Rate#UNLIMITED} for {@link Algorithm#CONCURRENCY}, which has none. */
    public Rate rate() {
        return rate;
    }

    /**
     * Permits that may go at once; for {@link Algorithm#LEAKY_BUCKET} the capacity of the queue, for {@link
     * Algorithm#SMOOTH_BURSTY} the permits stored. Default: the number in the rate; SMOOTH_BURSTY: {@link
     * #storesOneSecond one second} of it, here rounded up to whole permits.
     */
    public long burst() {
        if (burst != null) {
            return burst;
        }
        if (algorithm.storesOneSecond() && !rate.isUnlimited()) {
            return (long) Math.ceil(rate.permits() * 1e9 / rate.period().toNanos());
        }
        return rate.permits();
    }

    /**
     * Whether this is a {@link Algorithm#SMOOTH_BURSTY} whose burst was not set. It stores one second of its rate, as
     * Guava does, which may be a fraction of a permit: of {@code 5/m} a twelfth.
     */
    public boolean storesOneSecond() {
        return algorithm.storesOneSecond() && burst == null;
    }

    /** Duration of the warm-up; default none. */
    public Duration warmup() {
        return warmup;
    }

    /** How many times dearer than a fresh permit the coldest stored one is; default 3. */
    public double coldFactor() {
        return coldFactor;
    }

    /** Calls in flight at once; 0 for all algorithms but {@link Algorithm#CONCURRENCY}. */
    public int maxConcurrent() {
        return maxConcurrent;
    }

    /** The time zone whose days and hours the windows of {@link Algorithm#FIXED_WINDOW} follow; default UTC. */
    public ZoneId zone() {
        return zone;
    }

    /** Slots of a {@link Algorithm#SLIDING_WINDOW}; default 10. */
    public int slots() {
        return slots;
    }

    /** After this time a call in flight no longer counts ({@link Algorithm#CONCURRENCY}); default: never. */
    public @Nullable Duration lease() {
        return lease;
    }

    /** Callers of this limit that may sleep at once; default 1000. */
    public int maxWaiting() {
        return maxWaiting;
    }

    /** The most permits that one call may ever have at once; {@link Long#MAX_VALUE} where the next caller pays. */
    public long capacity() {
        return switch (algorithm.family()) {
            case BUCKET -> burst();
            case PACED -> algorithm.queues() ? burst() : Long.MAX_VALUE;
            case WINDOW -> rate.permits();
            case IN_FLIGHT -> maxConcurrent;
        };
    }

    /** Whether no call is admitted, because the rate is 0. */
    public boolean isClosed() {
        return rate.isClosed();
    }

    /** Whether every call is admitted, because the rate is unlimited. */
    public boolean isUnlimited() {
        return rate.isUnlimited() && !algorithm.countsCallsInFlight();
    }

    /**
     * Checks that this limit can become the other one at run time.
     *
     * @throws IllegalArgumentException when the name differs, or only one of the two counts calls in flight
     */
    public void requireChangeableTo(Limit next) {
        if (!next.name.equals(name)) {
            throw new IllegalArgumentException(
                    "a limit cannot be renamed at run time: '" + name + "' to '" + next.name + "'");
        }
        if (!algorithm.canChangeTo(next.algorithm)) {
            throw new IllegalArgumentException("limit '" + name + "' cannot change from " + algorithm + " to "
                    + next.algorithm
                    + " at run time: calls in flight cannot be counted over time; restart instead");
        }
    }

    /** The algorithm and its parameters, as in {@code token-bucket, rate 100/s, burst 200}. */
    @Override
    public String toString() {
        StringJoiner text = new StringJoiner(", ", name + ": ", "");
        text.add(algorithm.name().toLowerCase(Locale.ROOT).replace('_', '-'));
        if (algorithm.uses(Attribute.RATE)) {
            text.add("rate " + rate);
        }
        if (algorithm.uses(Attribute.BURST)) {
            text.add("burst " + burst());
        }
        if (algorithm.uses(Attribute.WARMUP)) {
            text.add("warmup " + warmup);
        }
        if (algorithm.uses(Attribute.ZONE)) {
            text.add("zone " + zone);
        }
        if (algorithm.uses(Attribute.SLOTS)) {
            text.add("slots " + slots);
        }
        if (algorithm.uses(Attribute.MAX_CONCURRENT)) {
            text.add("maxConcurrent " + maxConcurrent);
        }
        return text.toString();
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Limit that
                && name.equals(that.name)
                && algorithm == that.algorithm
                && rate.equals(that.rate)
                && Objects.equals(burst, that.burst)
                && warmup.equals(that.warmup)
                && coldFactor == that.coldFactor
                && maxConcurrent == that.maxConcurrent
                && zone.equals(that.zone)
                && slots == that.slots
                && Objects.equals(lease, that.lease)
                && maxWaiting == that.maxWaiting;
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, algorithm, rate, burst, warmup, maxConcurrent);
    }

    /** Collects the parameters of a limit; {@link #build} checks them. Not thread-safe. */
    public static final class Builder {

        private final String name;
        private final Algorithm algorithm;
        private @Nullable Rate rate;
        private @Nullable Long burst;
        private @Nullable Duration warmup;
        private @Nullable Double coldFactor;
        private @Nullable Integer maxConcurrent;
        private @Nullable ZoneId zone;
        private @Nullable Integer slots;
        private @Nullable Duration lease;
        private int maxWaiting = 1000;

        private Builder(String name, Algorithm algorithm) {
            this.name = name;
            this.algorithm = algorithm;
        }

        /** See {@link Rate#parse}. */
        public Builder rate(String rate) {
            return rate(Rate.parse(rate));
        }

        public Builder rate(Rate rate) {
            this.rate = rate;
            return this;
        }

        /** See {@link Limit#burst}. */
        public Builder burst(long burst) {
            this.burst = burst;
            return this;
        }

        /** See {@link Limit#warmup}. */
        public Builder warmup(Duration warmup) {
            this.warmup = warmup;
            return this;
        }

        /** See {@link Limit#coldFactor}. */
        public Builder coldFactor(double coldFactor) {
            this.coldFactor = coldFactor;
            return this;
        }

        /** See {@link Limit#maxConcurrent}. */
        public Builder maxConcurrent(int maxConcurrent) {
            this.maxConcurrent = maxConcurrent;
            return this;
        }

        /** See {@link Limit#zone}. */
        public Builder zone(ZoneId zone) {
            this.zone = zone;
            return this;
        }

        /** See {@link Limit#slots}. */
        public Builder slots(int slots) {
            this.slots = slots;
            return this;
        }

        /** See {@link Limit#lease}. */
        public Builder lease(Duration lease) {
            this.lease = lease;
            return this;
        }

        /** See {@link Limit#maxWaiting}. */
        public Builder maxWaiting(int maxWaiting) {
            this.maxWaiting = maxWaiting;
            return this;
        }

        /**
         * Checks the parameters.
         *
         * @throws IllegalArgumentException when a parameter is missing, out of range, or has no meaning for the
         *     algorithm; the message names the parameter, its value and the remedy
         */
        public Limit build() {
            require(!name.isBlank(), "name must not be blank: \"" + name + "\"");
            requireMeaning(Attribute.RATE, rate);
            requireMeaning(Attribute.BURST, burst);
            requireMeaning(Attribute.WARMUP, warmup);
            requireMeaning(Attribute.COLD_FACTOR, coldFactor);
            requireMeaning(Attribute.MAX_CONCURRENT, maxConcurrent);
            requireMeaning(Attribute.ZONE, zone);
            requireMeaning(Attribute.SLOTS, slots);
            requireMeaning(Attribute.LEASE, lease);
            requirePresent(Attribute.RATE, rate, "100/s");
            requirePresent(Attribute.MAX_CONCURRENT, maxConcurrent, "20");
            requirePresent(Attribute.WARMUP, warmup, "10s");
            long least = algorithm.storesOneSecond() ? 0 : 1;
            require(burst == null || burst >= least, "burst must be at least " + least + ": " + burst);
            require(burst == null || burst <= 1_000_000_000_000_000L, "burst must be at most 10^15: " + burst);
            require(
                    warmup == null || (!warmup.isNegative() && warmup.compareTo(Duration.ofDays(365)) <= 0),
                    "warmup must be from 0s to 365d: " + warmup);
            require(
                    coldFactor == null || (coldFactor >= 1 && coldFactor <= 1000),
                    "coldFactor must be from 1 to 1000: " + coldFactor);
            require(maxConcurrent == null || maxConcurrent >= 0, "maxConcurrent must be 0 or more: " + maxConcurrent);
            require(slots == null || (slots >= 1 && slots <= MAX_SLOTS), "slots must be from 1 to 10000: " + slots);
            require(lease == null || !(lease.isNegative() || lease.isZero()), "lease must be longer than 0s: " + lease);
            require(maxWaiting >= 0, "maxWaiting must be 0 or more: " + maxWaiting);
            String flaw = rate == null ? null : algorithm.flaw(rate);
            require(flaw == null, flaw + ": " + rate);
            Limit limit = new Limit(this);
            if (burst != null && rate != null && !rate.isClosed() && !rate.isUnlimited()) {
                require(
                        refillsInTime(burst, rate),
                        "burst must be refilled within 36 years at rate " + rate + ": " + burst);
            }
            return limit;
        }

        /** Whether a bucket is full again within {@link #LONGEST}. */
        private static boolean refillsInTime(long burst, Rate rate) {
            BigInteger needed = BigInteger.valueOf(burst)
                    .multiply(BigInteger.valueOf(rate.period().toNanos()));
            BigInteger range = BigInteger.valueOf(rate.permits()).multiply(BigInteger.valueOf(LONGEST));
            return needed.compareTo(range) < 0;
        }

        private void requirePresent(Attribute attribute, @Nullable Object value, String example) {
            require(
                    value != null || !algorithm.uses(attribute),
                    attribute.label() + " is missing: " + algorithm + " needs one, such as " + example);
        }

        private void requireMeaning(Attribute attribute, @Nullable Object value) {
            require(
                    value == null || algorithm.uses(attribute),
                    attribute.label() + " has no meaning for " + algorithm + ": " + value + "; remove it");
        }

        private static void require(boolean condition, String message) {
            if (!condition) {
                throw new IllegalArgumentException(message);
            }
        }
    }
}
