package io.ratelimited.sample.docs;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.sample.Http;
import io.ratelimited.sample.SnippetApplication;
import io.ratelimited.sample.SnippetCompiler;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.env.PropertySource;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.core.io.DefaultResourceLoader;
import org.springframework.stereotype.Component;

/** One web application that has copied every snippet of README and the guide: the names of all of them go together. */
class WholeGuideTest {

    @TempDir
    private Path directory;

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void everySnippetStandsInOneApplication(WebApplicationType type) throws Exception {
        Map<String, List<String>> java = new TreeMap<>();
        List<PropertySource<?>> properties = new ArrayList<>();
        for (GuideTest.Section section : GuideTest.sections().toList()) {
            if (section.java().stream().anyMatch(snippet -> snippet.contains("@Test"))) {
                continue;
            }
            if (!section.java().isEmpty()) {
                java.put("guide" + java.size(), section.java());
            }
            // README's is that of production.
            for (String yaml : section.toString().startsWith("README") ? List.<String>of() : section.yaml()) {
                properties.addAll(new YamlPropertySourceLoader()
                        .load(
                                section + " " + properties.size(),
                                new ByteArrayResource(yaml.getBytes(StandardCharsets.UTF_8))));
            }
        }
        List<Class<?>> components = SnippetApplication.components(SnippetCompiler.compile(java, directory));
        try (ConfigurableApplicationContext context = new SpringApplicationBuilder(Own.class)
                .web(type)
                .resourceLoader(new DefaultResourceLoader(components.get(0).getClassLoader()))
                .initializers(application -> {
                    properties.forEach(application.getEnvironment().getPropertySources()::addLast);
                    register((GenericApplicationContext) application, components);
                })
                .run(
                        "--server.port=0",
                        "--server.shutdown=immediate",
                        "--rate-limit.backend=memory",
                        "--spring.config.location=optional:classpath:/none/")) {
            Http http = new Http(context.getEnvironment().getRequiredProperty("local.server.port", Integer.class));
            // The advice of the page on HTTP words the refusal.
            assertThat(Stream.generate(() -> http.get("/quotes/ACME")).limit(6))
                    .extracting(HttpResponse::statusCode)
                    .containsExactly(200, 200, 200, 200, 200, 503);
            assertThat(http.get("/quotes/ACME").body()).isEqualTo("too many calls of quotes");
        }
    }

    /** Under the names that they state; classes of one name are beans of several. */
    private static void register(GenericApplicationContext context, List<Class<?>> components) {
        for (Class<?> component : components) {
            String stated = AnnotatedElementUtils.getMergedAnnotation(component, Component.class)
                    .value();
            context.registerBean(stated.isEmpty() ? "guide" + context.getBeanDefinitionCount() : stated, component);
        }
    }

    @EnableAutoConfiguration
    static class Own {}
}
