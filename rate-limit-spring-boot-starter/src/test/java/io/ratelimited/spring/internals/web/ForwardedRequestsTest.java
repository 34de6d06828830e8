package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.context.request.async.DeferredResult;

/** A filter that rewrites paths by a forward ends the way through the filters: the routes behind it count what it forwards. */
@Tag("spring-boot")
class ForwardedRequestsTest {

    private static RunningServer start(RunningServer.Kind kind, String order) {
        return kind.start(
                List.of(App.class),
                "rate-limit.limits.all.rate=2/h",
                "rate-limit.routes[0].path=/api/**",
                "rate-limit.routes[0].limits=all",
                "rate-limit.routes[0].order=" + order);
    }

    private static long remaining(RunningServer server) {
        return server.context.getBean(RateLimits.class).peek("all", null).remaining();
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void aRouteCountsWhatAFilterHasForwarded(RunningServer.Kind kind) {
        for (String order : List.of("before-security", "after-security")) {
            try (RunningServer server = start(kind, order)) {
                assertThat(server.get("/tenant/api/one").statusCode()).isEqualTo(200);
                assertThat(server.get("/api/one").statusCode()).isEqualTo(200);
                assertThat(server.get("/tenant/api/one").statusCode()).isEqualTo(429);
                assertThat(server.get("/api/one").statusCode()).isEqualTo(429);
            }
        }
    }

    @Test
    void aForwardFromAHandlerIsNotCountedAgain() {
        try (RunningServer server = start(RunningServer.Kind.TOMCAT, "before-security")) {
            assertThat(server.get("/api/forwarding").body()).isEqualTo("1");
            assertThat(remaining(server)).isEqualTo(1);
            assertThat(server.get("/tenant/api/forwarding").body()).isEqualTo("1");
            assertThat(remaining(server)).isZero();
            assertThat(server.get("/outside").body()).as("as ever").isEqualTo("1");
        }
    }

    /** The first one holds its place until its response is complete. */
    @Test
    void aCallBehindAForwardIsInFlightUntilItsResponse() {
        try (RunningServer server = start(RunningServer.Kind.TOMCAT, "before-security")) {
            Queue<DeferredResult<String>> open =
                    server.context.getBean(Api.class).open();
            var first = server.getAsync("/tenant/slow");
            while (open.isEmpty()) {
                Thread.onSpinWait();
            }
            assertThat(server.get("/tenant/slow").statusCode()).isEqualTo(429);
            open.remove().setResult("done");
            assertThat(first.join().body()).isEqualTo("done");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        FilterRegistrationBean<Filter> tenants() {
            FilterRegistrationBean<Filter> tenants = new FilterRegistrationBean<>((request, response, chain) -> {
                String path = ((HttpServletRequest) request).getRequestURI();
                if (path.startsWith("/tenant/")) {
                    request.getRequestDispatcher(path.substring(7)).forward(request, response);
                } else {
                    chain.doFilter(request, response);
                }
            });
            tenants.setOrder(-200);
            return tenants;
        }
    }

    @Controller
    static class Api {

        private final Queue<DeferredResult<String>> open = new ConcurrentLinkedQueue<>();

        Queue<DeferredResult<String>> open() {
            return open;
        }

        @GetMapping("/api/one")
        @ResponseBody
        String one() {
            return "1";
        }

        @GetMapping({"/api/forwarding", "/outside"})
        String forwarding() {
            return "forward:/api/one";
        }

        @GetMapping("/slow")
        @ResponseBody
        @RateLimited(name = "slow", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public DeferredResult<String> slow() {
            DeferredResult<String> result = new DeferredResult<>(60_000L);
            open.add(result);
            return result;
        }
    }
}
