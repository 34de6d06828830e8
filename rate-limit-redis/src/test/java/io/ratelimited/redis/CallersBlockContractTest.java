package io.ratelimited.redis;

import io.ratelimited.core.BlockContract;
import io.ratelimited.core.CallersLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Callers with their own numbers are blocked by them as if they were the limit. */
@Tag("proof")
class CallersBlockContractTest extends BlockContract {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private RedisBackend backend;

    @Override
    protected RateLimiter limiter(Limit limit) {
        if (backend == null) {
            backend = REDIS.backend(ticker);
        }
        return CallersLimiter.of(limit, all -> backend.limiter(all, RedisLimitOptions.DEFAULTS));
    }

    @Override
    protected int timelines() {
        return 4;
    }
}
