package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterContract;
import io.ratelimited.core.memory.InMemoryRateLimiter;

class InMemoryRateLimiterContractTest extends RateLimiterContract {

    @Override
    protected RateLimiter limiter(Limit limit) {
        return new InMemoryRateLimiter(limit, ticker, 1000);
    }
}
