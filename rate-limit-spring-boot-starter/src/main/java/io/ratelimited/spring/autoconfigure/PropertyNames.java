package io.ratelimited.spring.autoconfigure;

import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.context.properties.ConfigurationPropertiesBindHandlerAdvisor;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;

/** Checks the names of properties, whether limits apply or not. */
@Configuration(proxyBeanMethods = false)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
class PropertyNames {

    @Bean("io.ratelimited.unboundProperties")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static ConfigurationPropertiesBindHandlerAdvisor unboundProperties() {
        return UnboundProperties::new;
    }

    @Bean("io.ratelimited.ignoredProperties")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @Lazy(false)
    static IgnoredProperties ignoredProperties(ApplicationContext context) {
        return new IgnoredProperties(context);
    }
}
