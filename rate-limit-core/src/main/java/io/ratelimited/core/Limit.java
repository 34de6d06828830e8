package io.ratelimited.core;

import io.ratelimited.core.Algorithm.Attribute;
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

    /** The longest time in nanoseconds in which a bucket is refilled, and the longest wait: 36 years. */
    static final long LONGEST = 1L << 60;

    private final String name;
    private final Algorithm algorithm;
    /** The parameters as they were set; a copy that nobody changes. */
    private final Builder set;

    private Limit(Builder builder) {
        this.name = builder.name;
        this.algorithm = builder.algorithm;
        this.set = new Builder(builder);
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
        return new Builder(set);
    }

    public String name() {
        return name;
    }

    public Algorithm algorithm() {
        return algorithm;
    }

    /** Permits per period; {@link Rate#UNLIMITED} for {@link Algorithm#CONCURRENCY}, which has none. */
    public Rate rate() {
        return set.rate == null ? Rate.UNLIMITED : set.rate;
    }

    /**
     * Permits that may go at once; for {@link Algorithm#LEAKY_BUCKET} the capacity of the queue, for {@link
     * Algorithm#SMOOTH_BURSTY} the permits stored. Default: the number in the rate; SMOOTH_BURSTY: {@link
     * #storesOneSecond one second} of it, here rounded up to whole permits.
     */
    public long burst() {
        if (set.burst != null) {
            return set.burst;
        }
        Rate rate = rate();
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
        return algorithm.storesOneSecond() && set.burst == null;
    }

    /** Duration of the warm-up; default none. */
    public Duration warmup() {
        return set.warmup == null ? Duration.ZERO : set.warmup;
    }

    /** How many times dearer than a fresh permit the coldest stored one is; default 3. */
    public double coldFactor() {
        return set.coldFactor == null ? 3 : set.coldFactor;
    }

    /** Calls in flight at once; 0 for all algorithms but {@link Algorithm#CONCURRENCY}. */
    public int maxConcurrent() {
        return set.maxConcurrent == null ? 0 : set.maxConcurrent;
    }

    /** The time zone whose days and hours the windows of {@link Algorithm#FIXED_WINDOW} follow; default UTC. */
    public ZoneId zone() {
        return set.zone == null ? ZoneOffset.UTC : set.zone;
    }

    /** Slots of a {@link Algorithm#SLIDING_WINDOW}; default 10. */
    public int slots() {
        return set.slots == null ? 10 : set.slots;
    }

    /** After this time a call in flight no longer counts ({@link Algorithm#CONCURRENCY}); default: never. */
    public @Nullable Duration lease() {
        return set.lease;
    }

    /** Callers of this limit that may sleep at once, and half as many of one key, rounded up; default 1000. */
    public int maxWaiting() {
        return set.maxWaiting;
    }

    /** The most permits that one call may ever have at once; {@link Long#MAX_VALUE} where the next caller pays. */
    public long capacity() {
        return switch (algorithm.family()) {
            case BUCKET -> burst();
            case PACED -> algorithm.queues() ? burst() : Long.MAX_VALUE;
            case WINDOW -> rate().permits();
            case IN_FLIGHT -> maxConcurrent();
        };
    }

    /** Whether no call is admitted, because the rate is 0. */
    public boolean isClosed() {
        return rate().isClosed();
    }

    /** Whether every call is admitted, because the rate is unlimited. */
    public boolean isUnlimited() {
        return rate().isUnlimited() && !algorithm.countsCallsInFlight();
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
            text.add("rate " + rate());
        }
        if (algorithm.uses(Attribute.BURST)) {
            text.add("burst " + burst());
        }
        if (algorithm.uses(Attribute.WARMUP)) {
            text.add("warmup " + warmup());
        }
        if (algorithm.uses(Attribute.ZONE)) {
            text.add("zone " + zone());
        }
        if (algorithm.uses(Attribute.SLOTS)) {
            text.add("slots " + slots());
        }
        if (algorithm.uses(Attribute.MAX_CONCURRENT)) {
            text.add("maxConcurrent " + maxConcurrent());
        }
        return text.toString();
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Limit that
                && name.equals(that.name)
                && algorithm == that.algorithm
                && rate().equals(that.rate())
                && Objects.equals(set.burst, that.set.burst)
                && warmup().equals(that.warmup())
                && coldFactor() == that.coldFactor()
                && maxConcurrent() == that.maxConcurrent()
                && zone().equals(that.zone())
                && slots() == that.slots()
                && Objects.equals(lease(), that.lease())
                && maxWaiting() == that.maxWaiting();
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, algorithm, rate(), set.burst, warmup(), maxConcurrent());
    }

    /** Collects the parameters of a limit, each described at its accessor there; {@link #build} checks them. Not thread-safe. */
    public static final class Builder {

        final String name;
        final Algorithm algorithm;

        @Nullable
        Rate rate;

        @Nullable
        Long burst;

        @Nullable
        Duration warmup;

        @Nullable
        Double coldFactor;

        @Nullable
        Integer maxConcurrent;

        @Nullable
        ZoneId zone;

        @Nullable
        Integer slots;

        @Nullable
        Duration lease;

        int maxWaiting = 1000;

        private Builder(String name, Algorithm algorithm) {
            this.name = name;
            this.algorithm = algorithm;
        }

        private Builder(Builder other) {
            this(other.name, other.algorithm);
            this.rate = other.rate;
            this.burst = other.burst;
            this.warmup = other.warmup;
            this.coldFactor = other.coldFactor;
            this.maxConcurrent = other.maxConcurrent;
            this.zone = other.zone;
            this.slots = other.slots;
            this.lease = other.lease;
            this.maxWaiting = other.maxWaiting;
        }

        /** See {@link Rate#parse}. */
        public Builder rate(String rate) {
            return rate(Rate.parse(rate));
        }

        public Builder rate(Rate rate) {
            this.rate = rate;
            return this;
        }

        public Builder burst(long burst) {
            this.burst = burst;
            return this;
        }

        public Builder warmup(Duration warmup) {
            this.warmup = warmup;
            return this;
        }

        public Builder coldFactor(double coldFactor) {
            this.coldFactor = coldFactor;
            return this;
        }

        public Builder maxConcurrent(int maxConcurrent) {
            this.maxConcurrent = maxConcurrent;
            return this;
        }

        public Builder zone(ZoneId zone) {
            this.zone = zone;
            return this;
        }

        public Builder slots(int slots) {
            this.slots = slots;
            return this;
        }

        public Builder lease(Duration lease) {
            this.lease = lease;
            return this;
        }

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
            LimitRules.check(this);
            return new Limit(this);
        }
    }
}
