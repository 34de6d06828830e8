package io.ratelimited.core;

import io.ratelimited.core.calendar.CalendarWindows;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Locale;
import java.util.Objects;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * A limit on calls: a name, an algorithm and its parameters. Immutable; built by {@link #of}, changed by {@link
 * #toBuilder}. Parameters that were not set have the defaults named at their accessors.
 */
public final class Limit {

    /** The longest time in nanoseconds in which a bucket is refilled, and the longest wait: 36 years. */
    static final long LONGEST = 1L << 60;

    private static final Duration DEFAULT_BLOCK_MAX = Duration.ofHours(24);

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
     * @param algorithm the algorithm by which it decides
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
     * #storesOneSecond one second} of it, here rounded up to whole permits. From 1 to 10<sup>15</sup>, for SMOOTH_BURSTY from 0,
     * and refilled within 36 years.
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
     * Returns whether this is a {@link Algorithm#SMOOTH_BURSTY} whose burst was not set. It stores one second of its rate,
     * as Guava does, which may be a fraction of a permit: of {@code 5/m} a twelfth.
     */
    public boolean storesOneSecond() {
        return algorithm.storesOneSecond() && set.burst == null;
    }

    /** Duration of the warm-up of {@link Algorithm#WARM_UP}, which must state it, from 0 to 365 days; zero for all others. */
    public Duration warmup() {
        return set.warmup == null ? Duration.ZERO : set.warmup;
    }

    /** Returns how many times dearer than a fresh permit the coldest stored one is, from 1 to 1000; default 3. */
    public double coldFactor() {
        return set.coldFactor == null ? 3 : set.coldFactor;
    }

    /** Calls in flight at once, 0 for none; always 0 for all algorithms but {@link Algorithm#CONCURRENCY}. */
    public int maxConcurrent() {
        return set.maxConcurrent == null ? 0 : set.maxConcurrent;
    }

    /** The time zone whose days and hours the windows of {@link Algorithm#FIXED_WINDOW} follow; default UTC. */
    public ZoneId zone() {
        return set.zone == null ? ZoneOffset.UTC : set.zone;
    }

    /**
     * The day on which the windows of a rate per week, month or year begin, as {@link CalendarWindows#of} describes it; default
     * MONDAY, 1, 01-01. Null for other rates.
     */
    public @Nullable String startsOn() {
        CalendarWindows windows = calendar();
        return windows == null ? null : windows.startsOn();
    }

    /** The windows of a rate per week, month or year; null for other rates. */
    public @Nullable CalendarWindows calendar() {
        return rate().calendar() == null ? null : CalendarWindows.of(rate().calendar(), set.startsOn, zone());
    }

    /** Slots of a {@link Algorithm#SLIDING_WINDOW}, from 1 to 1,000, which bounds the work of a call; default 10. */
    public int slots() {
        return set.slots == null ? 10 : set.slots;
    }

    /** After this time, at most 3650 days, a call in flight no longer counts ({@link Algorithm#CONCURRENCY}); default: never. */
    public @Nullable Duration lease() {
        return set.lease;
    }

    /**
     * How long a key is blocked after its first offence: every call of the key is refused until then. Longer than 0s, at most
     * {@link #blockMax}; null for no blocks. An offence is a call that the limit refuses; see {@link #blocksByCharge}. An
     * offence after a block begins a longer one. A call is no offence that asks for more permits than there can ever be, that
     * the rate of a closed limit refuses, or that only too many waiting callers keep from waiting. Calls without a key are
     * never blocked.
     */
    public @Nullable Duration block() {
        return set.block;
    }

    /** By how much each block of a key is longer than its last one, from 1 to 1000; default 2. It grows 1,000 times at most. */
    public double blockFactor() {
        return set.blockFactor == null ? 2 : set.blockFactor;
    }

    /**
     * The longest block, at most 365 days; and the quiet time after the end of a block that forgives it, so that the next one
     * is as short as the first. Default: 24 hours, or {@link #block} if that is longer.
     */
    public Duration blockMax() {
        Duration first = set.block;
        return set.blockMax != null
                ? set.blockMax
                : first != null && first.compareTo(DEFAULT_BLOCK_MAX) > 0 ? first : DEFAULT_BLOCK_MAX;
    }

    /**
     * Returns whether only what calls are charged for when they end is an offence, and no refused call is: a {@link
     * Reservation#settle} for 1 or more that leaves its key without a permit for another call. Default: false.
     */
    public boolean blocksByCharge() {
        return set.blocksByCharge;
    }

    /** Callers of this limit that may sleep at once, 0 for none, and half as many of one key, rounded up; default 1000. */
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

    /** The value of an attribute as it was set; null where its default applies. */
    public @Nullable Object stated(Attribute attribute) {
        return set.value(attribute);
    }

    /** Returns whether no call is admitted, because the rate is 0. */
    public boolean isClosed() {
        return rate().isClosed();
    }

    /** Returns whether every call is admitted, because the rate is unlimited. */
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
            text.add("warmup " + Rate.text(warmup()));
        }
        if (algorithm.uses(Attribute.ZONE)) {
            text.add("zone " + (zone().equals(ZoneOffset.UTC) ? "UTC" : zone()));
        }
        if (rate().calendar() != null) {
            text.add("startsOn " + startsOn());
        }
        if (algorithm.uses(Attribute.SLOTS)) {
            text.add("slots " + slots());
        }
        if (algorithm.uses(Attribute.MAX_CONCURRENT)) {
            text.add("maxConcurrent " + maxConcurrent());
        }
        Duration block = block();
        if (block != null) {
            text.add("block " + Rate.text(block) + " to " + Rate.text(blockMax()));
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
                && Objects.equals(startsOn(), that.startsOn())
                && slots() == that.slots()
                && Objects.equals(lease(), that.lease())
                && Objects.equals(block(), that.block())
                && blockFactor() == that.blockFactor()
                && blockMax().equals(that.blockMax())
                && blocksByCharge() == that.blocksByCharge()
                && maxWaiting() == that.maxWaiting();
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, algorithm, rate(), set.burst, warmup(), maxConcurrent());
    }

    /** The attributes of a limit that only some algorithms have; setting one that has no meaning is an error. */
    public enum Attribute {
        RATE("rate", "100/s"),
        BURST("burst", null),
        WARMUP("warmup", "10s"),
        COLD_FACTOR("coldFactor", null),
        MAX_CONCURRENT("maxConcurrent", "20"),
        LEASE("lease", null),
        ZONE("zone", null),
        STARTS_ON("startsOn", null),
        SLOTS("slots", null),
        BLOCK("block", null),
        BLOCK_FACTOR("blockFactor", null),
        BLOCK_MAX("blockMax", null);

        private final String label;
        /** A value of an attribute that has no default; null if it has one. */
        final @Nullable String example;

        Attribute(String label, @Nullable String example) {
            this.label = label;
            this.example = example;
        }

        /** The name of the attribute as the annotation spells it. */
        public String label() {
            return label;
        }

        boolean isUsedBy(Algorithm algorithm) {
            return switch (this) {
                case RATE, BLOCK, BLOCK_FACTOR, BLOCK_MAX -> !algorithm.countsCallsInFlight();
                case BURST ->
                    algorithm.family() == Algorithm.Family.BUCKET || algorithm.storesOneSecond() || algorithm.queues();
                case WARMUP, COLD_FACTOR -> algorithm.is(Algorithm.WARM_UP);
                case MAX_CONCURRENT, LEASE -> algorithm.countsCallsInFlight();
                case ZONE, STARTS_ON -> algorithm.followsCalendar();
                case SLOTS -> algorithm.is(Algorithm.SLIDING_WINDOW);
            };
        }
    }

    /** Collects the parameters of a limit, each described at its accessor there; {@link #build} checks them. Not thread-safe. */
    public static final class Builder {

        private final String name;
        private final Algorithm algorithm;
        private @Nullable Rate rate;
        private @Nullable Long burst;
        private @Nullable Duration warmup;
        private @Nullable Double coldFactor;
        private @Nullable Integer maxConcurrent;
        private @Nullable ZoneId zone;
        private @Nullable String startsOn;
        private @Nullable Integer slots;
        private @Nullable Duration lease;
        private @Nullable Duration block;
        private @Nullable Double blockFactor;
        private @Nullable Duration blockMax;
        private boolean blocksByCharge;

        private int maxWaiting = 1000;

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
            this.startsOn = other.startsOn;
            this.slots = other.slots;
            this.lease = other.lease;
            this.block = other.block;
            this.blockFactor = other.blockFactor;
            this.blockMax = other.blockMax;
            this.blocksByCharge = other.blocksByCharge;
            this.maxWaiting = other.maxWaiting;
        }

        /** See {@link Rate#parse}. */
        public Builder rate(String rate) {
            try {
                return rate(Rate.parse(rate));
            } catch (InvalidLimitException ex) {
                // A bare "2" means 2 calls, so the error does not explain how to write a rate.
                throw algorithm == Algorithm.CONCURRENCY
                        ? LimitRanges.meaningless(algorithm, Attribute.RATE, rate)
                        : ex;
            }
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

        /** Null for the default. */
        public Builder startsOn(@Nullable String startsOn) {
            this.startsOn = startsOn;
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

        /** Null for no blocks. */
        public Builder block(@Nullable Duration block) {
            this.block = block;
            return this;
        }

        public Builder blockFactor(double blockFactor) {
            this.blockFactor = blockFactor;
            return this;
        }

        public Builder blockMax(Duration blockMax) {
            this.blockMax = blockMax;
            return this;
        }

        public Builder blocksByCharge(boolean blocksByCharge) {
            this.blocksByCharge = blocksByCharge;
            return this;
        }

        /** Takes every parameter of blocks away. */
        public Builder withoutBlocks() {
            this.block = null;
            this.blockFactor = null;
            this.blockMax = null;
            this.blocksByCharge = false;
            return this;
        }

        public Builder maxWaiting(int maxWaiting) {
            this.maxWaiting = maxWaiting;
            return this;
        }

        /**
         * Checks the parameters.
         *
         * @throws InvalidLimitException when a parameter is missing, out of range, or has no meaning for the algorithm;
         *     the message names the parameter, its value and the remedy
         */
        public Limit build() {
            Limit limit = new Limit(this);
            LimitRanges.check(limit);
            return limit;
        }

        private @Nullable Object value(Attribute attribute) {
            return switch (attribute) {
                case RATE -> rate;
                case BURST -> burst;
                case WARMUP -> warmup;
                case COLD_FACTOR -> coldFactor;
                case MAX_CONCURRENT -> maxConcurrent;
                case LEASE -> lease;
                case ZONE -> zone;
                case STARTS_ON -> startsOn;
                case SLOTS -> slots;
                case BLOCK -> block;
                case BLOCK_FACTOR -> blockFactor;
                case BLOCK_MAX -> blockMax;
            };
        }
    }
}
