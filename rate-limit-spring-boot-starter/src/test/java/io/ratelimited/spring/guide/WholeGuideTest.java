package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.redis.RedisProcess;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.lang.reflect.Method;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.aop.support.AopUtils;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.security.core.userdetails.MapReactiveUserDetailsService;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetails;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.stereotype.Component;
import org.yaml.snakeyaml.Yaml;

/**
 * One web application that has copied every snippet of README and the guide, with Spring Security and Redis: all names go
 * together, and no page sets what another sets otherwise.
 */
@Tag("proof")
class WholeGuideTest {

    /**
     * Snippets that cannot be part of the application, and why. README's properties are those of production, where a call
     * that is refused here goes. A test is no bean (GuideTest runs them). The page of errors shows what
     * does not start (ErrorsPageTest). The backend is an excerpt (OwnBackendTest).
     */
    private static final Set<String> ELSEWHERE = Set.of(
            "README.md yaml",
            "docs/errors.md java",
            "docs/errors.md yaml",
            "docs/testing-your-limits.md java",
            "docs/engineering/own-backend.md java",
            "docs/engineering/own-backend.md yaml");

    /** Each is for one kind of application, in the place of the users that this one has (LockoutPageTest). */
    private static final Set<String> USERS = Set.of("UserConfiguration", "ReactiveUserConfiguration");

    private static final String RIGHT =
            "Basic " + Base64.getEncoder().encodeToString("ann:right".getBytes(StandardCharsets.US_ASCII));

    @TempDir
    private Path directory;

    @Test
    void eachExceptionStillHasSnippets() {
        assertThat(ELSEWHERE).allSatisfy(snippets -> {
            String[] pageAndKind = snippets.split(" ", -1);
            assertThat(DocPage.page(Path.of("..", pageAndKind[0])).blocks(pageAndKind[1]))
                    .isNotEmpty();
        });
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void everySnippetStandsInOneApplication(Kind kind) throws Exception {
        List<Class<?>> components = DocPage.compile(sources(), directory).stream()
                .filter(type -> AnnotatedElementUtils.hasAnnotation(type, Component.class))
                .filter(type -> !USERS.contains(type.getSimpleName()))
                .toList();
        assertThat(components).hasSizeGreaterThan(20);
        try (RedisProcess redis = RedisProcess.start();
                RunningServer server = kind.startSecured(
                        Stream.concat(components.stream(), Stream.of(Own.class)).toList(),
                        properties("redis://127.0.0.1:" + redis.port()))) {
            assertThat(components)
                    .filteredOn(WholeGuideTest::isLimited)
                    .hasSizeGreaterThan(15)
                    .allMatch(type -> AopUtils.isAopProxy(server.context.getBean(type)));
            // The advice of the page on HTTP words the refusal.
            assertThat(Stream.generate(() -> server.get("/quotes/ACME", "Authorization", RIGHT))
                            .limit(6))
                    .extracting(HttpResponse::statusCode)
                    .containsExactly(200, 200, 200, 200, 200, 503);
            assertThat(server.get("/quotes/ACME", "Authorization", RIGHT).body())
                    .isEqualTo("too many calls of quotes");
        }
    }

    private static List<String> sources() throws Exception {
        List<String> sources = new ArrayList<>();
        for (String page : pages()) {
            sources.addAll(snippets(page, "java"));
        }
        return sources;
    }

    /** One application.yml with what all pages say. */
    private static String[] properties(String redis) throws Exception {
        Map<String, Object> all = new LinkedHashMap<>();
        for (String page : pages()) {
            for (String yaml : snippets(page, "yaml")) {
                add(page, new Yaml().load(yaml), all);
            }
        }
        byte[] yaml = new Yaml().dump(all).getBytes(StandardCharsets.UTF_8);
        EnumerablePropertySource<?> source = (EnumerablePropertySource<?>) new YamlPropertySourceLoader()
                .load("guide", new ByteArrayResource(yaml))
                .get(0);
        List<String> properties = new ArrayList<>();
        for (String name : source.getPropertyNames()) {
            properties.add(name + "=" + (name.equals("rate-limit.redis.url") ? redis : source.getProperty(name)));
        }
        properties.add("rate-limit.redis.timeout=20s");
        properties.add("devices.secret=0123456789abcdef");
        return properties.toArray(String[]::new);
    }

    /** Maps are put together and lists are appended; nothing is set twice to different values. */
    @SuppressWarnings("unchecked")
    private static void add(String page, Map<String, Object> more, Map<String, Object> all) {
        more.forEach((name, value) -> {
            Object before = all.putIfAbsent(name, value);
            if (before instanceof Map<?, ?> map) {
                add(page, (Map<String, Object>) value, (Map<String, Object>) map);
            } else if (before instanceof List<?> list) {
                all.put(
                        name,
                        Stream.concat(list.stream(), ((List<?>) value).stream()).toList());
            } else if (before != null) {
                assertThat(value).as("%s: %s", page, name).isEqualTo(before);
            }
        });
    }

    private static List<String> snippets(String page, String kind) throws Exception {
        return ELSEWHERE.contains(page + " " + kind)
                ? List.of()
                : DocPage.page(Path.of("..", page)).blocks(kind);
    }

    private static List<String> pages() throws Exception {
        Path root = Path.of("..");
        try (Stream<Path> docs = Files.walk(root.resolve("docs"))) {
            return Stream.concat(
                            Stream.of("README.md"),
                            docs.map(path -> root.relativize(path).toString().replace('\\', '/')))
                    .filter(path -> path.endsWith(".md"))
                    .sorted()
                    .toList();
        }
    }

    private static boolean isLimited(Class<?> type) {
        return AnnotatedElementUtils.hasAnnotation(type, RateLimited.class)
                || Stream.of(type.getDeclaredMethods()).anyMatch(WholeGuideTest::isLimited);
    }

    private static boolean isLimited(Method method) {
        return !AnnotatedElementUtils.getMergedRepeatableAnnotations(method, RateLimited.class)
                .isEmpty();
    }

    /** What the pages say that the application has. */
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Own {

        private static final UserDetails ANN =
                User.withUsername("ann").password("{noop}right").roles("USER").build();

        @Bean
        InMemoryUserDetailsManager users() {
            return new InMemoryUserDetailsManager(ANN);
        }

        @Bean
        MapReactiveUserDetailsService reactiveUsers() {
            return new MapReactiveUserDetailsService(ANN);
        }

        @Bean
        ChatModel model() {
            return prompt -> new ChatResponse(List.of());
        }
    }
}
