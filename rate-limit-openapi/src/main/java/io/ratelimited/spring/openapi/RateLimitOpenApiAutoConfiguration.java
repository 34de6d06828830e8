package io.ratelimited.spring.openapi;

import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.autoconfigure.web.reactive.ReactiveRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import io.ratelimited.spring.fields.RateLimitHeaderWriter;
import io.ratelimited.spring.internals.aop.LimitedMethods;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.web.RoutePatterns;
import org.springdoc.core.customizers.GlobalOpenApiCustomizer;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.Condition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.util.StringUtils;
import org.springframework.web.method.HandlerMethod;

/** Wires the OpenAPI document, where there is springdoc and {@code rate-limit.http.open-api} is not false. */
@AutoConfiguration(
        after = {
            RateLimitAutoConfiguration.class,
            ServletRateLimitAutoConfiguration.class,
            ReactiveRateLimitAutoConfiguration.class
        })
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnWebApplication
@ConditionalOnClass({GlobalOpenApiCustomizer.class, HandlerMethod.class})
@Conditional(RateLimitOpenApiAutoConfiguration.OnOpenApi.class)
@ConditionalOnBean(RoutePatterns.class)
public final class RateLimitOpenApiAutoConfiguration {

    @InternalBean("io.ratelimited.rateLimitedOperations")
    LimitedOperations rateLimitedOperations(
            LimitedMethods methods,
            RoutePatterns routes,
            RateLimitProperties properties,
            ObjectProvider<RateLimitHeaderWriter> writers,
            Environment environment) {
        String dispatcher = environment.getProperty("spring.mvc.servlet.path", "");
        return new LimitedOperations(
                methods,
                routes,
                StringUtils.trimTrailingCharacter(dispatcher, '/'),
                new LimitComponents(properties.http(), writers.getIfAvailable()));
    }

    /** Reads the property as any other: {@code off} is false, too. */
    static final class OnOpenApi implements Condition {

        @Override
        public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
            return Binder.get(context.getEnvironment())
                    .bind("rate-limit.http.open-api", Boolean.class)
                    .orElse(true);
        }
    }
}
