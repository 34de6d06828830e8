package io.ratelimited.spring;

import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import java.util.Set;

/** Limits in memory, under the name of a backend. */
record InMemoryLimiterFactory(String backend, Set<String> properties, Ticker ticker, long maximumKeys)
        implements LimiterFactory {

    @Override
    public RateLimiter create(Limit limit, String tier, LimitProperties properties) {
        return new InMemoryRateLimiter(limit, ticker, maximumKeys);
    }
}
