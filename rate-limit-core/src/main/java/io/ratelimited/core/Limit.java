package io.ratelimited.core;

import io.ratelimited.core.calendar.CalendarWindows;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * A limit on calls: a name, an algorithm and its parameters. Immutable; created with {@link #of} and {@link #toBuilder}. The
 * accessors document the defaults of parameters.
 */
public final class Limit {

    /** The maximum time to refill a bucket, and the maximum wait, in nanoseconds: 36 years. */
    static final long LONGEST = 1L << 60;

    private static final Duration DEFAULT_BLOCK_MAX = Duration.ofHours(24);
    /** Shorter, because a few wrong passwords a day must not keep the owner of an account out for good. */
    private static final Duration DEFAULT_BLOCK_MAX_OF_CHARGES = Duration.ofMinutes(15);
    /** The default upper bound of an ADAPTIVE limit: more calls than one process usually serves concurrently. */
    static final int MOST_FOUND = 1000;

    private final String name;
    private final Algorithm algorithm;
    /** The parameters as they were set, each of the type that its setter takes. */
    private final Map<Attribute, Object> set;

    private final boolean charged;
    private final int maxWaiting;

    private Limit(Builder builder) {
        this.name = builder.name;
        this.algorithm = builder.algorithm;
        this.set = new EnumMap<>(builder.set);
        this.charged = builder.charged;
        this.maxWaiting = builder.maxWaiting;
    }

    /**
     * Starts a limit.
     *
     * @param name name in decisions, meters and errors; not blank
     * @param algorithm the algorithm of the limit
     */
    public static Builder of(String name, Algorithm algorithm) {
        return new Builder(name, algorithm);
    }

    /** Returns a builder with the parameters of this limit that were set. */
    public Builder toBuilder() {
        Builder builder = new Builder(name, algorithm);
        builder.set.putAll(set);
        return builder.charged(charged).maxWaiting(maxWaiting);
    }

    @SuppressWarnings("unchecked") // only the setters put values, and each takes one type
    private <T> T get(Attribute attribute, T otherwise) {
        Object value = set.get(attribute);
        return value == null ? otherwise : (T) value;
    }

    public String name() {
        return name;
    }

    public Algorithm algorithm() {
        return algorithm;
    }

    /**
     * Permits per period; {@link Rate#UNLIMITED} for {@link Algorithm#CONCURRENCY} and {@link Algorithm#ADAPTIVE}, which have
     * no rate.
     */
    public Rate rate() {
        return get(Attribute.RATE, Rate.UNLIMITED);
    }

    /**
     * Burst capacity: permits that an idle caller can use back to back. For {@link Algorithm#LEAKY_BUCKET} the capacity of
     * the queue, for {@link Algorithm#SMOOTH_BURSTY} the stored permits. Default: the number in the rate; for SMOOTH_BURSTY
     * {@link #storesOneSecond one second} of it, here rounded up to whole permits. From 1 to 10<sup>15</sup>, for
     * SMOOTH_BURSTY from 0, and refilled within 36 years.
     */
    public long burst() {
        Rate rate = rate();
        if (storesOneSecond() && !rate.isUnlimited()) {
            return (long) Math.ceil(rate.permits() * 1e9 / rate.period().toNanos());
        }
        return get(Attribute.BURST, rate.permits());
    }

    /**
     * Returns whether this is a {@link Algorithm#SMOOTH_BURSTY} whose burst was not set. Like Guava, it stores one second of
     * its rate, which can be a fraction of a permit: a twelfth for {@code 5/m}.
     */
    public boolean storesOneSecond() {
        return algorithm.storesOneSecond() && !set.containsKey(Attribute.BURST);
    }

    /** Duration of the warm-up, from 0 to 365 days. Required for {@link Algorithm#WARM_UP}; zero for all others. */
    public Duration warmup() {
        return get(Attribute.WARMUP, Duration.ZERO);
    }

    /** Cost of a stored permit when cold, as a multiple of a fresh one, from 1 to 1000; default 3. */
    public double coldFactor() {
        return get(Attribute.COLD_FACTOR, 3.0);
    }

    /**
     * Maximum number of concurrent calls; 0 admits none, and is the value for algorithms that count over time. For {@link
     * Algorithm#ADAPTIVE} the upper bound of its limit; default {@value #MOST_FOUND}.
     */
    public int maxConcurrent() {
        return get(Attribute.MAX_CONCURRENT, algorithm.findsItsLimit() ? MOST_FOUND : 0);
    }

    /**
     * Lower bound of the limit of {@link Algorithm#ADAPTIVE}, from 1 to {@link #maxConcurrent}; default 4, or {@link
     * #maxConcurrent} if that is less. 0 for all other algorithms.
     */
    public int minConcurrent() {
        return get(Attribute.MIN_CONCURRENT, algorithm.findsItsLimit() ? Math.min(4, maxConcurrent()) : 0);
    }

    /**
     * Response time above which a call counts as overload, from its admission ({@link Algorithm#ADAPTIVE}); null for none,
     * the default.
     */
    public @Nullable Duration lateAfter() {
        return (Duration) set.get(Attribute.LATE_AFTER);
    }

    /**
     * Names of priorities, the highest first, for {@link Algorithm#ADAPTIVE} and {@link Algorithm#CONCURRENCY}; at most 16.
     * Default: none, all calls are equal.
     */
    public List<String> priorities() {
        return get(Attribute.PRIORITIES, List.of());
    }

    /**
     * Minimum shares of the permits by priority, each above 0 and below 1, so that no priority starves. A share is rounded up
     * to whole permits, and all priorities can use at least one permit. Default: none.
     */
    public Map<String, Double> shares() {
        return get(Attribute.SHARES, Map.of());
    }

    /**
     * The number of a class in {@link #priorities}, 0 for the best.
     *
     * @return -1 if it is not one of them
     */
    public int rank(String priority) {
        return priorities().indexOf(priority);
    }

    /**
     * The rank of a call without a priority, or with one that is not among the {@link #priorities}: the priority in the
     * middle, or the second of two. 0 without priorities.
     */
    public int rankOfOthers() {
        return priorities().size() / 2;
    }

    /** Time zone of the windows of {@link Algorithm#FIXED_WINDOW}; default UTC. */
    public ZoneId zone() {
        return get(Attribute.ZONE, ZoneOffset.UTC);
    }

    /**
     * First day of the windows of a rate per week, month or year, in the form of {@link CalendarWindows#of}; default MONDAY,
     * 1, 01-01. Null for other rates.
     */
    public @Nullable String startsOn() {
        CalendarWindows windows = calendar();
        return windows == null ? null : windows.startsOn();
    }

    /** The windows of a rate per week, month or year; null for other rates. */
    public @Nullable CalendarWindows calendar() {
        return rate().calendar() == null
                ? null
                : CalendarWindows.of(rate().calendar(), (String) set.get(Attribute.STARTS_ON), zone());
    }

    /** Number of slots of a {@link Algorithm#SLIDING_WINDOW}, from 1 to 1,000, to bound the work of a call; default 10. */
    public int slots() {
        return get(Attribute.SLOTS, 10);
    }

    /**
     * Time after which a call in flight no longer counts ({@link Algorithm#CONCURRENCY}), at most 3650 days; null for never,
     * the default.
     */
    public @Nullable Duration lease() {
        return (Duration) set.get(Attribute.LEASE);
    }

    /**
     * How long a key is blocked after its first violation: until then, every call of the key is rejected. Longer than 0s, at
     * most {@link #blockMax}; null for no blocks. A violation is a call that the limit rejects because it would have to wait
     * longer than its {@link Call#patienceNanos patience}, or because the queue of a {@link Algorithm#LEAKY_BUCKET} is full;
     * see also {@link #blocksByCharge}. A violation after a block starts a longer one. A rejection is not a violation if the
     * call asks for no permit, or for more than the limit can ever admit, if the limit is closed, if only a position of {@link
     * #maxWaiting} or a thread is missing, or if the usage of other keys has caused it, or permits that
     * their call refunds because of another limit. Calls without a key are never blocked.
     */
    public @Nullable Duration block() {
        return (Duration) set.get(Attribute.BLOCK);
    }

    /** Factor between consecutive blocks of a key, from 1 to 1000; default 2. Blocks become longer at most 1,000 times. */
    public double blockFactor() {
        return get(Attribute.BLOCK_FACTOR, 2.0);
    }

    /**
     * Longest block, at most 365 days; and the violation-free time after the end of a block, after which the next one is as
     * short as the first. Default: 24 hours, or 15 minutes if calls are {@link #isCharged charged}; {@link #block} if that is
     * longer.
     */
    public Duration blockMax() {
        Duration first = block();
        Duration longest = charged ? DEFAULT_BLOCK_MAX_OF_CHARGES : DEFAULT_BLOCK_MAX;
        return get(Attribute.BLOCK_MAX, first != null && first.compareTo(longest) > 0 ? first : longest);
    }

    /**
     * Returns whether only charges of completed calls ({@link #isCharged}) are violations, and rejected calls are not. Such a
     * violation is a {@link Reservation#settle} for 1 or more, after which the charged permits leave no permit for another
     * call of the key. Permits that calls in flight have only reserved do not count.
     */
    public boolean blocksByCharge() {
        return charged && block() != null;
    }

    /**
     * Returns whether calls are charged with their actual cost when they complete. A call of 0 permits is then decided like a
     * call of 1 while its key owes permits, and uses none, so that the debt of a key cannot grow without bound. A limiter decides
     * so, too, once it has settled a call for more than it had reserved. Default: false.
     */
    public boolean isCharged() {
        return charged;
    }

    /**
     * Returns whether charges can block keys. This is false for {@link Algorithm#LEAKY_BUCKET}, {@link
     * Algorithm#SMOOTH_BURSTY} and {@link Algorithm#WARM_UP}: they admit one call at a time, so the first charged call would
     * block its key.
     */
    public static boolean canBlockByCharge(Algorithm algorithm) {
        return algorithm.family() != Algorithm.Family.PACED;
    }

    /** Maximum number of waiters, 0 for none; at most half as many, rounded up, have the same key. Default 1000. */
    public int maxWaiting() {
        return maxWaiting;
    }

    /** The maximum number of permits of a call; {@link Long#MAX_VALUE} if the next caller pays. */
    public long capacity() {
        return switch (algorithm.family()) {
            case BUCKET -> burst();
            case PACED -> algorithm.queues() ? burst() : Long.MAX_VALUE;
            case WINDOW -> rate().permits();
            case IN_FLIGHT -> maxConcurrent();
        };
    }

    /** The value of an attribute as it was set; null if its default applies. */
    @Nullable
    Object stated(Attribute attribute) {
        return set.get(attribute);
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
     * @throws IllegalArgumentException if the name differs, or {@link Algorithm#canChangeTo} returns false
     */
    public void requireChangeableTo(Limit next) {
        if (!next.name.equals(name)) {
            throw new IllegalArgumentException(
                    "a limit cannot be renamed at run time: '" + name + "' to '" + next.name + "'");
        }
        if (!algorithm.canChangeTo(next.algorithm)) {
            throw new IllegalArgumentException("limit '" + name + "' cannot change from " + algorithm + " to "
                    + next.algorithm
                    + " at run time: "
                    + (algorithm.countsCallsInFlight() && next.algorithm.countsCallsInFlight()
                            ? "ADAPTIVE belongs to one process and has no keys"
                            : "an algorithm that counts calls in flight cannot replace one that counts over time, or the reverse")
                    + "; restart instead");
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
        if (algorithm.uses(Attribute.MIN_CONCURRENT)) {
            text.add("minConcurrent " + minConcurrent());
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
                && Objects.equals(stated(Attribute.BURST), that.stated(Attribute.BURST))
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
                && charged == that.charged
                && minConcurrent() == that.minConcurrent()
                && Objects.equals(lateAfter(), that.lateAfter())
                && priorities().equals(that.priorities())
                && shares().equals(that.shares())
                && maxWaiting() == that.maxWaiting();
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, algorithm, rate(), stated(Attribute.BURST), warmup(), maxConcurrent());
    }

    /** Attributes that only some algorithms support; setting an unsupported one is an error. */
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
        BLOCK_MAX("blockMax", null),
        MIN_CONCURRENT("minConcurrent", null),
        LATE_AFTER("lateAfter", null),
        SHARES("shares", null),
        PRIORITIES("priorities", null);

        private final String label;
        /** An example value for an attribute without a default for some algorithm; null if it always has one. */
        final @Nullable String example;

        Attribute(String label, @Nullable String example) {
            this.label = label;
            this.example = example;
        }

        /** The name of the attribute in the annotation. */
        public String label() {
            return label;
        }

        /** Returns whether the algorithm requires it. */
        boolean isRequiredBy(Algorithm algorithm) {
            return example != null && isUsedBy(algorithm) && !(this == MAX_CONCURRENT && algorithm.findsItsLimit());
        }

        boolean isUsedBy(Algorithm algorithm) {
            return switch (this) {
                case RATE, BLOCK, BLOCK_FACTOR, BLOCK_MAX -> !algorithm.countsCallsInFlight();
                case BURST ->
                    algorithm.family() == Algorithm.Family.BUCKET || algorithm.storesOneSecond() || algorithm.queues();
                case WARMUP, COLD_FACTOR -> algorithm.is(Algorithm.WARM_UP);
                case MAX_CONCURRENT, PRIORITIES, SHARES -> algorithm.countsCallsInFlight();
                case LEASE -> algorithm.is(Algorithm.CONCURRENCY);
                case MIN_CONCURRENT, LATE_AFTER -> algorithm.findsItsLimit();
                case ZONE, STARTS_ON -> algorithm.followsCalendar();
                case SLOTS -> algorithm.is(Algorithm.SLIDING_WINDOW);
            };
        }
    }

    /** Builds a limit, whose accessors describe the parameters; {@link #build} checks them. Not thread-safe. */
    public static final class Builder {

        private final String name;
        private final Algorithm algorithm;
        private final Map<Attribute, Object> set = new EnumMap<>(Attribute.class);
        private boolean charged;
        private int maxWaiting = 1000;

        private Builder(String name, Algorithm algorithm) {
            this.name = name;
            this.algorithm = algorithm;
        }

        /** Null for the default. */
        Builder set(Attribute attribute, @Nullable Object value) {
            if (value == null) {
                set.remove(attribute);
            } else {
                set.put(attribute, value);
            }
            return this;
        }

        /** See {@link Rate#parse}. */
        public Builder rate(String rate) {
            try {
                return rate(Rate.parse(rate));
            } catch (InvalidLimitException ex) {
                // A bare "2" means 2 calls, so the error does not explain how to write a rate.
                throw algorithm != Algorithm.DEFAULT && algorithm.countsCallsInFlight()
                        ? LimitRanges.meaningless(algorithm, Attribute.RATE, rate)
                        : ex;
            }
        }

        public Builder rate(Rate rate) {
            return set(Attribute.RATE, rate);
        }

        public Builder burst(long burst) {
            return set(Attribute.BURST, burst);
        }

        public Builder warmup(Duration warmup) {
            return set(Attribute.WARMUP, warmup);
        }

        public Builder coldFactor(double coldFactor) {
            return set(Attribute.COLD_FACTOR, coldFactor);
        }

        public Builder maxConcurrent(int maxConcurrent) {
            return set(Attribute.MAX_CONCURRENT, maxConcurrent);
        }

        public Builder zone(ZoneId zone) {
            return set(Attribute.ZONE, zone);
        }

        /** Null for the default. */
        public Builder startsOn(@Nullable String startsOn) {
            return set(Attribute.STARTS_ON, startsOn);
        }

        public Builder slots(int slots) {
            return set(Attribute.SLOTS, slots);
        }

        public Builder lease(Duration lease) {
            return set(Attribute.LEASE, lease);
        }

        /** Null for no blocks. */
        public Builder block(@Nullable Duration block) {
            return set(Attribute.BLOCK, block);
        }

        public Builder blockFactor(double blockFactor) {
            return set(Attribute.BLOCK_FACTOR, blockFactor);
        }

        public Builder blockMax(Duration blockMax) {
            return set(Attribute.BLOCK_MAX, blockMax);
        }

        public Builder charged(boolean charged) {
            this.charged = charged;
            return this;
        }

        public Builder minConcurrent(int minConcurrent) {
            return set(Attribute.MIN_CONCURRENT, minConcurrent);
        }

        public Builder lateAfter(Duration lateAfter) {
            return set(Attribute.LATE_AFTER, lateAfter);
        }

        /** An empty list for none. */
        public Builder priorities(List<String> priorities) {
            return set(Attribute.PRIORITIES, priorities.isEmpty() ? null : List.copyOf(priorities));
        }

        /** An empty map for none. */
        public Builder shares(Map<String, Double> shares) {
            return set(Attribute.SHARES, shares.isEmpty() ? null : Map.copyOf(shares));
        }

        /** Removes every parameter of blocks. */
        public Builder withoutBlocks() {
            set.keySet().removeAll(Set.of(Attribute.BLOCK, Attribute.BLOCK_FACTOR, Attribute.BLOCK_MAX));
            return this;
        }

        public Builder maxWaiting(int maxWaiting) {
            this.maxWaiting = maxWaiting;
            return this;
        }

        /**
         * Checks the parameters.
         *
         * @throws InvalidLimitException if a parameter is missing, out of range, or not supported by the algorithm; the
         *     message names the parameter, its value and the remedy
         */
        public Limit build() {
            Limit limit = new Limit(this);
            LimitRanges.check(limit);
            return limit;
        }
    }
}
