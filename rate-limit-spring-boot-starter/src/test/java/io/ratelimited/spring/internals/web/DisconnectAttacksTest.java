package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitCharge;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.eclipse.jetty.io.EofException;
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
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerRequest;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Clients disconnect before a call has ended whose charge costs nothing then. */
@ParameterizedClass
@EnumSource(Kind.class)
@Tag("slow")
class DisconnectAttacksTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(
                List.of(App.class),
                "rate-limit.limits.units.rate=1000/h",
                "rate-limit.limits.units.permits=10",
                "rate-limit.limits.units.charge=0",
                "rate-limit.limits.slow.rate=1000/h",
                "rate-limit.limits.slow.permits=10",
                "rate-limit.limits.slow.charge=0",
                "rate-limit.limits.slow.policy=wait",
                // Rarely Tomcat does not notice at once that a client has gone: its response ends when its time is
                // over. That of a functional endpoint takes 30 s, for which a graceful shutdown would wait.
                "spring.mvc.async.request-timeout=5s",
                "server.shutdown=immediate");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @AfterEach
    void everyBudgetIsWholeAgain() {
        server.ticker().advance(Duration.ofHours(2));
        settled().clear();
        Work.BEGUN.drainPermits();
    }

    private static long remaining(String limit) {
        return server.context.getBean(RateLimits.class).peek(limit, null).remaining();
    }

    /**
     * Calls and disconnects.
     *
     * @param first how many bytes of the answer the client reads before
     */
    private static void abort(String path, int times, int first) throws Exception {
        abort("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n", times, first, true);
    }

    /** @param reset whether the client resets the connection instead of closing it */
    private static void abort(String request, int times, int first, boolean reset) throws Exception {
        for (int i = 0; i < times; i++) {
            try (Socket client = server.connect()) {
                client.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
                client.getOutputStream().flush();
                assertThat(Work.BEGUN.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
                assertThat(client.getInputStream().readNBytes(first)).hasSize(first);
                if (reset) {
                    client.setSoLinger(true, 0);
                }
            }
        }
        // Tomcat may not see that a client has gone; the response of a functional endpoint ends after 30 s then.
        Threads.until(() -> settled().size() == times);
    }

    private static List<Long> settled() {
        return server.context.getBean(Settled.class).charged;
    }

    @ParameterizedTest
    @ValueSource(strings = {"/flux", "/entity", "/writing", "/stream", "/events", "/handler"})
    void aStreamWhoseClientHasGoneCostsWhatItReserved(String path) throws Exception {
        assumeTrue(
                kind != Kind.REACTOR_NETTY || path.equals("/flux"),
                "Reactor Netty calls a body complete whose client has gone while it is written");
        assumeTrue(
                kind != Kind.JETTY || !List.of("/events", "/handler").contains(path),
                "Jetty sees that a client is gone when the request times out");
        abort(path, 2, 1000);
        assertThat(settled()).containsExactly(10L, 10L);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/query", "/blocking", "/future", "/quiet-entity"})
    void aQueryWhoseClientHasGoneCostsWhatItReserved(String path) throws Exception {
        assumeTrue(kind == Kind.REACTOR_NETTY, "other servers notice when they write");
        abort(path, 2, 0);
        if (path.equals("/quiet-entity")) {
            // Reactor Netty calls its body complete if that was written before the client went: rarely one of the two.
            assertThat(settled()).hasSize(2).contains(10L);
        } else {
            assertThat(settled()).containsExactly(10L, 10L);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatReadsARequestWhoseClientHasGoneCostsWhatItReserved(boolean reset) throws Exception {
        abort("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nbegun", 2, 0, reset);
        assertThat(settled()).containsExactly(10L, 10L);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/deferred", "/callable"})
    void aResultThatIsLateCostsWhatItsCallReserved(String path) {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        assertThat(server.get(path).statusCode()).isGreaterThanOrEqualTo(500);
        Threads.untilAsserted(() -> assertThat(settled()).containsExactly(10L));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/short-flux",
                "/failing",
                "/failing-vendor",
                "/failing-pipe",
                "/failing-jetty",
                "/failing-stream",
                "/late-answer",
                "/failing-callable"
            })
    void aCallThatComesToItsOwnEndCostsWhatTheChargeSays(String path) {
        assumeTrue(
                kind != Kind.REACTOR_NETTY
                        || !List.of("/late-answer", "/failing-callable").contains(path),
                "Spring MVC");
        server.get(path);
        Threads.untilAsserted(() -> assertThat(settled()).containsExactly(0L));
    }

    /** The client is still there, although its connection is not to be used again. */
    @Test
    void aCallWhoseConnectionEndsWithItsResponseCostsWhatTheChargeSays() throws Exception {
        try (Socket client = server.connect()) {
            client.getOutputStream()
                    .write("GET /failing-pipe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                            .getBytes(StandardCharsets.US_ASCII));
            client.getInputStream().readAllBytes();
        }
        Threads.untilAsserted(() -> assertThat(settled()).containsExactly(0L));
    }

    @Test
    void aChargeThatReadsCancelledDecides() throws Exception {
        abort("/aware", 2, 1000);
        assertThat(settled()).containsExactly(3L, 3L);
    }

    /** Thirty queries and fifteen streams once left the budget full. */
    @Test
    @Tag("proof")
    void manyAbortedCallsUseUpTheBudget() throws Exception {
        if (kind == Kind.REACTOR_NETTY) {
            abort("/query", 30, 0);
            assertThat(remaining("units")).isEqualTo(1000 - 300);
            settled().clear();
            server.ticker().advance(Duration.ofHours(2));
        }
        abort("/flux", 15, 100_000);
        assertThat(remaining("units")).isEqualTo(1000 - 150);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Settled.class, Api.class, Servlet.class, Reactive.class})
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    /** What calls were charged with. */
    static final class Settled implements DecisionObserver {

        private final List<Long> charged = new CopyOnWriteArrayList<>();

        @Override
        public void onDecision(RateLimitDecision decision) {}

        @Override
        public void onCharge(RateLimitCharge charge) {
            charged.add(charge.charged());
        }
    }

    /** What handlers do that only end with their client. */
    private static final class Work {

        private static final Semaphore BEGUN = new Semaphore(0);
        private static final byte[] DATA = "data".repeat(1024).getBytes(StandardCharsets.US_ASCII);

        private Work() {}

        private static void write(OutputStream out) throws IOException {
            BEGUN.release();
            while (true) {
                out.write(DATA);
                out.flush();
            }
        }

        private static Flux<String> stream() {
            return Flux.interval(Duration.ofMillis(1))
                    .onBackpressureDrop()
                    .map(tick -> "data".repeat(1024))
                    .doOnSubscribe(reader -> BEGUN.release());
        }

        private static String block() {
            BEGUN.release();
            try {
                new CountDownLatch(1).await();
                return "never";
            } catch (InterruptedException ex) {
                throw new IllegalStateException("in words of its own");
            }
        }
    }

    @RestController
    static class Api {

        @GetMapping(path = "/flux", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
        @RateLimited("units")
        public Flux<String> flux() {
            return Work.stream();
        }

        @GetMapping(path = "/aware", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
        @RateLimited(name = "aware", rate = "1000/h", permits = "10", charge = "#cancelled ? 3 : 5")
        public Flux<String> aware() {
            return Work.stream();
        }

        @GetMapping("/short-flux")
        @RateLimited("units")
        public Flux<String> shortFlux() {
            return Flux.just("one", "two");
        }

        @GetMapping("/failing")
        @RateLimited("units")
        public Mono<String> failing() {
            return Mono.error(new IllegalStateException("as the test wants"));
        }

        @GetMapping("/failing-vendor")
        @RateLimited("units")
        public Mono<String> failingVendor() {
            return Mono.error(new IllegalStateException(
                    new IOException("unexpected end of stream", new EOFException("\\n not found"))));
        }

        @GetMapping("/failing-pipe")
        @RateLimited("units")
        public String failingPipe() {
            throw new IllegalStateException(new IOException("Broken pipe"));
        }

        /** What a client of Jetty throws whose server has gone. */
        @GetMapping("/failing-jetty")
        @RateLimited("units")
        public String failingJetty() {
            throw new IllegalStateException(new EofException("reset"));
        }

        @GetMapping("/failing-stream")
        @RateLimited("units")
        public ResponseEntity<Flux<String>> failingStream() {
            return ResponseEntity.ok()
                    .contentType(MediaType.TEXT_EVENT_STREAM)
                    .body(Flux.just("one").concatWith(Mono.error(new IOException("Connection reset by peer"))));
        }

        @GetMapping("/entity")
        @RateLimited("units")
        public ResponseEntity<Flux<String>> entity() {
            return ResponseEntity.ok().contentType(MediaType.TEXT_EVENT_STREAM).body(Work.stream());
        }
    }

    @RestController
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    static class Servlet {

        @GetMapping("/writing")
        @RateLimited("units")
        public void writing(HttpServletResponse response) throws IOException {
            Work.write(response.getOutputStream());
        }

        @PostMapping("/body")
        @RateLimited("units")
        public void body(HttpServletRequest request) throws IOException {
            Work.BEGUN.release();
            request.getInputStream().readAllBytes();
        }

        @GetMapping("/stream")
        @RateLimited("units")
        public StreamingResponseBody stream() {
            return Work::write;
        }

        @GetMapping("/events")
        @RateLimited("units")
        public SseEmitter events() {
            SseEmitter events = new SseEmitter(0L);
            Work.stream().subscribe(data -> send(events, data));
            return events;
        }

        private static void send(SseEmitter events, String data) {
            try {
                events.send(data);
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        @Bean
        static RouterFunction<?> route(Functional handler) {
            return RouterFunctions.route().GET("/handler", handler::events).build();
        }

        @Bean
        static Functional handler() {
            return new Functional();
        }

        @GetMapping("/deferred")
        @RateLimited("units")
        public DeferredResult<String> deferred() {
            return new DeferredResult<>(250L);
        }

        @GetMapping("/late-answer")
        @RateLimited("units")
        public DeferredResult<String> lateAnswer() {
            return new DeferredResult<>(250L, "nothing new");
        }

        @GetMapping("/callable")
        @RateLimited("units")
        public WebAsyncTask<String> callable() {
            return new WebAsyncTask<>(250L, Work::block);
        }

        @GetMapping("/failing-callable")
        @RateLimited("units")
        public Callable<String> failingCallable() {
            return () -> {
                throw new IllegalStateException("as the test wants");
            };
        }
    }

    static class Functional {

        @RateLimited("units")
        public ServerResponse events(ServerRequest request) {
            return ServerResponse.sse(
                    events -> Work.stream().subscribe(data -> {
                        try {
                            events.send(data);
                        } catch (IOException ex) {
                            throw new UncheckedIOException(ex);
                        }
                    }),
                    Duration.ZERO);
        }
    }

    @RestController
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class Reactive {

        @GetMapping("/query")
        @RateLimited("units")
        public Mono<String> query() {
            return Mono.<String>never().doOnSubscribe(reader -> Work.BEGUN.release());
        }

        @PostMapping("/body")
        @RateLimited("units")
        public Mono<Void> body(ServerHttpRequest request) {
            return request.getBody()
                    .doOnSubscribe(reader -> Work.BEGUN.release())
                    .map(DataBufferUtils::release)
                    .then();
        }

        /** A method that may wait has a thread, which is interrupted. */
        @GetMapping("/blocking")
        @RateLimited("slow")
        public String blocking() {
            return Work.block();
        }

        @GetMapping("/future")
        @RateLimited("units")
        public CompletableFuture<String> future() {
            Work.BEGUN.release();
            return new CompletableFuture<>();
        }

        @GetMapping("/quiet-entity")
        @RateLimited("units")
        public ResponseEntity<Flux<String>> entity() {
            return ResponseEntity.ok()
                    .contentType(MediaType.TEXT_EVENT_STREAM)
                    .body(Work.stream().take(1).concatWith(Mono.never()));
        }
    }
}
