package io.ratelimited.spring.internals.boot;

import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.Condition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.type.AnnotatedTypeMetadata;

/**
 * Matches by {@code rate-limit.enabled}, which is read as any other property: {@code on} is true, and a value that is
 * neither true nor false fails the start instead of limiting nothing.
 */
public final class OnEnabledCondition implements Condition {

    @Override
    public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
        return Binder.get(context.getEnvironment())
                .bind("rate-limit.enabled", Boolean.class)
                .orElse(true);
    }
}
