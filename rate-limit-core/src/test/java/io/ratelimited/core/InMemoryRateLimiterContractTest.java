package io.ratelimited.core;

class InMemoryRateLimiterContractTest extends RateLimiterContract {

    @Override
    protected RateLimiter limiter(Limit limit) {
        return new InMemoryRateLimiter(limit, ticker, 1000);
    }
}
