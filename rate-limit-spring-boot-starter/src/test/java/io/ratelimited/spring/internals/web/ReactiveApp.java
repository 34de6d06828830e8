package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.security.Principal;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.annotation.Order;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Service;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerResponse;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebSession;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** What {@link HttpFacts} are about, on the reactive stack. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@Import({SharedBeans.class, ReactiveApp.Orders.class, ReactiveApp.Api.class, ReactiveApp.Own.class})
class ReactiveApp {

    @Bean
    RouterFunction<ServerResponse> functional(Orders orders) {
        return RouterFunctions.route()
                .GET(
                        "/functional",
                        request -> orders.place()
                                .flatMap(body -> ServerResponse.ok().bodyValue(body)))
                .build();
    }

    /** Stands where Spring Security does, and finds the user as late. */
    @Bean
    @Order(-100)
    WebFilter login() {
        return (exchange, chain) -> {
            String user = exchange.getRequest().getHeaders().getFirst("User");
            if (user == null) {
                return chain.filter(exchange);
            }
            Principal principal = () -> user;
            return chain.filter(exchange.mutate()
                    .principal(Mono.fromFuture(() -> CompletableFuture.supplyAsync(() -> principal)))
                    .build());
        };
    }

    /** A filter before that of Spring Security, and one behind all that Spring Boot has. */
    @Bean
    @Order(-1000)
    WebFilter early(RateLimits limits) {
        return (exchange, chain) -> {
            if (exchange.getRequest().getPath().value().equals("/filter/early")) {
                limits.execute("filtered", -1000, () -> "admitted");
            }
            return chain.filter(exchange);
        };
    }

    @Bean
    @Order(10)
    WebFilter late(RateLimits limits, Orders orders) {
        return (exchange, chain) -> {
            String path = exchange.getRequest().getPath().value();
            if (path.equals("/filter/bean")) {
                return orders.place().then(chain.filter(exchange));
            }
            if (path.equals("/filter/late")) {
                limits.execute("filtered", 10, () -> "admitted");
            }
            Mono<Void> admission = path.equals("/filter/wrapped")
                    ? Mono.fromRunnable(() -> limits.execute("filtered", null, () -> "admitted"))
                    : Mono.empty();
            return admission.onErrorMap(CompletionException::new).then(chain.filter(exchange));
        };
    }

    @Service
    static class Orders {

        @RateLimited(name = "orders", rate = "1/m")
        Mono<String> place() {
            return Mono.just("placed");
        }

        @RateLimited(name = "later", rate = "1/m")
        CompletableFuture<String> later() {
            return CompletableFuture.completedFuture("placed");
        }

        @RateLimited(name = "elastic", rate = "1/m", key = "header('User')")
        String plain() {
            return "placed";
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
        Mono<String> search() {
            return Mono.just("found");
        }

        @GetMapping("/one")
        @RateLimited(name = "one", rate = "1/m")
        Mono<String> one() {
            return Mono.just("1");
        }

        @GetMapping("/two")
        @RateLimited(name = "second", rate = "1/s")
        @RateLimited(name = "day", algorithm = Algorithm.FIXED_WINDOW, rate = "100/d")
        Mono<String> two() {
            return Mono.just("2");
        }

        @GetMapping("/named")
        @RateLimited(name = "größe \"x\"", rate = "5/m")
        Mono<String> named() {
            return Mono.just("named");
        }

        @GetMapping("/flight")
        @RateLimited(name = "flight", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 0)
        Mono<String> flight() {
            return Mono.just("never");
        }

        @GetMapping("/heavy")
        @RateLimited(name = "heavy", rate = "5/m", permits = "3 + 3")
        Mono<String> heavy() {
            return Mono.just("never");
        }

        @GetMapping("/plan")
        @RateLimited(name = "plan", rate = "5/m", tier = "header('Plan')")
        Mono<String> plan() {
            return Mono.just("plan");
        }

        @GetMapping("/shadow")
        @RateLimited(name = "shadow", rate = "1/d", policy = Policy.SHADOW)
        Mono<String> shadow() {
            return Mono.just("shadow");
        }

        @GetMapping("/wait")
        @RateLimited(name = "wait", rate = "1/s", policy = Policy.WAIT, maxWait = "10s")
        Mono<String> waiting() {
            return Mono.just("waited");
        }

        @GetMapping("/fallback")
        @RateLimited(name = "fallback", rate = "1/d", fallback = "instead")
        Mono<String> fallback() {
            return Mono.just("itself");
        }

        Mono<String> instead() {
            return Mono.just("instead");
        }

        @GetMapping("/service")
        Mono<String> service() {
            return orders.place();
        }

        @GetMapping("/wrapped")
        Mono<String> wrapped() {
            return orders.place().onErrorMap(RateLimitExceededException.class, CompletionException::new);
        }

        @GetMapping("/future")
        CompletableFuture<String> future() {
            return orders.later().thenApply(String::toUpperCase);
        }

        @GetMapping("/callable")
        Mono<String> callable() {
            return Mono.defer(orders::place);
        }

        @GetMapping("/deferred")
        Mono<String> deferred() {
            return Mono.fromFuture(orders.later());
        }

        @GetMapping("/elastic")
        Mono<String> elastic() {
            return Mono.fromCallable(orders::plain).subscribeOn(Schedulers.boundedElastic());
        }

        @GetMapping("/stream")
        @RateLimited(name = "stream", rate = "1/m")
        Flux<String> stream() {
            return Flux.range(0, 1000).map(i -> "0123456789\n");
        }

        @GetMapping(path = "/events", produces = "text/event-stream")
        @RateLimited(name = "events", rate = "1/m")
        Flux<String> events() {
            return Flux.just("first", "second");
        }

        @GetMapping("/ip")
        @RateLimited(name = "ip", rate = "1/m", key = "clientIp")
        Mono<String> ip() {
            return Mono.just("ip");
        }

        @GetMapping("/user")
        @RateLimited(name = "user", rate = "1/m", key = "principal")
        Mono<String> user() {
            return Mono.just("user");
        }

        @GetMapping("/session")
        @RateLimited(name = "session", rate = "1/m", key = "session")
        Mono<String> session() {
            return Mono.just("session");
        }

        @GetMapping("/session/start")
        Mono<String> startSession(WebSession session) {
            session.start();
            return Mono.just(session.getId());
        }

        @GetMapping("/filter/{id}")
        Mono<String> filtered() {
            return Mono.just("filtered");
        }

        @GetMapping("/routed/{id}")
        Mono<String> routed() {
            return Mono.just("routed");
        }

        @GetMapping("/plain")
        @RateLimited(name = "plain", rate = "1/m", key = "header('User')")
        String plain() {
            return "plain";
        }
    }

    @RestController
    static class Own {

        @GetMapping("/own")
        @RateLimited(name = "own", rate = "1/d")
        Mono<String> own() {
            return Mono.just("own");
        }

        @GetMapping("/own/later")
        @RateLimited(name = "own-later", rate = "1/d")
        Mono<String> later() {
            return Mono.just("later");
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
