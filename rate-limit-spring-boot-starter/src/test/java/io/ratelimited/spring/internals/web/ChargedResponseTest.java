package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.http.HttpServletResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What requests are charged with when their calls have ended, and what clients see of it. */
@ParameterizedClass
@EnumSource(Kind.class)
@Tag("slow")
class ChargedResponseTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(
                List.of(kind == Kind.REACTOR_NETTY ? Reactive.class : Servlet.class),
                "rate-limit.limits.bytes.rate=100/m",
                "rate-limit.limits.bytes.charge=#result.length()",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=bytes");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @BeforeEach
    void everyBudgetIsWholeAgain() {
        server.ticker().advance(Duration.ofHours(2));
    }

    private static long remaining(String limit) {
        return server.context.getBean(RateLimits.class).peek(limit, null).remaining();
    }

    @ParameterizedTest
    @CsvSource({"plain", "future", "mono"})
    void theFieldsAreThoseAfterTheSettlement(String path) {
        assertThat(states(server.get("/" + path + "?length=30")).get("bytes")).containsEntry("r", 70L);
        assertThat(states(server.get("/" + path + "?length=5")).get("bytes")).containsEntry("r", 65L);
    }

    /** The second use has a cost, which is charged together with the permits of the first. */
    @Test
    void theFieldsOfTwoUsesOfOneKeyAreThoseAfterTheSettlement() {
        assertThat(states(server.get("/twice?x=ann&y=ann")).get("uses")).containsEntry("r", 100L - 5 - 1);
    }

    @Test
    void aBudgetInDebtHasNothingRemainingAndTheNextRequestIsToldWhenItIsPaid() {
        assertThat(states(server.get("/plain?length=150")).get("bytes"))
                .containsEntry("r", 0L)
                .containsEntry("t", 90L);
        assertThat(server.get("/plain?length=1"))
                .satisfies(refused -> assertThat(refused.statusCode()).isEqualTo(429))
                .satisfies(refused ->
                        assertThat(refused.headers().firstValue("Retry-After")).hasValue("36"));
    }

    @Test
    void aRouteIsNotCharged() {
        assertThat(states(server.get("/routed")).get("bytes")).containsEntry("r", 99L);
        assertThat(remaining("bytes")).isEqualTo(99);
    }

    @Test
    void aStreamIsChargedByItsElementsWhenItHasEnded() {
        assertThat(server.get("/flux").body()).isEqualTo("onetwothree");
        Threads.until(() -> remaining("elements") == 97);
    }

    @ParameterizedTest
    @CsvSource({"callable", "task", "deferred"})
    void whatSpringMvcAwaitsIsChargedByItsValueOrItsError(String path) {
        assumeThat(kind).as("Spring MVC").isNotEqualTo(Kind.REACTOR_NETTY);
        assertThat(server.get("/" + path + "/right").body()).isEqualTo("welcome");
        Threads.until(() -> remaining("failures") == 5);
        assertThat(server.get("/" + path + "/wrong").statusCode()).isEqualTo(500);
        Threads.until(() -> remaining("failures") == 4);
    }

    @Test
    void aResultThatDoesNotComeInTimeIsCancelled() {
        assumeThat(kind).as("Spring MVC").isNotEqualTo(Kind.REACTOR_NETTY);
        assertThat(server.get("/deferred/never").statusCode()).isEqualTo(503);
        Threads.until(() -> remaining("failures") == 4);
    }

    /** Also where its length is known, so that calls in flight end with its last byte. */
    @ParameterizedTest
    @ValueSource(strings = {"/download", "/download?length=42"})
    void aStreamedBodyIsChargedByWhatItKnowsOfItself(String path) {
        assumeThat(kind).as("Spring MVC").isNotEqualTo(Kind.REACTOR_NETTY);
        assertThat(server.get(path).body()).hasSize(42);
        Threads.until(() -> remaining("downloads") == 58);
    }

    @ParameterizedTest
    @CsvSource({"reserved-stream, 58", "reserved-events, 98"})
    void permitsReservedByHandAreSettledWhenAStreamHasEnded(String path, long left) {
        assumeThat(kind).as("Spring MVC").isNotEqualTo(Kind.REACTOR_NETTY);
        assertThat(server.get("/" + path).statusCode()).isEqualTo(200);
        Threads.until(() -> remaining("reserved") == left);
    }

    @Test
    void permitsReservedByHandAreSettledWhenAFluxHasEnded() {
        assumeThat(kind).as("WebFlux").isEqualTo(Kind.REACTOR_NETTY);
        assertThat(server.get("/reserved-flux").body()).isEqualTo("onetwo");
        Threads.until(() -> remaining("reserved") == 98);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Streams.class})
    static class Servlet {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Fluxes.class})
    static class Reactive {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @RestController
    static class Api {

        @GetMapping("/plain")
        @RateLimited(name = "bytes", permits = "10")
        public String plain(@RequestParam("length") int length) {
            return "x".repeat(length);
        }

        @GetMapping("/future")
        @RateLimited(name = "bytes", permits = "10")
        public CompletableFuture<String> future(@RequestParam("length") int length) {
            return CompletableFuture.supplyAsync(() -> "x".repeat(length));
        }

        @GetMapping("/mono")
        @RateLimited(name = "bytes", permits = "10")
        public Mono<String> mono(@RequestParam("length") int length) {
            return Mono.just("x".repeat(length));
        }

        @GetMapping("/twice")
        @RateLimited(name = "uses", rate = "100/h", key = "#x", permits = "5")
        @RateLimited(name = "uses", key = "#y", permits = "10", charge = "1")
        public String twice(@RequestParam("x") String x, @RequestParam("y") String y) {
            return x + y;
        }

        @GetMapping("/routed")
        public String routed() {
            return "a route";
        }

        @GetMapping("/flux")
        @RateLimited(name = "elements", rate = "100/h", permits = "10", charge = "#count")
        public Flux<String> flux() {
            return Flux.just("one", "two", "three");
        }
    }

    /** Counts what it has written. */
    static final class Download implements StreamingResponseBody {

        private volatile int written;

        public int getWritten() {
            return written;
        }

        @Override
        public void writeTo(java.io.OutputStream out) throws java.io.IOException {
            byte[] content = "y".repeat(42).getBytes(StandardCharsets.US_ASCII);
            out.write(content);
            written = content.length;
        }
    }

    @RestController
    static class Streams {

        private static final String FAILED = "#error != null ? 1 : 0";

        private final RateLimits limits;

        Streams(RateLimits limits) {
            this.limits = limits;
        }

        private static String login(String password) {
            if (!password.equals("right")) {
                throw new IllegalArgumentException("wrong password");
            }
            return "welcome";
        }

        @GetMapping("/callable/{password}")
        @RateLimited(name = "failures", rate = "5/h", charge = FAILED)
        public Callable<String> callable(@PathVariable("password") String password) {
            return () -> login(password);
        }

        @GetMapping("/task/{password}")
        @RateLimited(name = "failures", charge = FAILED)
        public WebAsyncTask<String> task(@PathVariable("password") String password) {
            return new WebAsyncTask<>(() -> login(password));
        }

        @GetMapping("/deferred/{password}")
        @RateLimited(name = "failures", charge = FAILED)
        public DeferredResult<String> deferred(@PathVariable("password") String password) {
            DeferredResult<String> result = new DeferredResult<>(password.equals("never") ? 250L : 20_000L);
            if (!password.equals("never")) {
                CompletableFuture.supplyAsync(() -> login(password)).whenComplete((value, failure) -> {
                    if (failure == null) {
                        result.setResult(value);
                    } else {
                        result.setErrorResult(failure);
                    }
                });
            }
            return result;
        }

        @GetMapping("/download")
        @RateLimited(name = "downloads", rate = "100/h", permits = "10", charge = "#result.written")
        @RateLimited(name = "concurrent-downloads", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Download download(
                @RequestParam(name = "length", required = false) @Nullable Integer length,
                HttpServletResponse response) {
            if (length != null) {
                response.setContentLength(length);
            }
            return new Download();
        }

        @GetMapping("/reserved-stream")
        @RateLimited(name = "reserved", rate = "100/h", when = "false")
        public StreamingResponseBody reservedStream() {
            ReservedPermits permits = limits.reserve("reserved", null, 10);
            Download download = new Download();
            return out -> {
                try (permits) {
                    download.writeTo(out);
                    permits.settle(download.getWritten());
                }
            };
        }

        @GetMapping("/reserved-events")
        public SseEmitter reservedEvents() throws Exception {
            ReservedPermits permits = limits.reserve("reserved", null, 10);
            SseEmitter events = new SseEmitter();
            events.onCompletion(permits::close);
            events.send("one");
            events.send("two");
            permits.settle(2);
            events.complete();
            return events;
        }
    }

    @RestController
    static class Fluxes {

        private final RateLimits limits;

        Fluxes(RateLimits limits) {
            this.limits = limits;
        }

        @GetMapping("/reserved-flux")
        @RateLimited(name = "reserved", rate = "100/h", when = "false")
        public Flux<String> reservedFlux() {
            return Flux.usingWhen(
                    Mono.fromFuture(() -> limits.reserveAsync("reserved", null, 10)),
                    permits -> Flux.just("one", "two").doOnComplete(() -> permits.settle(2)),
                    permits -> Mono.fromRunnable(permits::close));
        }
    }
}
