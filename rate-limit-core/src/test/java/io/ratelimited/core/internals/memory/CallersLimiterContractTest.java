package io.ratelimited.core.internals.memory;

import io.ratelimited.core.CallersLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterContract;
import io.ratelimited.core.memory.InMemoryRateLimiter;

/** Callers with their own numbers are limited by them as if they were the limit, whatever the limit of all is. */
class CallersLimiterContractTest extends RateLimiterContract {

    @Override
    protected RateLimiter limiter(Limit limit) {
        return CallersLimiter.of(limit, all -> new InMemoryRateLimiter(all, ticker, 1000));
    }

    /** Numbers of a caller change with its next call. */
    @Override
    protected boolean changesBeforeACall() {
        return false;
    }
}
