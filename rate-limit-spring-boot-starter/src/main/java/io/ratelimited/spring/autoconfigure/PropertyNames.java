package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import org.springframework.boot.context.properties.ConfigurationPropertiesBindHandlerAdvisor;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Lazy;

/** Checks the names of properties, whether limits apply or not. */
@InternalConfiguration
class PropertyNames {

    @InternalBean("io.ratelimited.unboundProperties")
    static ConfigurationPropertiesBindHandlerAdvisor unboundProperties() {
        return UnboundProperties::new;
    }

    @InternalBean("io.ratelimited.ignoredProperties")
    @Lazy(false)
    static IgnoredProperties ignoredProperties(ApplicationContext context) {
        return new IgnoredProperties(context);
    }
}
