package io.ratelimited.core;

import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The algorithm by which a limit decides. Refused calls never count, whatever the algorithm. Each constant states its
 * parameters, its state at startup, whether it queues, what a rejection reports, and its source.
 */
public enum Algorithm {
    /**
     * Tokens drip in at {@code rate} up to {@code burst}; a call takes as many as it has permits, or none. Starts full.
     * A rejection reports when enough tokens will be there; more permits than {@code burst} are rejected for ever. Under
     * {@link Policy#WAIT} a call reserves tokens that are not there yet, in order of arrival. Source: the token bucket
     * of RFC 2697, kept as one virtual time.
     */
    TOKEN_BUCKET(Family.BUCKET),
    /**
     * Guava's {@code SmoothBursty}: a call goes as soon as the debt of its predecessors is paid, however many permits
     * it asks for; the next caller pays. Stores up to {@code burst} unused permits (default: one second of the rate, which
     * may be a fraction of a permit; 0 stores none) and starts with none stored and no debt. A rejection reports when the debt
     * will be paid. Unlike Guava's {@code setRate}, a change of the limit adds no stored permits.
     */
    SMOOTH_BURSTY(Family.PACED),
    /**
     * Guava's {@code SmoothWarmingUp}: as {@link #SMOOTH_BURSTY}, but stored permits cost more than fresh ones, up to
     * {@code coldFactor} times, so that a limit that was idle reaches its rate only after {@code warmup}. Starts cold.
     * A warm-up of zero means even spacing at {@code rate}.
     */
    WARM_UP(Family.PACED),
    /**
     * A queue that leaks at {@code rate}: grants are exactly one interval apart, without bursts and without holes. A
     * call is rejected when it would wait {@code burst} (the capacity of the queue) intervals or more. Starts empty.
     * Its default policy is {@link Policy#WAIT}. Source: the leaky bucket by counting.
     */
    LEAKY_BUCKET(Family.PACED),
    /**
     * The leaky bucket as a meter: a call conforms when its permits still fit into a bucket of {@code burst} that leaks
     * at {@code rate}. Admits exactly what {@link #TOKEN_BUCKET} admits; its remaining is the room above the bucket's
     * level. Starts empty (all room free). Source: the generic cell rate algorithm of ATM, ITU-T I.371.
     */
    GCRA(Family.BUCKET),
    /**
     * At most the permits of {@code rate} in each of its periods. Windows follow the wall clock in {@code zone}
     * (default UTC) as its clocks are set now: days begin at midnight, hours at the full hour. When summer time starts or
     * ends, a window longer than an hour is that much shorter or longer. The only algorithm for a rate per week, month or
     * year, whose windows begin at midnight of {@code startsOn}. Two bursts may meet at a boundary. A clock that
     * steps back never reopens a window: its time stands still until the clock has caught up. A call that waits takes its
     * permits in a later window and closes those before it, also if it is cancelled. A rejection reports the next boundary.
     */
    FIXED_WINDOW(Family.WINDOW),
    /**
     * At most the permits of {@code rate} in every interval of its period, counted in {@code slots}; the oldest,
     * partly covered slot counts in full, so the bound is never exceeded and up to one slot's share comes late. Under
     * calls that never cease it admits slots/(slots + 1) of its rate, 90.9 % by default: more slots or {@link #SLIDING_LOG}
     * admit more. A call that waits closes the slots before its own, also if it is cancelled. A rejection reports the time at which enough
     * slots have left the window.
     */
    SLIDING_WINDOW(Family.WINDOW),
    /**
     * At most the permits of {@code rate} in every interval of its period, exactly, at the price of one remembered
     * instant (16 bytes) a call and key, however many permits the call has. Calls that are settled for 0 are forgotten. A
     * rejection reports when enough permits have left the window.
     */
    SLIDING_LOG(Family.WINDOW),
    /**
     * At most {@code maxConcurrent} calls in flight. A call counts from its admission until it ends, or until {@code
     * lease} has passed if one is set. Waiting callers are served in order. A rejection reports no time to retry,
     * which depends on when other calls end.
     */
    CONCURRENCY(Family.IN_FLIGHT),
    /**
     * Calls in flight, as {@link #CONCURRENCY}, whose limit finds itself: between {@code minConcurrent} and {@code
     * maxConcurrent} it seeks the number at which most calls are served, from the times and the ends of the calls. An answer
     * after {@code lateAfter}, if set, is worth nothing. Starts without a known time, and learns it before it rejects a
     * load that does no harm. Waiting callers are served by class, then in order, and for a shorter time while a queue
     * stands. A limit of one process without keys. A rejection reports no time to retry. Source: hill climbing by the
     * elasticity of throughput, with the causal test of MongoDB's probing and the baseline of TCP Vegas.
     *
     * <p>Experimental: may change in a minor release.
     */
    ADAPTIVE(Family.IN_FLIGHT),
    /**
     * Not an algorithm: the annotation {@code @RateLimited} states none, and leaves it to the properties. No limit has it;
     * {@link #all} does not list it, and every question below throws {@link IllegalStateException}.
     */
    DEFAULT(null);

