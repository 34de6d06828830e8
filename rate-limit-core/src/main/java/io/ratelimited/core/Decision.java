package io.ratelimited.core;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What was decided about one call. Immutable.
 *
 * @param limit name of the limit that decided
 * @param admitted whether the call may go, at once or after {@code waitTime}
 * @param waitTime how long an admitted call has to wait, rounded up to the nanosecond; zero when it goes at once
 * @param retryAfter for a refused call, the time after which a lone retry is admitted, rounded up to the nanosecond;
 *     {@code null} when admitted, when no retry can ever succeed ({@link #never()}), and when no time can be told
 *     because it depends on when other calls end ({@link Algorithm#CONCURRENCY})
 * @param never refused for good: more permits than can ever be had at once, or a closed limit
 * @param remaining permits that could still be had at once, rounded down; never negative
 * @param reset time until the budget is whole again, rounded up; zero when it is
 * @param source who decided
 */
public record Decision(
        String limit,
        boolean admitted,
        Duration waitTime,
        @Nullable Duration retryAfter,
        boolean never,
        long remaining,
        Duration reset,
        Source source) {

    /** Who decided, so that a decision made without the cluster can be told from one made with it. */
    public enum Source {
        /** The cells of this process, as configured. */
        MEMORY,
        /** A script call to Redis. */
        REDIS,
        /** Permits leased from Redis in advance. */
        LEASE,
        /** A refusal remembered from Redis until its retry-after. */
        DENY_CACHE,
        /** The failure policy, because Redis did not answer. */
        FALLBACK
    }
}
