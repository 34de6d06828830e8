package io.ratelimited.redis.limiter;

import org.jspecify.annotations.Nullable;

/**
 * How one limit uses Redis.
 *
 * @param tier the tier whose budgets these are; empty for the limit itself
 * @param fallback decides while Redis does not
 * @param maxOvershoot the share of a period's permits by which the cluster may exceed the limit; 0 for none
 * @param maximumKeys keys remembered in this process at the most
 */
public record LimiterOptions(String tier, Fallback fallback, double maxOvershoot, long maximumKeys) {

    /** Decides calls while Redis does not. */
    @FunctionalInterface
    public interface Fallback {

        /**
         * Throws when calls fail while Redis is away.
         *
         * @param failure why Redis has not decided
         * @return whether every call goes; null when this process decides by its share of the limit
         */
        @Nullable
        Boolean decide(String limit, Throwable failure);
    }
}
