package io.ratelimited.spring.redis;

import io.ratelimited.redis.RedisBackend;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Role;

/**
 * Wires the health contributor {@code rateLimit}, unless {@code management.health.ratelimit.enabled} is false. Contributors
 * are called by the names of their beans, so this bean alone has a short one, and one of the application replaces it.
 */
@AutoConfiguration(after = RedisRateLimitAutoConfiguration.class)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass({RedisBackend.class, HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnBean(RedisBackend.class)
@ConditionalOnEnabledHealthIndicator("ratelimit")
public final class RedisRateLimitHealthAutoConfiguration {

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnMissingBean(name = {"rateLimitHealthIndicator", "rateLimitHealthContributor"})
    HealthIndicator rateLimitHealthIndicator(
            ObjectProvider<RedisBackend> backend, ObjectProvider<LimitRegistry> registry) {
        return new RateLimitHealthIndicator(
                backend::getObject, () -> registry.stream().findFirst());
    }
}
