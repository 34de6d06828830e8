package io.ratelimited.redis;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterContract;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

@Tag("once")
@Tag("slow")
class RedisRateLimiterContractTest extends RateLimiterContract {

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

    /** {@link ContractProofTest} has more. */
    @Override
    protected int schedules() {
        return 30;
    }
}
