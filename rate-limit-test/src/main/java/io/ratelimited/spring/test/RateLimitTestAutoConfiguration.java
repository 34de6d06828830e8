package io.ratelimited.spring.test;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.internals.SharedLimits;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.boot.NamedBackends;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.util.Map;
import java.util.Set;
import org.springframework.beans.factory.BeanRegistrar;
import org.springframework.beans.factory.BeanRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;

/** Wires a ticker that the test moves, and limits in memory whose budgets can begin anew. */
@AutoConfiguration(before = RateLimitAutoConfiguration.class)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@Conditional(OnEnabledCondition.class)
@Import(RateLimitTestAutoConfiguration.Backends.class)
final class RateLimitTestAutoConfiguration {

    /**
     * Wins over a ticker of the application, unless that is {@code @Primary}, too: then startup fails, so tests leave such a
     * bean out. A {@code ManualTicker} that the test configures overrides this.
     */
    @InternalBean("io.ratelimited.rateLimitManualTicker")
    @Primary
    @ConditionalOnMissingBean
    ManualTicker rateLimitManualTicker() {
        return new ManualTicker();
    }

    /** One for a hierarchy of contexts, which have the same limits. */
    @InternalBean("io.ratelimited.rateLimitFreshBudgets")
    @ConditionalOnMissingBean
    FreshBudgets rateLimitFreshBudgets(
            ManualTicker ticker, RateLimitProperties properties, ObjectProvider<LimitRegistry> limits) {
        return new FreshBudgets(ticker, properties.memory().keys(), limits::getObject);
    }

    /** Memory in the place of each backend that the properties name. */
    static final class Backends implements BeanRegistrar {

        @Override
        public void register(BeanRegistry registry, Environment environment) {
            register(registry, "memory", Set.of());
            NamedBackends.of(environment).stream()
                    .filter(name -> !name.equals("memory"))
                    .forEach(name -> register(registry, name, LimitProperty.ofSomeBackends()));
        }

        private static void register(BeanRegistry registry, String backend, Set<String> properties) {
            // RedisRateLimitAutoConfiguration leaves Redis alone when there is a bean of this name.
            registry.registerBean(
                    "io.ratelimited." + backend + "LimiterFactory",
                    MemoryInstead.class,
                    spec -> spec.supplier(
                            context -> new MemoryInstead(backend, properties, context.bean(FreshBudgets.class))));
        }
    }

    /** The first of the factories, anyone who else makes limiters of this backend. */
    private record MemoryInstead(String backend, Set<String> properties, FreshBudgets budgets)
            implements LimiterFactory, Ordered {

        @Override
        public boolean blocks() {
            return true;
        }

        /** What fails the startup of the application fails that of the test. */
        @Override
        public void check(Limit limit) {
            if (backend.equals("redis")) {
                SharedLimits.requireShareable(limit);
            }
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> ofLimit) {
            return budgets.limiter(limit);
        }

        @Override
        public int getOrder() {
            return HIGHEST_PRECEDENCE;
        }
    }
}
