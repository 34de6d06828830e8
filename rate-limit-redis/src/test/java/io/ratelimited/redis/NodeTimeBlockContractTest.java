package io.ratelimited.redis;

import io.ratelimited.core.BlockContract;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Where nodes tell scripts the time. */
@Tag("proof")
class NodeTimeBlockContractTest extends BlockContract {

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

    /** The timelines themselves are those of {@link RedisBlockContractTest}. */
    @Override
    protected int timelines() {
        return 4;
    }
}
