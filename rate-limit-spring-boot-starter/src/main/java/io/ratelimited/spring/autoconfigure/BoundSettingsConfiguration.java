package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.SettingsSource;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Conditional;
import org.springframework.core.env.Environment;

/** The source of the settings; imported first, so that the properties are not read without Spring Boot's binder. */
@InternalConfiguration
class BoundSettingsConfiguration {

    /** Of the same name in each context, so that each has its own. */
    @InternalBean("io.ratelimited.settings")
    SettingsSource rateLimitSettings(RateLimitProperties properties, Environment environment) {
        return new BoundSettings(properties, environment);
    }

    /** In the context whose limits the others of a hierarchy share. */
    @InternalConfiguration
    @Conditional(OnEnabledCondition.class)
    @ConditionalOnMissingBean(ConfigurationRefresh.class)
    static class Refreshed {

        @InternalBean("io.ratelimited.rateLimitConfigurationRefresh")
        ConfigurationRefresh rateLimitConfigurationRefresh(LimitRegistry registry, Environment environment) {
            return new ConfigurationRefresh(registry, environment);
        }
    }
}
