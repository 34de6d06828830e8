package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.BeanNames;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.BeanDefinitionRegistryPostProcessor;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.OncePerRequestFilter;

/** Applications that have limits of their own, or had them before: their beans stand beside those of the starter. */
@Tag("slow")
class BeanNamesTest {

    @ParameterizedTest
    @CsvSource({"TOMCAT, false", "TOMCAT, true", "REACTOR_NETTY, false", "REACTOR_NETTY, true"})
    void beansOfTheApplicationMayHaveAnyShortName(Kind kind, boolean overriding) {
        try (RunningServer server = kind.start(
                List.of(App.class, Taken.class),
                "spring.main.allow-bean-definition-overriding=" + overriding,
                "management.endpoints.web.exposure.include=ratelimits")) {
            for (String name : Taken.NAMES) {
                assertThat(server.context.getBean(name)).as(name).isInstanceOf(TakenName.class);
            }
            requireLimited(server);
            assertThat(server.get("/actuator/ratelimits").statusCode()).isEqualTo(200);
        }
    }

    /** The names of filters are those of their beans. */
    @ParameterizedTest
    @CsvSource({"TOMCAT, false", "JETTY, false", "TOMCAT, true"})
    void filtersOfTheApplicationMayHaveTheNamesOfOurs(Kind kind, boolean overriding) {
        try (RunningServer server = kind.start(
                List.of(App.class, Filters.class), "spring.main.allow-bean-definition-overriding=" + overriding)) {
            HttpResponse<String> first = requireLimited(server);
            assertThat(first.headers().allValues("X-Own")).containsExactlyInAnyOrder("bean", "registered");
        }
    }

    private static HttpResponse<String> requireLimited(RunningServer server) {
        HttpResponse<String> first = server.get("/limited");
        assertThat(first.statusCode()).isEqualTo(200);
        assertThat(first.headers().firstValue("RateLimit")).isPresent();
        assertThat(server.get("/limited").statusCode()).isEqualTo(429);
        assertThat(server.context.getBean(RateLimits.class).peek("own", null).remaining())
                .isZero();
        return first;
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {}

    @RestController
    static class Api {

        @GetMapping("/limited")
        @RateLimited(name = "own", rate = "1/h")
        String limited() {
            return "called";
        }
    }

    /** Something of the application. */
    static class TakenName {}

    /** Takes every short name that any bean of ours would have by its method or its class. */
    static class Taken implements BeanDefinitionRegistryPostProcessor {

        /** Read once: that takes longer than the start of an application. */
        static final Set<String> NAMES = names();

        private static Set<String> names() {
            Set<String> names = new TreeSet<>();
            BeanNames.declared().forEach((method, name) -> {
                names.add(name.substring(name.lastIndexOf('.') + 1));
                names.add(method.replaceAll("\\(.*", "").replaceAll(".*\\.", ""));
            });
            // What the application replaces by its name.
            names.removeAll(Set.of("rateLimitHealthIndicator"));
            names.addAll(Set.of("rateLimiter", "rateLimiterRegistry", "memoryLimiterFactory", "limitedOperations"));
            return names;
        }

        @Override
        public void postProcessBeanDefinitionRegistry(BeanDefinitionRegistry registry) {
            NAMES.forEach(name -> registry.registerBeanDefinition(name, new RootBeanDefinition(TakenName.class)));
        }

        @Override
        public void postProcessBeanFactory(ConfigurableListableBeanFactory beans) {}
    }

    @Configuration(proxyBeanMethods = false)
    static class Filters {

        @Bean
        FilterRegistrationBean<RejectionFilter> rateLimitRefusalFilter() {
            return new FilterRegistrationBean<>(new RejectionFilter());
        }

        @Bean
        RateLimitFilter rateLimitFilter() {
            return new RateLimitFilter();
        }

        static class RateLimitFilter extends OncePerRequestFilter {

            @Override
            protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                    throws ServletException, IOException {
                response.addHeader("X-Own", "bean");
                chain.doFilter(request, response);
            }
        }

        static class RejectionFilter extends OncePerRequestFilter {

            @Override
            protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                    throws ServletException, IOException {
                response.addHeader("X-Own", "registered");
                chain.doFilter(request, response);
            }
        }
    }
}
