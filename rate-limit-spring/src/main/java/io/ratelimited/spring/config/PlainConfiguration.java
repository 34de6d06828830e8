package io.ratelimited.spring.config;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.limit.SettingsSource;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.context.annotation.Fallback;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;

/** What Spring Boot does elsewhere: reads properties, and makes proxies. */
@InternalConfiguration
@ConditionalOnNone(value = SettingsSource.class, inHierarchy = false)
@Import(PlainConfiguration.Proxies.class)
class PlainConfiguration {

    /** Not made where Spring Boot's binder is declared later. Of the same name in each context, so that each has its own. */
    @InternalBean("io.ratelimited.environmentSettings")
    @Fallback
    @Lazy
    SettingsSource rateLimitSettings(Environment environment) {
        return new EnvironmentSettings(environment);
    }

    /** Leaves alone what the application has declared by itself. */
    static final class Proxies implements ImportBeanDefinitionRegistrar {

        @Override
        public void registerBeanDefinitions(AnnotationMetadata importing, BeanDefinitionRegistry registry) {
            AopConfigUtils.registerAutoProxyCreatorIfNecessary(registry);
        }
    }
}
