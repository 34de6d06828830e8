package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.SettingsSource;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.ConfigurationPropertiesBindHandlerAdvisor;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;

/** The source of the settings, and checks of the names of properties; imported first, so that Spring Boot's binder reads them. */
@InternalConfiguration
class BoundSettingsConfiguration {

    /** Of the same name in each context, so that each has its own. */
    @InternalBean("io.ratelimited.settings")
    SettingsSource rateLimitSettings(RateLimitProperties properties, Environment environment) {
        return new BoundSettings(properties, environment);
    }

    @InternalBean("io.ratelimited.unboundProperties")
    static ConfigurationPropertiesBindHandlerAdvisor unboundProperties() {
        return UnboundProperties::new;
    }

    @InternalBean("io.ratelimited.ignoredProperties")
    @Lazy(false)
    static IgnoredProperties ignoredProperties(ApplicationContext context) {
        return new IgnoredProperties(context);
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
