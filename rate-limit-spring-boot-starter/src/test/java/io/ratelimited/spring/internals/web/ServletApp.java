package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.lang.reflect.UndeclaredThrowableException;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Service;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** What {@link HttpFacts} are about, on the servlet stack. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@Import({SharedBeans.class, ServletApp.Orders.class, ServletApp.Api.class, ServletApp.Own.class})
class ServletApp {

    @Bean
    RouterFunction<ServerResponse> functional(Orders orders) {
        return RouterFunctions.route()
                .GET("/functional", request -> ServerResponse.ok().body(orders.place()))
                .build();
    }

    /** Stands where Spring Security does. */
    @Bean
    FilterRegistrationBean<Filter> login() {
        FilterRegistrationBean<Filter> filter = new FilterRegistrationBean<>((request, response, chain) -> {
            String user = ((HttpServletRequest) request).getHeader("User");
            chain.doFilter(user == null ? request : new LoggedIn((HttpServletRequest) request, user), response);
        });
        filter.setOrder(-100);
        return filter;
    }

    /** A filter before that of Spring Security, and one behind all that Spring Boot has. */
    @Bean
    FilterRegistrationBean<Filter> early(RateLimits limits, Orders orders) {
        return asking("/filter/early", -1000, limits, orders);
    }

    @Bean
    FilterRegistrationBean<Filter> late(RateLimits limits, Orders orders) {
        return asking("/filter/*", 10, limits, orders);
    }

    private static FilterRegistrationBean<Filter> asking(String path, int order, RateLimits limits, Orders orders) {
        FilterRegistrationBean<Filter> filter = new FilterRegistrationBean<>((request, response, chain) -> {
            switch (((HttpServletRequest) request).getServletPath()) {
                case "/filter/bean" -> orders.place();
                case "/filter/wrapped" -> {
                    try {
                        limits.execute("filtered", null, () -> "admitted");
                    } catch (RateLimitExceededException ex) {
                        throw new ServletException(new UndeclaredThrowableException(new CompletionException(ex)));
                    }
                }
                default -> limits.execute("filtered", order, () -> "admitted");
            }
            chain.doFilter(request, response);
        });
        filter.addUrlPatterns(path);
        filter.setOrder(order);
        return filter;
    }

    /** Is called a second time by its own dispatch, and completes the request on another thread. */
    @Bean
    ServletRegistrationBean<HttpServlet> twice() {
        return new ServletRegistrationBean<>(
                new HttpServlet() {
                    @Override
                    protected void doGet(HttpServletRequest request, HttpServletResponse response) {
                        AsyncContext async = request.startAsync();
                        if (request.getDispatcherType() == DispatcherType.ASYNC) {
                            async.start(async::complete);
                        } else {
                            async.dispatch();
                        }
                    }
                },
                "/routed/place/twice");
    }

    static final class LoggedIn extends HttpServletRequestWrapper {

        private final String user;

        LoggedIn(HttpServletRequest request, String user) {
            super(request);
            this.user = user;
        }

        @Override
        public Principal getUserPrincipal() {
            return () -> user;
        }
    }

    @Service
    static class Orders {

        @RateLimited(name = "orders", rate = "1/m")
        String place() {
            return "placed";
        }

        @RateLimited(name = "later", rate = "1/m")
        CompletableFuture<String> later() {
            return CompletableFuture.completedFuture("placed");
        }
    }

    @RestController
    static class Api {

        private final Orders orders;

        Api(Orders orders) {
            this.orders = orders;
        }

        @GetMapping("/search")
        @RateLimited(name = "search", rate = "100/s", burst = 200)
        String search() {
            return "found";
        }

        @GetMapping("/one")
        @RateLimited(name = "one", rate = "1/m")
        String one() {
            return "1";
        }

        @GetMapping("/two")
        @RateLimited(name = "second", rate = "1/s")
        @RateLimited(name = "day", algorithm = Algorithm.FIXED_WINDOW, rate = "100/d")
        String two() {
            return "2";
        }

