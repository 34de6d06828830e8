package io.ratelimited.spring;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;

/**
 * Makes limiters of one of the {@link LimitProperties.Backend backends} that there are. Each has one bean of this type,
 * which its auto-configuration defines; other backends cannot be added. Thread-safe.
 */
public interface LimiterFactory {

    /** The backend whose limiters these are. */
    LimitProperties.Backend backend();

    /**
     * Makes a limiter.
     *
     * @param limit what it decides by
     * @param tier whose budgets these are; empty for the limit itself, which has others
     * @param properties the properties of the limit, for what concerns the backend only
     * @throws IllegalArgumentException when the backend cannot have such a limit; the message names the setting
     */
    RateLimiter create(Limit limit, String tier, LimitProperties properties);
}
