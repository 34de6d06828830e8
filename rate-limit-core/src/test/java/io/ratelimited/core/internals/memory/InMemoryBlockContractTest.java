package io.ratelimited.core.internals.memory;

import io.ratelimited.core.BlockContract;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import org.junit.jupiter.api.Tag;

@Tag("slow")
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