    private static final List<Algorithm> ALL =
            Stream.of(values()).filter(each -> each != DEFAULT).toList();

    private final @Nullable Family family;

    Algorithm(@Nullable Family family) {
        this.family = family;
    }

    /** Every algorithm that a limit can have: all constants but {@link #DEFAULT}. */
    public static List<Algorithm> all() {
        return ALL;
    }

    /** Returns the kind of things that this algorithm counts, which determines how several nodes share a limit. */
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

    /** Returns whether the attribute has a meaning for this algorithm; setting one that has none is an error. */
    public boolean uses(Limit.Attribute attribute) {
        return attribute.isUsedBy(this);
    }

    /** Returns whether calls count while they are in flight, and have to be released; all others count over time. */
    public boolean countsCallsInFlight() {
        return family() == Family.IN_FLIGHT;
    }

    /**
     * Returns whether a limit can change to the other algorithm at run time: calls in flight cannot be counted over time, and
     * {@link #ADAPTIVE} has neither keys nor other processes.
     */
    public boolean canChangeTo(Algorithm next) {
        return countsCallsInFlight() == next.countsCallsInFlight() && findsItsLimit() == next.findsItsLimit();
    }

    /**
     * Returns whether a limit finds by itself how many calls to admit. It is a number of one process, for all its callers
     * together: no other process shares it, and it has no keys.
     */
    public boolean findsItsLimit() {
        return is(ADAPTIVE);
    }

    /** Returns whether time is that of the wall clock, and permits come all at once when a period starts. */
    public boolean followsCalendar() {
        return is(FIXED_WINDOW);
    }

    /** Returns whether a call over the limit stands in a queue of limited capacity. */
    public boolean queues() {
        return is(LEAKY_BUCKET);
    }

    /** Returns whether a new key has no stored permits. */
    public boolean startsEmpty() {
        return is(SMOOTH_BURSTY);
    }

    /** Returns whether {@code burst} may be 0, and defaults to one second of the rate instead of its number of permits. */
    public boolean storesOneSecond() {
        return is(SMOOTH_BURSTY);
    }

    /**
     * Returns whether a node of a cluster can take permits in advance and hand them out without asking. Where it cannot, the
     * limit is exact on every backend.
     */
    public boolean canBeLeased() {
        return family() == Family.BUCKET || (family() == Family.WINDOW && !is(SLIDING_LOG));
    }

    /** The policy of a limit of this algorithm that states none: to wait in a queue, to reject for all others. */
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
        return is(FIXED_WINDOW) && rate.permits() > rate.period().toNanos() / 2
                ? "must be at most one permit per 2ns for FIXED_WINDOW"
                : null;
    }

    /** Kinds of things that algorithms count. */
    public enum Family {
        /** Permits in a bucket: a call takes its own or waits for them. Nodes share it by a longer time per permit. */
        BUCKET,
        /** The time of the next call: a call waits for its predecessors only. Nodes share it by a longer time per permit. */
        PACED,
        /** Permits used in a window of time. Nodes share it by fewer permits in the same window. */
        WINDOW,
        /** Calls in flight. Nodes share it by fewer calls each. */
        IN_FLIGHT
    }
}
