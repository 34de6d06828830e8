package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.ResetResponseTest.War;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Callable;
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
import org.springframework.security.access.AccessDeniedException;
import org.springframework.security.web.WebAttributes;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.context.request.async.DeferredResult;

/**
 * A filter that rewrites paths by a forward, or suspends a request, ends the way through the filters: the routes behind it
 * count the further dispatch.
 */
@Tag("spring-boot")
@Tag("slow")
class ForwardedRequestsTest {

    /** Orders of filters that suspend requests: before our two filters, between them, and behind them. */
    private static final List<Integer> SUSPENDING = List.of(-201, -95, 0);

    private static RunningServer start(RunningServer.Kind kind, String order) {
        return kind.start(
                List.of(App.class),
                "rate-limit.limits.all.rate=2/h",
                "rate-limit.routes[0].path=/api/**",
                "rate-limit.routes[0].limits=all",
                "rate-limit.routes[0].order=" + order);
    }

    /** Routes before and after Spring Security, each with a limit of its own. */
    private static RunningServer startBoth(
            RunningServer.Kind kind, List<Class<?>> sources, String before, String after, String... limit) {
        List<String> settings = new ArrayList<>(List.of(
                "rate-limit.routes[0].path=" + before,
                "rate-limit.routes[0].limits=before",
                "rate-limit.routes[1].path=" + after,
                "rate-limit.routes[1].limits=after",
                "rate-limit.routes[1].order=after-security"));
        for (String setting : limit) {
            settings.add("rate-limit.limits.before." + setting);
            settings.add("rate-limit.limits.after." + setting);
        }
        return kind.start(sources, settings.toArray(String[]::new));
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

    /** As a filter that queues requests, or authenticates them on another thread: before, between or behind our filters. */
    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void aRouteCountsOnceWhatAFilterHasSuspended(RunningServer.Kind kind) {
        try (RunningServer server = startBoth(kind, List.of(App.class), "/api/**", "/after/**", "rate=2/h")) {
            for (int order : SUSPENDING) {
                for (String path : List.of("/api/", "/after/")) {
                    assertThat(server.get(path + "one?suspend=" + order).statusCode())
                            .isEqualTo(200);
                    assertThat(server.get(path + "later?suspend=" + order).body())
                            .as("%s, %d", path, order)
                            .isEqualTo("later");
                    assertThat(server.get(path + "one?suspend=" + order).statusCode())
                            .as("%s, %d", path, order)
                            .isEqualTo(429);
                }
                server.ticker().advance(Duration.ofHours(1));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void aRequestThatAFilterHasSuspendedIsInFlightUntilItsResponse(RunningServer.Kind kind) {
        try (RunningServer server = startBoth(
                kind, List.of(App.class), "/api/**", "/after/**", "algorithm=concurrency", "max-concurrent=1")) {
            Queue<DeferredResult<String>> open =
                    server.context.getBean(Api.class).open();
            for (int order : SUSPENDING) {
                for (String path : List.of("/api/slow?suspend=", "/after/slow?suspend=")) {
                    var first = server.getAsync(path + order);
                    Threads.until(() -> !open.isEmpty());
                    assertThat(server.get(path + order).statusCode())
                            .as(path + order)
                            .isEqualTo(429);
                    open.remove().setResult("done");
                    assertThat(first.join().body()).isEqualTo("done");
                    RateLimits limits = server.context.getBean(RateLimits.class);
                    Threads.until(() -> limits.peek("before", null).remaining() == 1
                            && limits.peek("after", null).remaining() == 1);
                }
            }
        }
    }

    /** What it forwards to is the response to a request, such as the page of Spring Security for those that it denies. */
    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void anErrorPageThatAFilterForwardsToIsNotCounted(RunningServer.Kind kind) {
        try (RunningServer server = startBoth(kind, List.of(App.class), "/api/**", "/after/**", "rate=1/h")) {
            for (int i = 0; i < 2; i++) {
                assertThat(server.get("/denied/api/one").statusCode()).isEqualTo(403);
                assertThat(server.get("/denied/after/one").statusCode()).isEqualTo(403);
            }
        }
        try (RunningServer war = startBoth(kind, List.of(App.class, War.class), "/error", "/error", "rate=1/h")) {
            for (int i = 0; i < 2; i++) {
                assertThat(war.get("/unknown").statusCode()).isEqualTo(401);
            }
        }
    }

    /** Its status says nothing of the resource that it forwards to. */
    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void aForwardOfAFilterThatHasSetAStatusIsCounted(RunningServer.Kind kind) {
        try (RunningServer server = startBoth(kind, List.of(App.class), "/api/**", "/after/**", "rate=1/h")) {
            assertThat(server.get("/suggested/api/one").statusCode()).isEqualTo(404);
            assertThat(server.get("/suggested/api/one").statusCode()).isEqualTo(429);
            assertThat(server.get("/suggested/after/one").statusCode()).isEqualTo(404);
            assertThat(server.get("/suggested/after/one").statusCode()).isEqualTo(429);
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
                if (path.startsWith("/suggested/")) {
                    ((HttpServletResponse) response).setStatus(404);
                    request.getRequestDispatcher(path.substring(10)).forward(request, response);
                } else if (path.startsWith("/tenant/")) {
                    request.getRequestDispatcher(path.substring(7)).forward(request, response);
                } else {
                    chain.doFilter(request, response);
                }
            });
            tenants.setOrder(-200);
            return tenants;
        }

        @Bean
        FilterRegistrationBean<Filter> denying() {
            FilterRegistrationBean<Filter> denying = new FilterRegistrationBean<>((request, response, chain) -> {
                String path = ((HttpServletRequest) request).getRequestURI();
                if (path.startsWith("/denied/")) {
                    request.setAttribute(WebAttributes.ACCESS_DENIED_403, new AccessDeniedException("denied"));
                    ((HttpServletResponse) response).setStatus(403);
                    request.getRequestDispatcher(path.substring(7)).forward(request, response);
                } else if (path.equals("/unknown")) {
                    ((HttpServletResponse) response).sendError(401);
                } else {
                    chain.doFilter(request, response);
                }
            });
            denying.setOrder(-95);
            return denying;
        }

        @Bean
        FilterRegistrationBean<Filter> suspendingBefore() {
            return suspending(SUSPENDING.get(0));
        }

        @Bean
        FilterRegistrationBean<Filter> suspendingBetween() {
            return suspending(SUSPENDING.get(1));
        }

        @Bean
        FilterRegistrationBean<Filter> suspendingBehind() {
            return suspending(SUSPENDING.get(2));
        }

        private static FilterRegistrationBean<Filter> suspending(int order) {
            FilterRegistrationBean<Filter> suspending = new FilterRegistrationBean<>((request, response, chain) -> {
                if (!String.valueOf(order).equals(request.getParameter("suspend"))
                        || request.getAttribute("suspended") != null) {
                    chain.doFilter(request, response);
                } else {
                    request.setAttribute("suspended", true);
                    request.startAsync().dispatch();
                }
            });
            suspending.setName("suspending" + order);
            suspending.setOrder(order);
            suspending.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ASYNC);
            return suspending;
        }
    }

    @Controller
    static class Api {

        private final Queue<DeferredResult<String>> open = new ConcurrentLinkedQueue<>();

        Queue<DeferredResult<String>> open() {
            return open;
        }

        @GetMapping({"/api/one", "/after/one"})
        @ResponseBody
        String one() {
            return "1";
        }

        @GetMapping({"/api/later", "/after/later"})
        @ResponseBody
        Callable<String> later() {
            return () -> "later";
        }

        @GetMapping({"/api/slow", "/after/slow"})
        @ResponseBody
        DeferredResult<String> openSlow() {
            return slow();
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
