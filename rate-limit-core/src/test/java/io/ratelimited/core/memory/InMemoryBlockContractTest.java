package io.ratelimited.core.memory;

import io.ratelimited.core.BlockContract;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;

class InMemoryBlockContractTest extends BlockContract {

    @Override
    protected RateLimiter limiter(Limit limit) {
        return new InMemoryRateLimiter(limit, ticker, 1000);
    }

    @Override
    protected int timelines() {
        return 2_000;
    }
}
