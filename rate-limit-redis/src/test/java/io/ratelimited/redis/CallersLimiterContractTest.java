package io.ratelimited.redis;

import io.ratelimited.core.CallersLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterContract;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Callers with their own numbers are limited by them as if they were the limit, whatever the limit of all is. */
@Tag("proof")
class CallersLimiterContractTest extends RateLimiterContract {

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

    /** Numbers of a caller change with its next call. */
    @Override
    protected boolean changesBeforeACall() {
        return false;
    }

    /** The schedules themselves are those of {@link RedisRateLimiterContractTest}. */
    @Override
    protected int schedules() {
        return 5;
    }
}
