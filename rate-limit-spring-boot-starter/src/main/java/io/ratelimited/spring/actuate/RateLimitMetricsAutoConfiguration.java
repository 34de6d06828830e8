package io.ratelimited.spring.actuate;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import io.ratelimited.spring.internals.client.LimitedClients;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Role;

/** Wires the meters, where there is one registry for them, or a primary one. */
@AutoConfiguration(
        after = RateLimitAutoConfiguration.class,
        afterName = {
            "org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration"
        })
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass(MeterRegistry.class)
@Conditional(OnEnabledCondition.class)
@ConditionalOnSingleCandidate(MeterRegistry.class)
@ConditionalOnBean(RateLimits.class)
public final class RateLimitMetricsAutoConfiguration {

    @InternalBean("io.ratelimited.rateLimitMetrics")
    @ConditionalOnMissingBean
    RateLimitMetrics rateLimitMetrics(MeterRegistry registry, ObjectProvider<LimitRegistry> limits) {
        return new RateLimitMetrics(registry, limits);
    }

    @InternalBean("io.ratelimited.rateLimitClientMeters")
    MeterBinder rateLimitClientMeters(ObjectProvider<LimitedClients> clients) {
        return new ClientMeters(clients);
    }
}
