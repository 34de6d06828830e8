package io.ratelimited.spring.test;

import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.client.UnlimitedOkHttpAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.graphql.GraphQlRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.reactive.ReactiveRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.aot.AotDetector;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.MapPropertySource;
import org.springframework.test.context.ContextConfigurationAttributes;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.ContextCustomizerFactory;
import org.springframework.test.context.MergedContextConfiguration;
import org.springframework.test.context.TestContextAnnotationUtils;

/** Sets up the context of a test with {@link AutoConfigureRateLimits}. */
final class RateLimitsContextCustomizerFactory implements ContextCustomizerFactory {

    @Override
    public @Nullable ContextCustomizer createContextCustomizer(
            Class<?> testClass, List<ContextConfigurationAttributes> attributes) {
        AutoConfigureRateLimits annotation =
                TestContextAnnotationUtils.findMergedAnnotation(testClass, AutoConfigureRateLimits.class);
        return annotation == null ? null : new Customizer(annotation.enabled());
    }

    /** A part of the key under which contexts are cached: contexts that differ in it are never shared. */
    private record Customizer(boolean enabled) implements ContextCustomizer {

        @Override
        public void customizeContext(ConfigurableApplicationContext context, MergedContextConfiguration configuration) {
            context.getEnvironment()
                    .getPropertySources()
                    .addFirst(new MapPropertySource("@AutoConfigureRateLimits", Map.of("rate-limit.enabled", enabled)));
            // Code that was generated ahead of time registers this bean and those that it imports.
            if (!AotDetector.useGeneratedArtifacts()
                    && context.getBeanFactory() instanceof BeanDefinitionRegistry registry) {
                registry.registerBeanDefinition(Imports.class.getName(), new RootBeanDefinition(Imports.class));
            }
        }
    }

    /** The configuration that slices leave out. A whole application has it already, and then it is there once. */
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        AopAutoConfiguration.class,
        RateLimitTestAutoConfiguration.class,
        RateLimitAutoConfiguration.class,
        ClientRateLimitAutoConfiguration.class,
        UnlimitedOkHttpAutoConfiguration.class,
        ServletRateLimitAutoConfiguration.class,
        ReactiveRateLimitAutoConfiguration.class,
        GraphQlRateLimitAutoConfiguration.class
    })
    static final class Imports {}
}
