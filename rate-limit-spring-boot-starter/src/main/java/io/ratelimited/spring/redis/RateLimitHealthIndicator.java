package io.ratelimited.spring.redis;

import io.ratelimited.core.Decision;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.spring.limit.PropertyText;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;

/**
 * Reports who decides about limits on Redis: Redis (UP), or also this instance (DEGRADED) by {@code on-failure}. DEGRADED is
 * also an instance that cannot apply what was changed for all, or may not know of it. Never DOWN: each limit says what calls go without Redis, and
 * an instance that is taken out of service serves none of them. Asks nobody; thread-safe.
 */
final class RateLimitHealthIndicator implements HealthIndicator {

    /** Not in Spring Boot's order of statuses, so that the application's health does not change by it. */
    static final Status DEGRADED = new Status("DEGRADED");

    private final Supplier<RedisBackend> backend;
    private final Supplier<Map<String, String>> notApplied;

    /** @param notApplied why this instance does not apply what was changed for all, by limit */
    RateLimitHealthIndicator(Supplier<RedisBackend> backend, Supplier<Map<String, String>> notApplied) {
        this.backend = backend;
        this.notApplied = notApplied;
    }

    @Override
    public Health health() {
        RedisHealth redis = backend.get().health();
        Map<String, String> differs = notApplied.get();
        boolean up = redis.state() == RedisHealth.State.UP
                && differs.isEmpty()
                && redis.problems().isEmpty();
        Health.Builder health = Health.status(up ? Status.UP : DEGRADED)
                .withDetail("redis", redis.state().name())
                .withDetail("since", redis.since().toString())
                .withDetail("source", sources(redis.state()))
                .withDetail("nodes", redis.nodes())
                .withDetail("calls", redis.calls())
                .withDetail("timeouts", redis.timeouts())
                .withDetail("errors", redis.errors());
        if (!differs.isEmpty()) {
            health.withDetail("changesNotApplied", differs);
        }
        if (!redis.problems().isEmpty()) {
            health.withDetail("problems", redis.problems());
        }
        if (redis.lastError() != null) {
            health.withDetail("lastError", redis.lastError());
        }
        return health.build();
    }

    /** The sources of decisions now, as the meters name them. */
    private static List<String> sources(RedisHealth.State state) {
        return switch (state) {
            case UP -> List.of(PropertyText.of(Decision.Source.REDIS));
            case DEGRADED -> List.of(PropertyText.of(Decision.Source.REDIS), PropertyText.of(Decision.Source.FALLBACK));
            case DOWN -> List.of(PropertyText.of(Decision.Source.FALLBACK));
        };
    }
}
