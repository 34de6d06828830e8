package io.ratelimited.redis;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterContract;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Where nodes tell scripts the time. */
@Tag("proof")
class NodeTimeContractTest extends RateLimiterContract {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private RedisBackend backend;

    @Override
    protected RateLimiter limiter(Limit limit) {
        if (backend == null) {
            backend = REDIS.nodeTimeBackend(ticker);
        }
        return backend.limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    /** The schedules themselves are those of {@link RedisRateLimiterContractTest}. */
    @Override
    protected int schedules() {
        return 5;
    }

    /** A node asks Redis for the time once a second. */
    @Override
    protected boolean seesStepsAtOnce() {
        return false;
    }
}
