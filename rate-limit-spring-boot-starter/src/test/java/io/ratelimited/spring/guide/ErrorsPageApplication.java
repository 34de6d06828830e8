package io.ratelimited.spring.guide;

import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.redis.RedisRateLimitAutoConfiguration;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.io.DefaultResourceLoader;
import org.springframework.stereotype.Component;

/** An application of a part of the page of errors, with the imports that it leaves out. */
public final class ErrorsPageApplication {

    private static final String IMPORTS = Stream.of(
                    "io.ratelimited.core.*",
                    "io.ratelimited.spring.*",
                    "jakarta.annotation.PostConstruct",
                    "org.springframework.beans.factory.ObjectProvider",
                    "org.springframework.beans.factory.config.BeanPostProcessor",
                    "org.springframework.boot.context.event.ApplicationReadyEvent",
                    "org.springframework.context.annotation.*",
                    "org.springframework.context.event.EventListener",
                    "org.springframework.core.PriorityOrdered",
                    "org.springframework.http.ResponseEntity",
                    "org.springframework.stereotype.*",
                    "org.springframework.web.bind.annotation.*",
                    "org.springframework.web.client.RestClient")
            .map(type -> "import " + type + ";\n")
            .reduce("", String::concat);

    private static final Pattern WEB = Pattern.compile("@RestController|routes:|clients:|server\\.");

    private ErrorsPageApplication() {}

    /** Returns whether the application of these snippets starts. */
    public static boolean starts(String text, Path directory) throws Exception {
        DocPage part = new DocPage(text);
        boolean web = WEB.matcher(text).find();
        List<Class<?>> sources = new ArrayList<>(List.of(web ? Web.class : Plain.class));
        List<String> java =
                part.blocks("java").stream().map(block -> IMPORTS + block).toList();
        if (!java.isEmpty()) {
            DocPage.compile(java, Files.createDirectories(directory)).stream()
                    .filter(type -> AnnotatedElementUtils.hasAnnotation(type, Component.class))
                    .forEach(sources::add);
        }
        SpringApplication application = new SpringApplication(
                new DefaultResourceLoader(sources.get(sources.size() - 1).getClassLoader()),
                sources.toArray(Class<?>[]::new));
        application.setWebApplicationType(web ? WebApplicationType.SERVLET : WebApplicationType.NONE);
        Map<String, Object> properties = new LinkedHashMap<>();
        for (String property : part.properties()) {
            String[] nameAndValue = property.split("=", 2);
            properties.put(nameAndValue[0], nameAndValue[1]);
        }
        StandardEnvironment environment = new StandardEnvironment();
        environment.getPropertySources().addFirst(new MapPropertySource("page", properties));
        application.setEnvironment(environment);
        try (ConfigurableApplicationContext context = application.run(
                "--server.port=0",
                "--server.shutdown=immediate",
                "--spring.main.banner-mode=off",
                "--test.actuator=" + text.contains("actuator"),
                "--spring.autoconfigure.exclude="
                        + (text.contains("/login") ? RunningServer.WITHOUT_REDIS : RunningServer.WITHOUT))) {
            return context.isRunning();
        } catch (RuntimeException ex) {
            return false;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Web {}

    /** Starts in a fraction of the time. */
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        RateLimitAutoConfiguration.class,
        RedisRateLimitAutoConfiguration.class,
        AopAutoConfiguration.class
    })
    static class Plain {}
}
