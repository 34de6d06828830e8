package io.ratelimited.core;

import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The algorithm of a limit. Rejected calls never count. Each constant describes its parameters, its initial state, whether
 * calls queue, the time that a rejection reports, and its source.
 */
public enum Algorithm {
    /**
     * Tokens are added at {@code rate}, up to {@code burst}. A call takes as many as it has permits, or none. Starts full. A
     * rejection reports the time until enough tokens are available. A call with more permits than {@code burst} is never
     * admitted. Under {@link Policy#WAIT}, a call reserves future tokens, in order of arrival. Source: the token bucket of
     * RFC 2697, implemented as one virtual time.
     */
    TOKEN_BUCKET(Family.BUCKET),
    /**
     * Guava's {@code SmoothBursty}: a call is admitted as soon as the debt of earlier calls is paid, whatever its own number
     * of permits; the next caller pays for it. Stores up to {@code burst} unused permits. The default is one second of the
     * rate, which can be a fraction of a permit; 0 stores none. Starts without stored permits and without debt. A rejection
     * reports the time until the debt is paid. Unlike Guava's {@code setRate}, a change of the limit adds no stored permits.
     */
    SMOOTH_BURSTY(Family.PACED),
    /**
     * Guava's {@code SmoothWarmingUp}: like {@link #SMOOTH_BURSTY}, but stored permits cost up to {@code coldFactor} times as
     * much as fresh ones. So an idle limit reaches its rate only after {@code warmup}. Starts cold. With a warm-up of zero,
     * calls are evenly spaced at {@code rate}.
     */
    WARM_UP(Family.PACED),
    /**
     * A queue that leaks at {@code rate}: calls are admitted exactly one interval apart, without bursts and without gaps. A
     * call is rejected if it would have to wait for {@code burst} intervals or more; {@code burst} is the capacity of the
     * queue. Starts empty. Its default policy is {@link Policy#WAIT}. Source: the leaky bucket as a queue.
     */
    LEAKY_BUCKET(Family.PACED),
    /**
     * The leaky bucket as a meter: a call conforms if its permits fit into a bucket of {@code burst} that leaks at {@code
     * rate}. Admits exactly the same calls as {@link #TOKEN_BUCKET}; its remaining permits are the free capacity of the
     * bucket. Starts empty. Source: the generic cell rate algorithm of ATM, ITU-T I.371.
     */
    GCRA(Family.BUCKET),
    /**
     * At most the permits of {@code rate} in each period of at least 1 ms. Windows follow the current wall clock in
     * {@code zone} (default UTC): days start at midnight, hours at the full hour. When daylight saving time starts or ends, a
     * window of more than an hour is shorter or longer. The only algorithm for a rate per week, month or year, whose windows start at midnight of
     * {@code startsOn}. Two bursts around a boundary can together use twice the permits. A clock that steps back by at
     * most a window does not reopen it: the time of the limit stands still until the clock has caught up. After a larger step,
     * a key that is more than a window ahead continues in the window that the clock shows, with its used permits. A call that
     * waits takes its permits in a later window and closes earlier ones, unless it gives up while no call waits behind it. A
     * rejection reports the time until the next window.
     */
    FIXED_WINDOW(Family.WINDOW),
    /**
     * At most the permits of {@code rate} in every interval of its period, counted in {@code slots}. The oldest slot counts
     * in full although the interval covers only a part of it, so the bound is never exceeded. Under constant load, it admits
     * slots/(slots + 1) of its rate, 90.9 % by default; more slots or {@link #SLIDING_LOG} admit more. A call that waits
     * closes the slots before its own, unless it gives up while no call waits behind it. A rejection reports the time until
     * enough permits have expired.
     */
    SLIDING_WINDOW(Family.WINDOW),
    /**
     * At most the permits of {@code rate} in every interval of its period, exactly. Stores one time (16 bytes) per call and
     * key, however many permits the call has; calls that are settled for 0 are removed. A rejection reports the time until
     * enough permits have expired.
     */
    SLIDING_LOG(Family.WINDOW),
    /**
     * At most {@code maxConcurrent} calls in flight. A call counts from its admission until it completes, or until its {@code
     * lease} expires, if one is set. Waiters are served in order. A rejection reports no time, because it depends on when
     * other calls complete.
     */
    CONCURRENCY(Family.IN_FLIGHT),
    /**
     * An adaptive concurrency limit: counts calls in flight like {@link #CONCURRENCY}, and adapts the limit between {@code
     * minConcurrent} and {@code maxConcurrent} to the highest throughput, from the latency and the outcome of calls. A
     * response after {@code lateAfter}, if set, counts as overload. Starts without a known latency, and rejects no harmless
     * load while it measures. Waiters are served by priority, then in order, and the maximum wait is shorter while the queue
     * does not empty. A limit of one process, without keys. A rejection reports no time. Source: hill climbing by the
     * elasticity of throughput, with the causal test of MongoDB's probing and the baseline of TCP Vegas.
     *
     * <p>Experimental: may change in a minor release.
     */
    ADAPTIVE(Family.IN_FLIGHT),
    /**
     * Not an algorithm: the annotation {@code @RateLimited} leaves the choice to the properties. No limit has it, {@link
     * #all} does not contain it, and the methods below throw {@link IllegalStateException} for it.
     */
    DEFAULT(null);

