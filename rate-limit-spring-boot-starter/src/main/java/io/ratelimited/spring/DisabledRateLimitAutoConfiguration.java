package io.ratelimited.spring;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.autoconfigure.OnEnabledCondition;
import io.ratelimited.spring.call.ContextPropagatingExecutor;
import io.ratelimited.spring.call.LimitEnforcer;
import io.ratelimited.spring.limit.LimitRegistry;
import java.util.List;
import java.util.concurrent.ForkJoinPool;
import org.apache.commons.logging.LogFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;

/**
 * Applies when {@code rate-limit.enabled} is false: no method is limited, and the {@link RateLimits} bean, which
 * code depends on, lets every call go.
 */
@AutoConfiguration
@Conditional(OnEnabledCondition.Not.class)
@EnableConfigurationProperties(RateLimitProperties.class)
public final class DisabledRateLimitAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean
    RateLimits rateLimits(RateLimitProperties properties) {
        LogFactory.getLog(DisabledRateLimitAutoConfiguration.class)
                .warn("Nothing is rate limited: rate-limit.enabled is false.");
        return new RateLimits(
                false,
                new LimitRegistry(properties, List.of(), null),
                new LimitEnforcer(List.of(), Ticker.system(), new ContextPropagatingExecutor(ForkJoinPool::commonPool)),
                null);
    }
}
