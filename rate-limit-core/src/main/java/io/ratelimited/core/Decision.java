package io.ratelimited.core;

import java.io.Serializable;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The decision of a limit about one call. Immutable.
 *
 * @param limit name of the limit that decided
 * @param admitted whether the call can proceed, at once or after {@code waitTime}
 * @param waitTime the time for which an admitted call has to wait, rounded up to the nanosecond; zero when it is admitted immediately
 * @param retryAfter for a rejected call, the time after which a lone retry is admitted, rounded up to the nanosecond;
 *     {@code null} when admitted, when no retry can ever succeed ({@link #never()}), and when the time is unknown
 *     because it depends on when other calls end ({@link Algorithm#CONCURRENCY}) or nobody can decide ({@link
 *     Source#UNAVAILABLE})
 * @param never rejected for good: more permits than can ever be had at once, a closed limit, or no key ({@code keyMissing})
 * @param remaining number of calls of one permit each that would still go now, without waiting; never negative. For {@link
 *     Algorithm#SMOOTH_BURSTY} the stored permits and the one call that is admitted on credit; for {@link Algorithm#WARM_UP} and
 *     {@link Algorithm#LEAKY_BUCKET}, which grant one call at a time, 1 or 0; for {@link Algorithm#CONCURRENCY} the
 *     places that are free
 * @param reset time until {@code remaining} is as much as it ever is, if no call comes, rounded up; zero when it is, and
 *     for {@link Algorithm#CONCURRENCY}, where it depends on when other calls end
 * @param source the place of the decision
 * @param blocked whether the key of a rejected call is blocked ({@link Limit#block}): every call of the key is rejected then.
 *     {@code retryAfter} is the time left of the block, or the time until the budget admits the call if that is longer, so that
 *     a caller who keeps to it does not offend again. {@code remaining} is 0, and {@code reset} at least the time left
 * @param keyMissing whether the call has no key, and its limit rejects such calls, whatever its budget
 */
public record Decision(
        String limit,
        boolean admitted,
        Duration waitTime,
        @Nullable Duration retryAfter,
        boolean never,
        long remaining,
        Duration reset,
        Source source,
        boolean blocked,
        boolean keyMissing)
        implements Serializable {

    /** A decision about a call whose key is not blocked. */
    public Decision(
            String limit,
            boolean admitted,
            Duration waitTime,
            @Nullable Duration retryAfter,
            boolean never,
            long remaining,
            Duration reset,
            Source source) {
        this(limit, admitted, waitTime, retryAfter, never, remaining, reset, source, false, false);
    }

    /**
     * The rejection of a call without a key.
     *
     * @param limit name of the limit, which rejects such calls
     */
    public static Decision withoutKey(String limit) {
        return new Decision(limit, false, Duration.ZERO, null, true, 0, Duration.ZERO, Source.MEMORY, false, true);
    }

    /**
     * The rejection of the same call while its key is blocked.
     *
     * @param left time left of the block, more than zero
     */
    public Decision blockedFor(Duration left) {
        Duration retry = retryAfter == null || retryAfter.compareTo(left) < 0 ? left : retryAfter;
        return new Decision(
                limit,
                false,
                Duration.ZERO,
                never ? null : retry,
                never,
                0,
                reset.compareTo(left) < 0 ? left : reset,
                source,
                true,
                keyMissing);
    }

    /** The place of a decision: shows whether the cluster took part in it. */
    public enum Source {
        /** The cells of this process, as configured. */
        MEMORY,
        /** A script call to Redis. */
        REDIS,
        /** Permits leased from Redis in advance. */
        LEASE,
        /** A rejection remembered from Redis until its retry-after. */
        DENY_CACHE,
        /** This process alone, because Redis did not answer. */
        FALLBACK,
        /**
         * Nobody: Redis did not answer, and the failure policy rejects every call meanwhile. Says nothing about the budget of
         * the caller.
         */
        UNAVAILABLE
    }
}
