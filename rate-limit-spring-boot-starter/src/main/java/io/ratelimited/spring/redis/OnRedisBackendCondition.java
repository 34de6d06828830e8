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

/** Matches if a property puts a limit on Redis. Only properties can, so without one nothing of Redis is made. */
final class OnRedisBackendCondition extends SpringBootCondition {

    /** The backends that the properties name. */
    record Backends(
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
                .bindOrCreate("rate-limit", Backends.class)
                .redis();
        return new ConditionOutcome(
                redis,
                ConditionMessage.forCondition("backend of rate limits")
                        .because(redis ? "a property says redis" : "no property says redis"));
    }
}
