package io.ratelimited.spring.autoconfigure.web;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** The application stops while calls wait for their turn. */
class ClosingContextTest {

    @ParameterizedTest
    @EnumSource(Kind.class)
    void everyWaitEndsAtOnceAndItsClientIsAnswered(Kind kind) throws Exception {
        Work.calls.set(0);
        RunningServer server = kind.start(
                List.of(App.class),
                "rate-limit.limits.routed.rate=1/h",
                "rate-limit.limits.routed.policy=wait",
                "rate-limit.limits.routed.max-wait=2h",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=routed",
                "server.shutdown=graceful",
                "spring.lifecycle.timeout-per-shutdown-phase=10m");
        Work work = server.context.getBean(Work.class);
        TestLimits limits = TestLimits.of(server.context);
        limits.tryAcquire("slow", null);
        limits.tryAcquire("routed", null);
        FutureTask<String> flying = start(work::flying);
        RateLimiter flight = limits.configured("flight").limiter();
        Threads.until(() -> flight.peek(null, 1, 0).remaining() == 0);

        List<CompletableFuture<HttpResponse<String>>> responses = List.of(
                server.getAsync("/blocking"),
                server.getAsync("/mono"),
                server.getAsync("/future"),
                server.getAsync("/routed"));
        List<FutureTask<String>> calls = new ArrayList<>();
        calls.add(start(work::blocking));
        calls.add(start(work::flying));
        calls.add(start(() -> work.mono().block()));
        calls.add(start(() -> work.future().get()));
        RateLimiter slow = limits.configured("slow").limiter();
        RateLimiter routed = limits.configured("routed").limiter();
        Threads.until(() -> slow.waiting() == 6 && routed.waiting() == 1 && flight.waiting() == 1);

        Thread closing = new Thread(server::close);
        closing.start();

        for (CompletableFuture<HttpResponse<String>> response : responses) {
            assertThat(response.get(20, TimeUnit.SECONDS).statusCode()).isEqualTo(503);
        }
        for (FutureTask<String> call : calls) {
            assertThat(call)
                    .failsWithin(Duration.ofSeconds(20))
                    .withThrowableOfType(ExecutionException.class)
                    .withRootCauseInstanceOf(RateLimiterClosedException.class);
        }
        Work.landing.complete("landed");
        assertThat(flying.get(20, TimeUnit.SECONDS)).isEqualTo("landed");
        closing.join(20_000);
        assertThat(closing.isAlive()).isFalse();
        assertThat(slow.waiting()).isZero();
        App.TICKER.advance(Duration.ofHours(3));
        assertThat(Work.calls).hasValue(0);
        Work.landing = new CompletableFuture<>();
    }

    private static FutureTask<String> start(Callable<String> call) {
        FutureTask<String> task = new FutureTask<>(call);
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        return task;
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Work.class})
    static class App {

        static final ManualTicker TICKER = new ManualTicker();

        @Bean
        ManualTicker ticker() {
            return TICKER;
        }
    }

    static class Work {

        static final AtomicInteger calls = new AtomicInteger();
        static volatile CompletableFuture<String> landing = new CompletableFuture<>();

        @RateLimited(name = "slow", rate = "1/h", policy = Policy.WAIT, maxWait = "24h")
        public String blocking() {
            return "call " + calls.incrementAndGet();
        }

        @RateLimited("slow")
        public Mono<String> mono() {
            return Mono.fromCallable(() -> "call " + calls.incrementAndGet());
        }

        @RateLimited("slow")
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("call " + calls.incrementAndGet());
        }

        @RateLimited(name = "flight", algorithm = CONCURRENCY, maxConcurrent = 1, policy = Policy.WAIT, maxWait = "24h")
        public String flying() {
            return landing.join();
        }
    }

    @RestController
    static class Api {

        private final Work work;

        Api(Work work) {
            this.work = work;
        }

        @GetMapping("/blocking")
        @RateLimited("slow")
        public String blocking() {
            return "call " + Work.calls.incrementAndGet();
        }

        @GetMapping("/mono")
        public Mono<String> mono() {
            return work.mono();
        }

        @GetMapping("/future")
        public CompletableFuture<String> future() {
            return work.future();
        }

        @GetMapping("/routed")
        public String routed() {
            return "call " + Work.calls.incrementAndGet();
        }
    }
}
