package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.SubmissionPublisher;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.DeferredImportSelector;
import org.springframework.context.annotation.Import;
import org.springframework.core.type.AnnotationMetadata;

/** What an application does not have, it does not need; what it has of its own is used. */
@Tag("slow")
class MissingPartsTest {

    private static final String REACTOR = "reactor-.*";
    private static final String KOTLIN = "kotlin.*";
    private static final String MICROMETER = "micrometer-.*|context-propagation-.*";
    private static final String OPERATIONS = "spring-boot-(actuator|health|micrometer).*";
    private static final String WEB = "spring-(boot-)?(web|rest|servlet|http).*|.*servlet-api.*|(tomcat|jetty)-.*";
    private static final String REDIS = "rate-limit-redis.*|lettuce-.*|spring-(boot-)?data-redis.*";

    @Test
    void withoutAnyOptionalPartMethodsAreLimited() throws Exception {
        assertLimitedWithout(String.join("|", REACTOR, KOTLIN, MICROMETER, OPERATIONS, WEB, REDIS));
    }

    static Stream<String> withoutOneOptionalPartMethodsAreLimited() {
        return Stream.of(REACTOR, REDIS, KOTLIN, String.join("|", MICROMETER, OPERATIONS), WEB);
    }

    @Tag("proof")
    @ParameterizedTest
    @MethodSource
    void withoutOneOptionalPartMethodsAreLimited(String archives) throws Exception {
        assertLimitedWithout(archives);
    }

    private static void assertLimitedWithout(String archives) throws Exception {
        assertThat(outcomeWithout(archives, Application.class)).isEqualTo("refused Limited.call, got a");
    }

    @ParameterizedTest
    @ValueSource(strings = {REACTOR, REACTOR + "|reactive-streams-.*|rxjava-.*"})
    void withoutReactorAReactiveMethodFailsStartup(String archives) throws Exception {
        assertThat(outcomeWithout(archives, Published.class))
                .asString()
                .contains("method call returns java.util.concurrent.Flow$Publisher", "io.projectreactor:reactor-core");
    }

    /** Runs in a class loader without the archives, so that no class of theirs can be linked. */
    private static Object outcomeWithout(String archives, Class<?> application) throws Exception {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        String classPath = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        List<URL> urls = new ArrayList<>();
        int removed = 0;
        for (String entry : List.of(classPath.split(File.pathSeparator, -1))) {
            Path path = Path.of(entry);
            if (path.getFileName().toString().matches(archives)) {
                removed++;
            } else {
                urls.add(path.toUri().toURL());
            }
        }
        assertThat(removed).isPositive();
        try (URLClassLoader without =
                new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader())) {
            thread.setContextClassLoader(without);
            return without.loadClass(application.getName()).getMethod("outcome").invoke(null);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Test
    void anApplicationsOwnTickerIsUsed() {
        ManualTicker ticker = new ManualTicker();
        Contexts.runner(ticker)
                .run(context -> assertThat(context.getBean(Ticker.class)).isSameAs(ticker));
    }

    @Test
    void anApplicationsOwnLimitsAreUsed() {
        Contexts.runner()
                .withBean("own", RateLimits.class, () -> mock(RateLimits.class))
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .getBeanNames(RateLimits.class)
                        .containsExactly("own"));
    }

    @Test
    void aLimiterFactoryBeforeOursReplacesABackend() {
        LimiterFactory own = new LimiterFactory() {
            @Override
            public String backend() {
                return "redis";
            }

            @Override
            public RateLimiter create(io.ratelimited.core.Limit limit, String tier, Map<String, String> properties) {
                return new io.ratelimited.core.memory.InMemoryRateLimiter(limit);
            }
        };
        Contexts.runner()
                .withBean(LimiterFactory.class, () -> own)
                .withBean(Limited.class)
                .withPropertyValues("rate-limit.backend=redis")
                .run(context -> assertThat(context).hasNotFailed());
    }

    /** The auto-configurations of the starter, by name as Spring Boot reads them, and what makes proxies. */
    static class OwnAutoConfigurations implements DeferredImportSelector {
        @Override
        public String[] selectImports(AnnotationMetadata importing) {
            return Stream.concat(
                            ImportCandidates.load(
                                            AutoConfiguration.class, getClass().getClassLoader())
                                    .getCandidates()
                                    .stream()
                                    .filter(name -> name.startsWith("io.ratelimited.")),
                            Stream.of(AopAutoConfiguration.class.getName()))
                    .toArray(String[]::new);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import({OwnAutoConfigurations.class, Limited.class})
    public static class Application {

        /** Of the web application with the same configuration. */
        private static final String[] ROUTE = {
            "--rate-limit.limits.api.rate=5/m",
            "--rate-limit.routes[0].path=/api/**",
            "--rate-limit.routes[0].limits=api"
        };

        /** What becomes of calls of an application. */
        public static String outcome() {
            SpringApplication application = new SpringApplication(Application.class);
            application.setWebApplicationType(WebApplicationType.NONE);
            application.setBannerMode(Banner.Mode.OFF);
            try (ConfigurableApplicationContext context = application.run(ROUTE)) {
                Limited bean = context.getBean(Limited.class);
                bean.call("a");
                bean.call("b");
                try {
                    bean.call("a");
                } catch (RateLimitExceededException refusal) {
                    return "refused " + refusal.limit() + ", got "
                            + bean.later("a").join();
                }
                return "not refused";
            }
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import(OwnAutoConfigurations.class)
    public static class Published {

        @RateLimited(rate = "1/h")
        public Flow.Publisher<String> call() {
            return new SubmissionPublisher<>();
        }

        /** What the application says when it does not start. */
        public static String outcome() {
            SpringApplication application = new SpringApplication(Published.class);
            application.setWebApplicationType(WebApplicationType.NONE);
            application.setBannerMode(Banner.Mode.OFF);
            try (ConfigurableApplicationContext context = application.run()) {
                return "started " + context.getId();
            } catch (InvalidRateLimitException ex) {
                return ex.getMessage() + ex.remedy();
            }
        }
    }

    static class Limited {
        @RateLimited(rate = "1/h", key = "#user")
        public void call(String user) {}

        @RateLimited(rate = "1/h")
        public CompletableFuture<String> later(String user) {
            return CompletableFuture.completedFuture(user);
        }
    }
}
