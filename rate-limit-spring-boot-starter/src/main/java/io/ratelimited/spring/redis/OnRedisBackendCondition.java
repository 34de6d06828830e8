package io.ratelimited.spring.redis;

import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Whether any limit can be on Redis: only properties say so, and an application without one has nothing of Redis. */
final class OnRedisBackendCondition extends SpringBootCondition {

    /** What properties say about backends; the rest is not looked at here. */
    record Said(
            @Nullable String backend,
            @Nullable OfLimit defaults,
            @Nullable Map<String, OfLimit> limits) {

        boolean redis() {
            return Stream.concat(
                            Stream.of(new OfLimit(backend), defaults == null ? new OfLimit(null) : defaults),
                            limits == null ? Stream.empty() : limits.values().stream())
                    .anyMatch(limit -> "redis".equalsIgnoreCase(limit.backend()));
        }
    }

    record OfLimit(@Nullable String backend) {}

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        boolean redis = Binder.get(context.getEnvironment())
                .bindOrCreate("rate-limit", Said.class)
                .redis();
        return new ConditionOutcome(
                redis,
                ConditionMessage.forCondition("backend of rate limits")
                        .because(redis ? "a property says redis" : "no property says redis"));
    }
}
