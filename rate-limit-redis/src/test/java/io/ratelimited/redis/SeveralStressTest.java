package io.ratelimited.redis;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Threads;
import io.ratelimited.core.several.SeveralStress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Two backends on a real server, beside memory. */
@Tag("slow")
class SeveralStressTest extends SeveralStress {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final Map<String, RedisBackend> backends = new HashMap<>();

    @Override
    protected int calls() {
        return 1_500;
    }

    @Override
    protected List<String> backends() {
        return List.of("one", "other");
    }

    @Override
    protected RateLimiter elsewhere(String backend, Limit limit) {
        return backends.computeIfAbsent(backend, unseen -> REDIS.backend(time))
                .limiter(limit.toBuilder().priorities(List.of()).build(), RedisLimitOptions.DEFAULTS.tier(backend));
    }

    /** What is given back is on its way to Redis, and nobody waits for it. */
    @Override
    protected void awaitBackends() {
        Threads.until(() -> {
            time.advanceNanos(100_000_000);
            return held() == went();
        });
    }
}
