package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.SettingsSource;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;

/** The source of the settings; imported first, so that the properties are not read without Spring Boot's binder. */
@Configuration(proxyBeanMethods = false)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
class BoundSettingsConfiguration {

    /** Of the same name in each context, so that each has its own. */
    @Bean("io.ratelimited.settings")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    SettingsSource rateLimitSettings(RateLimitProperties properties, Environment environment) {
        return new BoundSettings(properties, environment);
    }

    /** In the context whose limits the others of a hierarchy share. */
    @Configuration(proxyBeanMethods = false)
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @Conditional(OnEnabledCondition.class)
    @ConditionalOnMissingBean(ConfigurationRefresh.class)
    static class Refreshed {

        @Bean("io.ratelimited.rateLimitConfigurationRefresh")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        ConfigurationRefresh rateLimitConfigurationRefresh(LimitRegistry registry, Environment environment) {
            return new ConfigurationRefresh(registry, environment);
        }
    }
}
