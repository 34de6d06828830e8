package io.ratelimited.redis;

import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterContract;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Where there is a server on the path, which the other tests use, the contract is held on that of the jar as well. */
@Tag("proof")
class EmbeddedRedisContractTest extends RateLimiterContract {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.embedded();

    private RedisBackend backend;

    @BeforeAll
    static void runsTwice() {
        assumeFalse(RedisProcess.binary().equals(RedisProcess.embedded()), "the other tests use this server");
    }

    @Override
    protected RateLimiter limiter(Limit limit) {
        if (backend == null) {
            backend = REDIS.backend(ticker);
        }
        return backend.limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    /** The schedules themselves are those of {@link RedisRateLimiterContractTest}. */
    @Override
    protected int schedules() {
        return 5;
    }
}