        @GetMapping("/named")
        @RateLimited(name = "größe \"x\"", rate = "5/m")
        String named() {
            return "named";
        }

        @GetMapping("/flight")
        @RateLimited(name = "flight", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 0)
        String flight() {
            return "never";
        }

        @GetMapping("/heavy")
        @RateLimited(name = "heavy", rate = "5/m", permits = "3 + 3")
        String heavy() {
            return "never";
        }

        @GetMapping("/plan")
        @RateLimited(name = "plan", rate = "5/m", tier = "header('Plan')")
        String plan() {
            return "plan";
        }

        @GetMapping("/shadow")
        @RateLimited(name = "shadow", rate = "1/d", policy = Policy.SHADOW)
        String shadow() {
            return "shadow";
        }

        @GetMapping("/wait")
        @RateLimited(name = "wait", rate = "1/s", policy = Policy.WAIT, maxWait = "10s")
        String waiting() {
            return "waited";
        }

        @GetMapping("/fallback")
        @RateLimited(name = "fallback", rate = "1/d", fallback = "instead")
        String fallback() {
            return "itself";
        }

        String instead() {
            return "instead";
        }

        @GetMapping("/service")
        String service() {
            return orders.place();
        }

        @GetMapping("/wrapped")
        String wrapped() {
            try {
                return orders.place();
            } catch (RateLimitExceededException ex) {
                throw new CompletionException(ex);
            }
        }

        @GetMapping("/future")
        CompletableFuture<String> future() {
            return orders.later().thenApply(String::toUpperCase);
        }

        @GetMapping("/callable")
        Callable<String> callable() {
            return orders::place;
        }

        @GetMapping("/deferred")
        DeferredResult<String> deferred() {
            DeferredResult<String> result = new DeferredResult<>();
            orders.later().whenComplete((value, failure) -> {
                if (failure != null) {
                    result.setErrorResult(failure);
                } else {
                    result.setResult(value);
                }
            });
            return result;
        }

        @GetMapping("/stream")
        @RateLimited(name = "stream", rate = "1/m")
        StreamingResponseBody stream() {
            return out -> {
                for (int i = 0; i < 1000; i++) {
                    out.write("0123456789\n".getBytes(StandardCharsets.UTF_8));
                    out.flush();
                }
            };
        }

        @GetMapping(path = "/events", produces = "text/event-stream")
        @RateLimited(name = "events", rate = "1/m")
        SseEmitter events() throws Exception {
            SseEmitter emitter = new SseEmitter();
            emitter.send("first");
            emitter.send("second");
            emitter.complete();
            return emitter;
        }

        @GetMapping("/ip")
        @RateLimited(name = "ip", rate = "1/m", key = "clientIp")
        String ip() {
            return "ip";
        }

        @GetMapping("/user")
        @RateLimited(name = "user", rate = "1/m", key = "principal")
        String user() {
            return "user";
        }

        @GetMapping("/session")
        @RateLimited(name = "session", rate = "1/m", key = "session")
        String session() {
            return "session";
        }

        @GetMapping("/session/start")
        String startSession(HttpServletRequest request) {
            return request.getSession().getId();
        }

        @GetMapping("/filter/{id}")
        String filtered() {
            return "filtered";
        }

        @GetMapping("/routed/{id}")
        String routed() {
            return "routed";
        }
    }

    @RestController
    static class Own {

        @GetMapping("/own")
        @RateLimited(name = "own", rate = "1/d")
        String own() {
            return "own";
        }

        @GetMapping("/own/later")
        @RateLimited(name = "own-later", rate = "1/d")
        String later() {
            return "later";
        }

        @ExceptionHandler
        ResponseEntity<String> refused(RateLimitExceededException refusal) {
            ResponseEntity.BodyBuilder answer = ResponseEntity.status(503);
            if (refusal.limit().equals("own-later")) {
                answer.header("Retry-After", "7");
            }
            return answer.body("own answer to " + refusal.limit());
        }
    }
}
