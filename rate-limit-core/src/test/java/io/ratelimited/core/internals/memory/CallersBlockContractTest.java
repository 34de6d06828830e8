package io.ratelimited.core.internals.memory;

import io.ratelimited.core.BlockContract;
import io.ratelimited.core.CallersLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;

/** Callers with their own numbers are blocked by them as if they were the limit. */
class CallersBlockContractTest extends BlockContract {

    @Override
    protected RateLimiter limiter(Limit limit) {
        return CallersLimiter.of(limit, all -> new InMemoryRateLimiter(all, ticker, 1000));
    }

    @Override
    protected int timelines() {
        return 300;
    }
}
