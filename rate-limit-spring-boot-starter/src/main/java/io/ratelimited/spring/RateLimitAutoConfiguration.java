package io.ratelimited.spring;

import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Role;

/** Wires limits, their aspect, and limits in memory. */
@AutoConfiguration
@ConditionalOnBooleanProperty(name = "rate-limit.enabled", matchIfMissing = true)
@EnableConfigurationProperties(RateLimitProperties.class)
public final class RateLimitAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean
    Ticker rateLimitTicker() {
        return Ticker.system();
    }

    @Bean
    LimiterFactory inMemoryLimiterFactory(RateLimitProperties properties, Ticker ticker) {
        return new InMemoryLimiterFactory(ticker, properties.memory().maximumKeys());
    }

    @Bean
    @ConditionalOnMissingBean
    RateLimits rateLimits(
            RateLimitProperties properties,
            ObjectProvider<LimiterFactory> factories,
            ObjectProvider<DecisionObserver> observers) {
        return new RateLimits(
                properties,
                factories.orderedStream().toList(),
                new Gate(observers.orderedStream().toList()));
    }

    @Bean
    LimitedMethods limitedMethods(
            RateLimits rateLimits,
            ConfigurableBeanFactory beanFactory,
            ObjectProvider<CurrentRequest.Source> requests) {
        return new LimitedMethods(
                rateLimits,
                beanFactory,
                value -> beanFactory.resolveEmbeddedValue(value),
                new CallStyles(),
                requests.getIfAvailable());
    }

    @Bean
    RouteLimits routeLimits(RateLimits rateLimits, RateLimitProperties properties, BeanFactory beanFactory) {
        return RouteLimits.of(properties.routes(), rateLimits, beanFactory);
    }

    @Bean
    @ConditionalOnProperty(name = "rate-limit.aspect.mode", havingValue = "proxy", matchIfMissing = true)
    RateLimitAspect rateLimitAspect(LimitedMethods methods, RateLimitProperties properties) {
        return new RateLimitAspect(methods, properties.aspect().order());
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnProperty(name = "rate-limit.aspect.mode", havingValue = "proxy", matchIfMissing = true)
    static RateLimitAdvisor rateLimitAdvisor(ObjectProvider<LimitedMethods> methods, RateLimitProperties properties) {
        return new RateLimitAdvisor(methods::getObject, properties.aspect().order());
    }

    private record InMemoryLimiterFactory(Ticker ticker, long maximumKeys) implements LimiterFactory {

        @Override
        public LimitProperties.Backend backend() {
            return LimitProperties.Backend.MEMORY;
        }

        @Override
        public RateLimiter create(Limit limit, LimitProperties properties) {
            return new InMemoryRateLimiter(limit, ticker, maximumKeys);
        }
    }
}
