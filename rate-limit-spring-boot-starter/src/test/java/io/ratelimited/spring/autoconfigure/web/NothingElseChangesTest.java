package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.boot.test.context.runner.ReactiveWebApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.web.error.ErrorAttributeOptions;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletContextInitializerBeans;
import org.springframework.boot.webmvc.error.ErrorAttributes;
import org.springframework.context.ApplicationContext;
import org.springframework.core.annotation.AnnotationAwareOrderComparator;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.security.web.server.MatcherSecurityWebFilterChain;
import org.springframework.security.web.server.WebFilterChainProxy;
import org.springframework.security.web.server.util.matcher.ServerWebExchangeMatcher.MatchResult;
import org.springframework.util.ClassUtils;
import org.springframework.web.context.request.ServletWebRequest;
import org.springframework.web.server.WebExceptionHandler;
import org.springframework.web.server.WebFilter;
import org.springframework.web.servlet.HandlerAdapter;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.HandlerMapping;

/**
 * An application with the starter has the beans that it has without, of the same types and in the same order; the page "with
 * Spring" lists the exceptions.
 */
@Tag("slow")
class NothingElseChangesTest {

    private static final String OURS = "io.ratelimited.";

    /** Those of Spring Boot that an ordinary application of either stack has, and ours. */
    private static AutoConfigurations configurations(boolean withStarter) {
        Set<String> ordinary = Set.of(
                "aop.AopAutoConfiguration",
                "cache.autoconfigure.CacheAutoConfiguration",
                "context.PropertyPlaceholderAutoConfiguration",
                "error.ErrorMvcAutoConfiguration",
                "error.ErrorWebFluxAutoConfiguration",
                "HttpHandlerAutoConfiguration",
                "HttpMessageConvertersAutoConfiguration",
                "CodecsAutoConfiguration",
                "JacksonAutoConfiguration",
                "MetricsAutoConfiguration",
                "CompositeMeterRegistryAutoConfiguration",
                "SimpleMetricsExportAutoConfiguration",
                "ObservationAutoConfiguration",
                "RestClientAutoConfiguration",
                "WebClientAutoConfiguration",
                "TaskExecutionAutoConfiguration",
                "TaskSchedulingAutoConfiguration",
                "ValidationAutoConfiguration",
                "DispatcherServletAutoConfiguration",
                "WebFluxAutoConfiguration",
                "WebMvcAutoConfiguration",
                "HttpEncodingAutoConfiguration",
                "MultipartAutoConfiguration");
        List<Class<?>> all = new ArrayList<>();
        for (String name : ImportCandidates.load(AutoConfiguration.class, null)) {
            boolean isOurs = name.startsWith(OURS);
            if (isOurs ? withStarter : ordinary.stream().anyMatch(name::endsWith)) {
                all.add(ClassUtils.resolveClassName(name, null));
            }
        }
        assertThat(all).hasSizeGreaterThanOrEqualTo(ordinary.size() - 1);
        return AutoConfigurations.of(all.toArray(Class<?>[]::new));
    }

    /** What an application is made of. */
    private record Seen(Map<String, String> types, Map<String, List<String>> ordered, Map<String, Object> facts) {

        private static Seen in(ApplicationContext context, Class<?>... orderedTypes) {
            Map<String, String> types = new TreeMap<>();
            for (String name : context.getBeanDefinitionNames()) {
                types.put(name, String.valueOf(context.getType(name)).replaceAll("(\\$\\$|@|/0x).*", ""));
            }
            Map<String, List<String>> ordered = new LinkedHashMap<>();
            for (Class<?> type : orderedTypes) {
                ordered.put(
                        type.getSimpleName(),
                        BeanFactoryUtils.beansOfTypeIncludingAncestors(context, type).values().stream()
                                .sorted(AnnotationAwareOrderComparator.INSTANCE)
                                .map(NothingElseChangesTest::name)
                                .toList());
            }
            return new Seen(types, ordered, new TreeMap<>());
        }

        private static List<String> notOurs(List<String> names) {
            return names.stream().filter(name -> !name.startsWith(OURS)).toList();
        }

        private Set<String> namesWithout(Seen other) {
            Set<String> names = new TreeSet<>(types.keySet());
            names.removeAll(other.types.keySet());
            return names;
        }

        private void isAs(Seen without) {
            differsOnlyByOurs(without);
            assertThat(ordered).isEqualTo(without.ordered);
        }

        private void differsOnlyByOurs(Seen without, String... replaced) {
            assertThat(namesWithout(without)).allMatch(name -> name.startsWith(OURS) || name.contains("-" + OURS));
            assertThat(without.namesWithout(this)).containsExactly(replaced);
            without.types.forEach((name, type) -> {
                if (types.containsKey(name)) {
                    assertThat(types.get(name)).as(name).isEqualTo(type);
                }
            });
            ordered.forEach((type, beans) -> assertThat(notOurs(beans)).as(type).isEqualTo(without.ordered.get(type)));
            assertThat(facts).isEqualTo(without.facts);
        }
    }

    private static final String DISABLED = "rate-limit.enabled=false";

