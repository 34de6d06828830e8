package io.ratelimited.redis;

import io.ratelimited.core.BlockContract;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

@Tag("once")
@Tag("slow")
class RedisBlockContractTest extends BlockContract {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private RedisBackend backend;

    @Override
    protected RateLimiter limiter(Limit limit) {
        if (backend == null) {
            backend = REDIS.backend(ticker);
        }
        return backend.limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    /** {@link BlockContractProofTest} has more. */
    @Override
    protected int timelines() {
        return 10;
    }
}
