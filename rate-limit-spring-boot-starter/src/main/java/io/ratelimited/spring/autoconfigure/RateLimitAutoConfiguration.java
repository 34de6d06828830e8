package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.config.RateLimitConfiguration;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.request.ContextRequests;
import io.ratelimited.spring.internals.web.RouteLimits;
import io.ratelimited.spring.internals.web.UncountedRoutes;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;

/**
 * Limits by the properties as Spring Boot binds them, and on requests by path; {@link RateLimitConfiguration} has all that knows
 * no Spring Boot. With {@code rate-limit.enabled: false} it has no routes.
 */
@AutoConfiguration(
        beforeName = "io.github.resilience4j.springboot.circuitbreaker.autoconfigure.CircuitBreakerAutoConfiguration")
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@EnableConfigurationProperties(RateLimitProperties.class)
@Import({BoundSettingsConfiguration.class, RateLimitConfiguration.class})
public final class RateLimitAutoConfiguration {

    @InternalBean("io.ratelimited.routeLimits")
    @Conditional(OnEnabledCondition.class)
    RouteLimits routeLimits(
            LimitRegistry registry,
            LimitEnforcer enforcer,
            RateLimitProperties properties,
            ConfigurableListableBeanFactory beanFactory) {
        return RouteLimits.of(properties.routes(), registry, enforcer, beanFactory);
    }

    @InternalBean("io.ratelimited.rateLimitUncountedRoutes")
    @Lazy(false)
    @Conditional(OnEnabledCondition.class)
    UncountedRoutes rateLimitUncountedRoutes(RateLimitProperties properties, ContextRequests requests) {
        return new UncountedRoutes(properties.routes(), requests::isEmpty);
    }
}
