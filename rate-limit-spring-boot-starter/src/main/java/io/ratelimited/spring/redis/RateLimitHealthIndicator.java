package io.ratelimited.spring.redis;

import io.ratelimited.core.Decision;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.text.PropertyText;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;

/**
 * Reports the deciders of limits on Redis: Redis (UP), or also this instance or nobody (DEGRADED) by {@code on-failure}. An
 * instance that cannot apply a change of all instances, or may not know of it, is DEGRADED, too. Never DOWN: each limit
 * states which calls go without Redis, and an instance that is taken out of service serves none of them. Sends nothing to
 * Redis; thread-safe.
 */
record RateLimitHealthIndicator(Supplier<RedisBackend> backend, Supplier<Optional<LimitRegistry>> limits)
        implements HealthIndicator {

    /** Not in Spring Boot's order of statuses, so that the application's health does not change by it. */
    static final Status DEGRADED = new Status("DEGRADED");

    @Override
    public Health health() {
        RedisHealth redis = backend.get().health();
        Optional<LimitRegistry> registry = limits.get();
        Map<String, String> differs = registry.map(LimitRegistry::notApplied).orElse(Map.of());
        boolean up = redis.state() == RedisHealth.State.UP
                && differs.isEmpty()
                && redis.problems().isEmpty();
        Health.Builder health = Health.status(up ? Status.UP : DEGRADED)
                .withDetail("redis", redis.state().name())
                .withDetail("since", redis.since().toString())
                .withDetail("source", sources(redis.state(), registry))
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
    private static List<String> sources(RedisHealth.State state, Optional<LimitRegistry> limits) {
        Stream<Decision.Source> redis =
                state == RedisHealth.State.DOWN ? Stream.empty() : Stream.of(Decision.Source.REDIS);
        Stream<Decision.Source> others = state == RedisHealth.State.UP
                ? Stream.empty()
                : limits.stream()
                        .flatMap(registry -> registry.all().stream())
                        .map(limit -> limit.values().get(LimitProperty.ON_FAILURE))
                        .filter(LimitProperty.OnFailure.class::isInstance)
                        .flatMap(onFailure -> Stream.ofNullable(((LimitProperty.OnFailure) onFailure).source()));
        return Stream.concat(redis, others)
                .distinct()
                .sorted()
                .map(PropertyText::of)
                .toList();
    }
}
