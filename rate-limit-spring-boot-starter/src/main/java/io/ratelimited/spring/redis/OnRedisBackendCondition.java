package io.ratelimited.spring.redis;

import io.ratelimited.spring.internals.boot.NamedBackends;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Matches if a property puts a limit on Redis. Only properties can, so without one nothing of Redis is made. */
final class OnRedisBackendCondition extends SpringBootCondition {

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        boolean redis = NamedBackends.of(context.getEnvironment()).contains("redis");
        return new ConditionOutcome(
                redis,
                ConditionMessage.forCondition("backend of rate limits")
                        .because(redis ? "a property sets redis" : "no property sets redis"));
    }
}
