package io.ratelimited.spring.autoconfigure;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.threads.CallbackThreads;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration.InMemoryLimiterFactory;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.block.BlockReports;
import io.ratelimited.spring.call.Continuations;
import io.ratelimited.spring.call.LimitEnforcer;
import io.ratelimited.spring.call.UnlimitedCalls;
import io.ratelimited.spring.limit.ChangeReports;
import io.ratelimited.spring.limit.LimitOperations;
import io.ratelimited.spring.limit.LimitProperty;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.limit.RequestThreads;
import io.ratelimited.spring.text.LogText;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;

/**
 * Applies when {@code rate-limit.enabled} is false: no method is limited, and the {@link RateLimits} bean, which
 * code depends on, admits every call. Operators see and change the limits of the properties.
 */
@AutoConfiguration
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@Conditional(OnEnabledCondition.Not.class)
@EnableConfigurationProperties(RateLimitProperties.class)
@Import(PropertyNames.class)
public final class DisabledRateLimitAutoConfiguration {

    @Bean("io.ratelimited.rateLimits")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnMissingBean
    RateLimits rateLimits() {
        LogText.lines(DisabledRateLimitAutoConfiguration.class)
                .warn("Nothing is rate limited: rate-limit.enabled is false. [RL-205]");
        return new UnlimitedCalls(new LimitEnforcer(
                List.of(),
                Ticker.system(),
                new Continuations(() -> CallbackThreads.SHARED, List::of, null),
                () -> RequestThreads.UNBOUNDED));
    }

    @Bean("io.ratelimited.rateLimitOperations")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnMissingBean
    RateLimitOperations rateLimitOperations(
            RateLimitProperties properties, Environment environment, ApplicationEventPublisher events) {
        LimitRegistry registry = new LimitRegistry(
                properties.limitSettings(),
                backends(environment, properties),
                null,
                RequestThreads.UNBOUNDED,
                new ChangeReports(events),
                new BlockReports(events),
                Ticker.system());
        return new LimitOperations(false, registry, null);
    }

    @Bean("io.ratelimited.inheritedLimits")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @Lazy(false)
    InitializingBean inheritedLimits(ApplicationContext context) {
        return () -> HierarchyMember.requireSameLimits(context);
    }

    /** Limits can be looked at and changed, in memory whatever their backend: none of them decides about a call. */
    private static List<LimiterFactory> backends(Environment environment, RateLimitProperties properties) {
        Set<String> names = new HashSet<>(NamedBackends.of(environment));
        names.add("memory");
        return names.stream()
                .<LimiterFactory>map(name -> new InMemoryLimiterFactory(
                        name,
                        LimitProperty.ofSomeBackends(),
                        Ticker.system(),
                        limit -> properties.memory().keys().maximumKeys(limit, 1)))
                .toList();
    }
}