    private static Seen servlets(boolean withStarter, String... properties) {
        Seen[] seen = new Seen[1];
        new WebApplicationContextRunner()
                .withConfiguration(configurations(withStarter))
                .withPropertyValues(properties)
                .run(context -> {
                    seen[0] = Seen.in(
                            context, HandlerAdapter.class, HandlerMapping.class, HandlerExceptionResolver.class);
                    seen[0].ordered.put(
                            "filters",
                            new ServletContextInitializerBeans(context)
                                    .stream()
                                            .map(NothingElseChangesTest::filter)
                                            .toList());
                    MockHttpServletRequest request = new MockHttpServletRequest();
                    request.setAttribute("jakarta.servlet.error.status_code", 500);
                    request.setAttribute("jakarta.servlet.error.exception", new IllegalStateException("own"));
                    Map<String, Object> attributes = context.getBean(ErrorAttributes.class)
                            .getErrorAttributes(
                                    new ServletWebRequest(request),
                                    ErrorAttributeOptions.of(ErrorAttributeOptions.Include.values()));
                    attributes.keySet().removeAll(Set.of("timestamp", "trace"));
                    seen[0].facts.put("errorAttributes", attributes);
                });
        return seen[0];
    }

    /** Our attributes of error pages stand where those of Spring Boot do, which they extend. */
    private static String name(Object bean) {
        Class<?> type = bean.getClass();
        return (type.getSimpleName().equals("RejectionErrorAttributes") ? type.getSuperclass() : type).getName();
    }

    private static String filter(Object initializer) {
        return initializer instanceof FilterRegistrationBean<?> registered
                ? registered.getFilter().getClass().getName()
                : initializer.getClass().getName();
    }

    @Test
    void ofServletApplications() {
        Seen without = servlets(false);
        Seen with = servlets(true);
        with.differsOnlyByOurs(without, "errorAttributes");
        servlets(true, DISABLED).isAs(without);
        assertThat(with.ordered.get("HandlerAdapter")).noneMatch(name -> name.startsWith(OURS));
        assertThat(with.ordered.get("HandlerMapping")).noneMatch(name -> name.startsWith(OURS));
        assertThat(with.ordered
                        .get("HandlerExceptionResolver")
                        .get(with.ordered.get("HandlerExceptionResolver").size() - 1))
                .startsWith(OURS);
    }

    private static Seen webFlux(boolean withStarter, String... properties) {
        return webFlux(new ReactiveWebApplicationContextRunner(), withStarter, properties);
    }

    private static Seen webFlux(ReactiveWebApplicationContextRunner runner, boolean withStarter, String... properties) {
        Seen[] seen = new Seen[1];
        runner.withConfiguration(configurations(withStarter))
                .withPropertyValues(properties)
                .run(context -> {
                    seen[0] = Seen.in(
                            context,
                            org.springframework.web.reactive.HandlerAdapter.class,
                            org.springframework.web.reactive.HandlerMapping.class,
                            org.springframework.web.reactive.HandlerResultHandler.class,
                            WebFilter.class,
                            WebExceptionHandler.class);
                });
        return seen[0];
    }

    @Test
    void ofWebFluxApplications() {
        Seen without = webFlux(false);
        Seen with = webFlux(true);
        with.differsOnlyByOurs(without, "errorAttributes");
        webFlux(true, DISABLED).isAs(without);
        assertThat(with.ordered.get("HandlerMapping")).noneMatch(name -> name.startsWith(OURS));
        // Passes each call to the adapter that would have it without the starter.
        assertThat(Stream.of("HandlerAdapter", "WebExceptionHandler")
                        .map(type -> with.ordered.get(type).get(0)))
                .allMatch(name -> name.startsWith(OURS));
    }

    /** Each filter of WebFlux costs every request. */
    @Test
    void ofWebFluxHasASecondFilterOnlyBehindSpringSecurityOrForARouteThatReadsThePrincipal() {
        String[] route = {
            "rate-limit.limits.api.rate=1/s", "rate-limit.routes[0].path=/**", "rate-limit.routes[0].limits=api"
        };
        assertThat(filters(route)).hasSize(1);
        String[] ofPrincipal = Stream.concat(Stream.of(route), Stream.of("rate-limit.routes[0].key=principal?.name"))
                .toArray(String[]::new);
        assertThat(filters(ofPrincipal)).hasSize(2);
        assertThat(ours(
                        new ReactiveWebApplicationContextRunner()
                                .withBean(
                                        WebFilterChainProxy.class,
                                        () -> new WebFilterChainProxy(new MatcherSecurityWebFilterChain(
                                                exchange -> MatchResult.match(),
                                                List.of((exchange, chain) -> chain.filter(exchange))))),
                        route))
                .hasSize(2);
    }

    private static List<String> filters(String... properties) {
        return ours(new ReactiveWebApplicationContextRunner(), properties);
    }

    private static List<String> ours(ReactiveWebApplicationContextRunner runner, String... properties) {
        return webFlux(runner, true, properties).ordered.get("WebFilter").stream()
                .filter(name -> name.startsWith(OURS))
                .toList();
    }
}
