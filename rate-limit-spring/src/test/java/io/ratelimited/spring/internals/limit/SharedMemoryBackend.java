package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.backend.LimiterFactory;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.stereotype.Component;

/** Limits in memory that all applications of one process share, such as those of a servlet container. */
@Component
public class SharedMemoryBackend implements LimiterFactory {

    private static final Map<String, RateLimiter> LIMITERS = new ConcurrentHashMap<>();

    @Override
    public String backend() {
        return "shared-memory";
    }

    @Override
    public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
        return LIMITERS.computeIfAbsent(limit.name() + "/" + tier, name -> new InMemoryRateLimiter(limit));
    }
}
