package io.ratelimited.spring.internals.web;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.io.IOException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.http.codec.ServerSentEvent;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.BodyInserters;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import org.springframework.web.server.WebFilter;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A place of CONCURRENCY is held while the body is written that a handler has returned as a stream. */
@ParameterizedClass
@EnumSource(Kind.class)
@Tag("slow")
class StreamedBodyTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(List.of(App.class));
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @AfterEach
    void placeIsFree() {
        Threads.until(() -> free() == 1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/entity", "/later-entity", "/future-entity", "/object", "/handler", "/handler-events"})
    void placeIsHeldUntilTheStreamHasEnded(String path) throws Exception {
        CompletableFuture<HttpResponse<String>> response = server.getAsync(path);
        body().awaitReader();
        assertThat(free()).isZero();
        assertThat(server.get(path).statusCode()).isEqualTo(429);
        body().end();
        assertThat(response.get(20, TimeUnit.SECONDS).body()).contains("begun", "ended");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/entity", "/later-entity", "/handler"})
    void placeIsFreeAfterTheClientIsGone(String path) throws Exception {
        assumeTrue(kind == Kind.REACTOR_NETTY, "other servers notice when they write");
        try (Socket client = server.connect()) {
            client.getOutputStream()
                    .write(("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            client.getOutputStream().flush();
            body().awaitReader();
            assertThat(free()).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/failing", "/value", "/empty"})
    void placeIsFreeAfterAFailureAndWithoutAStream(String path) {
        server.get(path);
    }

    /** The client has such a response before the server has ended it. */
    @ParameterizedTest
    @ValueSource(strings = {"/one", "/handler-one", "/handler-value", "/handler-inserter"})
    void clientWhoHasTheResponseFindsItsPlaceFree(String path) {
        assumeTrue(kind == Kind.REACTOR_NETTY, "Spring MVC begins no response before its end");
        assertThat(server.get(path).headers().firstValue("X-Free-At-Commit")).contains("1");
    }

    @Test
    void chargeDoesNotWaitForTheBody() {
        HttpResponse<String> response = server.get("/charged");
        assertThat(RunningServer.states(response).get("charged")).containsEntry("r", 93L);
    }

    private static Body body() {
        return server.context.getBean(Body.class);
    }

    private static long free() {
        return server.context.getBean(RateLimits.class).peek("places", null).remaining();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Body.class, Routes.class, Handlers.class, ServletRoutes.class, ServletHandlers.class})
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    /** A stream that begins at once and ends when the test says so. */
    static class Body {

        private final Semaphore readers = new Semaphore(0);
        private volatile CompletableFuture<String> end = new CompletableFuture<>();

        Flux<String> stream() {
            return Flux.concat(Mono.just("begun"), Mono.fromFuture(end, true))
                    .doOnSubscribe(reader -> readers.release());
        }

        void awaitReader() throws InterruptedException {
            assertThat(readers.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
        }

        void end() {
            CompletableFuture<String> ended = end;
            end = new CompletableFuture<>();
            ended.complete("ended");
        }
    }

    @RestController
    static class Api {

        private final Body body;

        Api(Body body) {
            this.body = body;
        }

        private ResponseEntity<Flux<String>> stream() {
            return ResponseEntity.ok().contentType(MediaType.TEXT_EVENT_STREAM).body(body.stream());
        }

        @GetMapping("/entity")
        @RateLimited(name = "places", algorithm = CONCURRENCY, maxConcurrent = 1)
        ResponseEntity<Flux<String>> entity() {
            return stream();
        }

        @GetMapping("/later-entity")
        @RateLimited("places")
        Mono<ResponseEntity<Flux<String>>> laterEntity() {
            return Mono.fromSupplier(this::stream);
        }

        @GetMapping("/future-entity")
        @RateLimited("places")
        CompletableFuture<ResponseEntity<Flux<String>>> futureEntity() {
            return CompletableFuture.completedFuture(stream());
        }

        @GetMapping(value = "/object", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
        @RateLimited("places")
        Object object() {
            return body.stream();
        }

        @GetMapping("/failing")
        @RateLimited("places")
        Mono<ResponseEntity<Flux<String>>> failing() {
            return Mono.just(ResponseEntity.ok(Flux.error(new IllegalStateException("as the test wants"))));
        }

        @GetMapping("/value")
        @RateLimited("places")
        Mono<ResponseEntity<String>> value() {
            return Mono.just(ResponseEntity.ok("value"));
        }

        @GetMapping("/empty")
        @RateLimited("places")
        Mono<ResponseEntity<Flux<String>>> empty() {
            return Mono.empty();
        }

        @GetMapping("/one")
        @RateLimited("places")
        Mono<ResponseEntity<Mono<String>>> one() {
            return Mono.just(ResponseEntity.ok(Mono.just("one")));
        }

        @GetMapping("/charged")
        @RateLimited(name = "charged", rate = "100/h", permits = "10", charge = "7")
        Mono<ResponseEntity<Flux<String>>> charged() {
            return Mono.just(ResponseEntity.ok(Flux.just("charged")));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class Routes {

        @Bean
        WebFilter freeAtCommit(RateLimits limits) {
            return (exchange, chain) -> {
                ServerHttpResponse response = exchange.getResponse();
                response.beforeCommit(() -> Mono.fromRunnable(() -> response.getHeaders()
                        .set(
                                "X-Free-At-Commit",
                                Long.toString(limits.peek("places", null).remaining()))));
                return chain.filter(exchange);
            };
        }

        @Bean
        RouterFunction<ServerResponse> routes(Handlers handlers) {
            return RouterFunctions.route()
                    .GET("/handler", handlers::stream)
                    .GET("/handler-events", handlers::events)
                    .GET("/handler-one", handlers::one)
                    .GET("/handler-value", handlers::value)
                    .GET("/handler-inserter", handlers::inserter)
                    .build();
        }
    }

    @Component
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class Handlers {

        private final Body body;

        Handlers(Body body) {
            this.body = body;
        }

        @RateLimited("places")
        public Mono<ServerResponse> stream(ServerRequest request) {
            return ServerResponse.ok().contentType(MediaType.TEXT_EVENT_STREAM).body(body.stream(), String.class);
        }

        @RateLimited("places")
        public Mono<ServerResponse> one(ServerRequest request) {
            return ServerResponse.ok().body(Mono.just("one"), String.class);
        }

        @RateLimited("places")
        public Mono<ServerResponse> value(ServerRequest request) {
            return ServerResponse.ok().bodyValue("value");
        }

        @RateLimited("places")
        public Mono<ServerResponse> inserter(ServerRequest request) {
            return ServerResponse.ok().body(BodyInserters.fromValue("value"));
        }

        @RateLimited("places")
        public Mono<ServerResponse> events(ServerRequest request) {
            return ServerResponse.ok()
                    .body(BodyInserters.fromServerSentEvents(body.stream()
                            .map(data -> ServerSentEvent.builder(data).build())));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    static class ServletRoutes {

        @Bean
        org.springframework.web.servlet.function.RouterFunction<?> routes(ServletHandlers handlers) {
            return org.springframework.web.servlet.function.RouterFunctions.route()
                    .GET("/handler", handlers::stream)
                    .GET("/handler-events", handlers::events)
                    .build();
        }
    }

    @Component
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    static class ServletHandlers {

        private final Body body;

        ServletHandlers(Body body) {
            this.body = body;
        }

        @RateLimited("places")
        public org.springframework.web.servlet.function.ServerResponse stream(
                org.springframework.web.servlet.function.ServerRequest request) {
            return org.springframework.web.servlet.function.ServerResponse.ok()
                    .contentType(MediaType.TEXT_PLAIN)
                    .body(body.stream().collectList().map(List::toString));
        }

        @RateLimited("places")
        public org.springframework.web.servlet.function.ServerResponse events(
                org.springframework.web.servlet.function.ServerRequest request) {
            return org.springframework.web.servlet.function.ServerResponse.sse(events -> body.stream()
                    .subscribe(
                            data -> {
                                try {
                                    events.send(data);
                                } catch (IOException ex) {
                                    events.error(ex);
                                }
                            },
                            events::error,
                            events::complete));
        }
    }
}
