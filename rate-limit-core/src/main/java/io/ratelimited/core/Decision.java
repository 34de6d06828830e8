package io.ratelimited.core;

import java.io.Serializable;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The decision of a limit on a call. Immutable.
 *
 * @param limit name of the limit
 * @param admitted whether the call can proceed, immediately or after {@code waitTime}
 * @param waitTime wait time of an admitted call, rounded up to the nanosecond; zero if it can proceed immediately
 * @param retryAfter for a rejected call, the time after which a retry is admitted if there are no other calls, rounded up to
 *     the nanosecond; {@code null} if the call is admitted, if no retry can succeed ({@link #never()}), and if the time is
 *     unknown, because it depends on when other calls complete ({@link Algorithm#CONCURRENCY}) or the backend is unavailable
 *     ({@link Source#UNAVAILABLE})
 * @param never whether no retry can succeed: the call needs more permits than the limit can ever admit, the limit is closed,
 *     or the key is missing ({@code keyMissing})
 * @param remaining number of calls of one permit each that would be admitted now without waiting, 0 or more. For {@link
 *     Algorithm#SMOOTH_BURSTY} the stored permits and one call on credit; for {@link Algorithm#WARM_UP} and {@link
 *     Algorithm#LEAKY_BUCKET}, which admit one call at a time, 1 or 0; for {@link Algorithm#CONCURRENCY} the free permits
 * @param reset time until {@code remaining} is at its maximum if there are no more calls, rounded up to the nanosecond; zero
 *     if it is, and for {@link Algorithm#CONCURRENCY}, where it depends on when other calls complete
 * @param source what has decided
 * @param blocked whether the key of a rejected call is blocked ({@link Limit#block}), so that every call of the key is
 *     rejected. {@code retryAfter} is the remaining time of the block, or the time until the limit admits the call if that is
 *     longer: a caller who honors it does not violate the limit again. {@code remaining} is 0, and {@code reset} at least the
 *     remaining time of the block
 * @param keyMissing whether the call is rejected because it has no key
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

    /** Creates a decision on a call whose key is not blocked. */
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
     * Creates the rejection of a call without a key.
     *
     * @param limit name of the limit
     */
    public static Decision withoutKey(String limit) {
        return new Decision(limit, false, Duration.ZERO, null, true, 0, Duration.ZERO, Source.MEMORY, false, true);
    }

    /**
     * Returns the rejection of the same call while its key is blocked.
     *
     * @param left remaining time of the block, more than zero
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

    /** What has decided: it shows whether Redis was involved. */
    public enum Source {
        /** The memory of this process, as configured. */
        MEMORY,
        /** A script call to Redis. */
        REDIS,
        /** Permits leased from Redis in advance. */
        LEASE,
        /** A rejection by Redis, cached until a retry can succeed. */
        DENY_CACHE,
        /** This process alone, because Redis is unavailable. */
        FALLBACK,
        /**
         * Nothing: Redis is unavailable, and the failure policy rejects every call. The remaining permits of the caller are
         * unknown.
         */
        UNAVAILABLE
    }
}
