package io.ratelimited.sample;

import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.env.PropertySource;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.core.io.DefaultResourceLoader;
import org.springframework.stereotype.Component;

/** Starts what snippets show: their components, with their properties and none of the sample's. */
public final class SnippetApplication {

    private SnippetApplication() {}

    /** The started application; to be closed. */
    public static ConfigurableApplicationContext start(List<Class<?>> classes, List<String> yaml) throws IOException {
        List<PropertySource<?>> properties = new ArrayList<>();
        for (String text : yaml) {
            // Of two sources of one name the later would replace the earlier.
            properties.addAll(new YamlPropertySourceLoader()
                    .load(
                            "snippet " + properties.size(),
                            new ByteArrayResource(text.getBytes(StandardCharsets.UTF_8))));
        }
        ClassLoader loader = classes.isEmpty()
                ? SnippetApplication.class.getClassLoader()
                : classes.get(0).getClassLoader();
        return new SpringApplicationBuilder(Wiring.class)
                .sources(components(classes).toArray(Class<?>[]::new))
                .resourceLoader(new DefaultResourceLoader(loader))
                .web(WebApplicationType.NONE)
                .properties("spring.config.location=optional:classpath:/none/", "spring.main.banner-mode=off")
                .initializers(context -> properties.forEach(
                        source -> context.getEnvironment().getPropertySources().addFirst(source)))
                .run();
    }

    /** Those of the classes that are Spring components. */
    public static List<Class<?>> components(List<Class<?>> classes) {
        return classes.stream()
                .filter(type -> AnnotatedElementUtils.hasAnnotation(type, Component.class))
                .toList();
    }

    @ImportAutoConfiguration({AopAutoConfiguration.class, RateLimitAutoConfiguration.class})
    static class Wiring {}
}
