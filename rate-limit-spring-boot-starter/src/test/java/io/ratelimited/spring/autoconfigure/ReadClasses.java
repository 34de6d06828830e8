package io.ratelimited.spring.autoconfigure;

import org.springframework.beans.factory.support.BeanDefinitionBuilder;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.io.DefaultResourceLoader;
import org.springframework.core.type.classreading.CachingMetadataReaderFactory;
import org.springframework.core.type.classreading.MetadataReaderFactory;

/**
 * What all applications of a test process know of the class path: an application reads some five hundred classes from its archives at each
 * start, a fifth of the time that it takes. Nor do they look for mixins of Jackson among all classes of the tests.
 */
final class ReadClasses implements ApplicationContextInitializer<ConfigurableApplicationContext> {

    /** Where Spring Boot looks for the one that its parts share. */
    private static final String NAME = "org.springframework.boot.autoconfigure.internalCachingMetadataReaderFactory";

    private static final ClassLoader LOADER = ReadClasses.class.getClassLoader();
    private static final MetadataReaderFactory FACTORY =
            new CachingMetadataReaderFactory(new DefaultResourceLoader(LOADER)) {

                /** Spring does so when an application has started. */
                @Override
                public void clearCache() {}
            };

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        if (context.getClassLoader() == LOADER && context instanceof BeanDefinitionRegistry registry) {
            registry.registerBeanDefinition(
                    NAME,
                    BeanDefinitionBuilder.rootBeanDefinition(MetadataReaderFactory.class, () -> FACTORY)
                            .getBeanDefinition());
            context.addBeanFactoryPostProcessor(beans -> {
                for (String mixins : new String[] {"jacksonMixinModule", "jacksonMixinModuleEntries"}) {
                    if (registry.containsBeanDefinition(mixins)) {
                        registry.removeBeanDefinition(mixins);
                    }
                }
            });
        }
    }
}
