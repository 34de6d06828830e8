package io.ratelimited.spring.actuate;

import io.micrometer.observation.ObservationRegistry;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitObservationConvention;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.bean.InternalBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.context.annotation.Role;

/** Wires the key values of limits in observations, where there is one registry of observations, or a primary one. */
@AutoConfiguration(
        after = RateLimitAutoConfiguration.class,
        afterName = "org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration")
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass(ObservationRegistry.class)
@ConditionalOnSingleCandidate(ObservationRegistry.class)
@ConditionalOnBean(RateLimits.class)
public final class RateLimitObservationAutoConfiguration {

    @InternalBean("io.ratelimited.rateLimitObservations")
    DecisionObserver rateLimitObservations(
            ObservationRegistry registry, ObjectProvider<RateLimitObservationConvention> convention) {
        return new RateLimitObservations(
                registry, convention.getIfAvailable(() -> new RateLimitObservationConvention() {}));
    }
}