    /** In nanoseconds: the resolution of the system's wall clock. */
    private static final long SHORTEST_WINDOW = 1_000_000;

    private static final List<Algorithm> ALL =
            Stream.of(values()).filter(each -> each != DEFAULT).toList();

    private final @Nullable Family family;

    Algorithm(@Nullable Family family) {
        this.family = family;
    }

    /** All algorithms of limits: every constant except {@link #DEFAULT}. */
    public static List<Algorithm> all() {
        return ALL;
    }

    /** Returns what this algorithm counts, which determines how several nodes share a limit. */
    public Family family() {
        if (family == null) {
            throw new IllegalStateException(this + " is not an algorithm; use one of " + ALL);
        }
        return family;
    }

    /** Returns whether this is the given algorithm; an error for {@link #DEFAULT}. */
    boolean is(Algorithm algorithm) {
        return family() == algorithm.family && this == algorithm;
    }

    /** Returns whether this algorithm supports the attribute; setting an unsupported attribute is an error. */
    public boolean uses(Limit.Attribute attribute) {
        return attribute.isUsedBy(this);
    }

    /** Returns whether this algorithm counts calls in flight, which must be released; all others count over time. */
    public boolean countsCallsInFlight() {
        return family() == Family.IN_FLIGHT;
    }

    /**
     * Returns whether a limit can change to the other algorithm at run time. A change is impossible between calls in flight
     * and algorithms that count over time, and from or to {@link #ADAPTIVE}, which has neither keys nor other processes.
     */
    public boolean canChangeTo(Algorithm next) {
        return countsCallsInFlight() == next.countsCallsInFlight() && findsItsLimit() == next.findsItsLimit();
    }

    /**
     * Returns whether the algorithm adapts its limit itself. Such a limit belongs to one process and applies to all callers
     * together: no other process shares it, and it has no keys.
     */
    public boolean findsItsLimit() {
        return is(ADAPTIVE);
    }

    /** Returns whether the algorithm uses the wall clock, and all permits are refilled together when a period starts. */
    public boolean followsCalendar() {
        return is(FIXED_WINDOW);
    }

    /** Returns whether a call over the limit enters a queue of limited capacity. */
    public boolean queues() {
        return is(LEAKY_BUCKET);
    }

    /** Returns whether a new key has no stored permits. */
    public boolean startsEmpty() {
        return is(SMOOTH_BURSTY);
    }

    /** Returns whether {@code burst} can be 0, and defaults to one second of the rate instead of its number of permits. */
    public boolean storesOneSecond() {
        return is(SMOOTH_BURSTY);
    }

    /** Returns whether a node of a cluster can lease permits in advance. If not, the limit is exact on every backend. */
    public boolean canBeLeased() {
        return family() == Family.BUCKET || (family() == Family.WINDOW && !is(SLIDING_LOG));
    }

    /** The default policy of a limit: {@link Policy#WAIT} for a queue, {@link Policy#REJECT} for all others. */
    public Policy defaultPolicy() {
        return queues() ? Policy.WAIT : Policy.REJECT;
    }

    /** Returns the reason why this algorithm cannot count at the rate; null when it can. */
    @Nullable
    String flaw(Rate rate) {
        if (rate.isUnlimited()) {
            return null;
        }
        if (rate.calendar() != null && !followsCalendar()) {
            String fixed = switch (rate.calendar()) {
                case WEEK -> "7d";
                case MONTH -> "30d";
                case YEAR -> "365d";
            };
            return "must not be per " + rate.calendar() + " for " + this
                    + " (use FIXED_WINDOW, or a fixed duration such as " + fixed + ")";
        }
        if (is(FIXED_WINDOW) && rate.period().toNanos() < SHORTEST_WINDOW) {
            return "must have a period of at least 1ms for FIXED_WINDOW, because the wall clock shows no shorter one"
                    + " (use SLIDING_LOG or TOKEN_BUCKET)";
        }
        return is(FIXED_WINDOW) && rate.permits() > rate.period().toNanos() / 2
                ? "must be at most one permit per 2ns for FIXED_WINDOW"
                : null;
    }

    /** What algorithms count. */
    public enum Family {
        /**
         * Permits in a bucket: a call takes its permits or waits for them. Nodes share the limit by a longer time per permit.
         */
        BUCKET,
        /**
         * The time of the next call: a call only waits for earlier calls. Nodes share the limit by a longer time per permit.
         */
        PACED,
        /** Permits used in a window of time. Nodes share the limit by fewer permits in the same window. */
        WINDOW,
        /** Calls in flight. Nodes share the limit by fewer calls each. */
        IN_FLIGHT
    }
}
