package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.web.reactive.LimitedHandlers;
import java.lang.reflect.Proxy;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.Scannable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** WebFlux methods that return plain values under limits that may block: a call that waits for a thread waits. */
class WaitForThreadTest {

    private static RunningServer server;
    /** Every thread of the scheduler on which such methods run. */
    private static List<Scheduler.Worker> threads;

    private final CountDownLatch gate = new CountDownLatch(1);

    @BeforeAll
    static void start() {
        server = RunningServer.Kind.REACTOR_NETTY.start(
                List.of(App.class),
                "rate-limit.limits.remote.backend=remote",
                "rate-limit.limits.proxied.backend=remote",
                "rate-limit.limits.inner.rate=1/m",
                "rate-limit.limits.inner.policy=wait",
                "rate-limit.limits.inner.max-wait=1s");
        threads = Stream.generate(scheduler(server)::createWorker)
                .limit(Schedulers.DEFAULT_BOUNDED_ELASTIC_SIZE)
                .toList();
    }

    private static Scheduler scheduler(RunningServer server) {
        return server.context.getBean(LimitedHandlers.class).threads();
    }

    @AfterAll
    static void stop() {
        threads.forEach(Scheduler.Worker::dispose);
        Scheduler own = scheduler(server);
        server.close();
        assertThat(own.isDisposed()).isTrue();
    }

    @BeforeEach
    void takeThreads() throws InterruptedException {
        CountDownLatch taken = new CountDownLatch(threads.size());
        for (Scheduler.Worker thread : threads) {
            thread.schedule(() -> {
                taken.countDown();
                awaitGate();
            });
        }
        taken.await();
    }

    private void awaitGate() {
        try {
            gate.await();
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    @AfterEach
    void freeThreads() {
        gate.countDown();
        server.ticker().advance(Duration.ofHours(1));
    }

    private CompletableFuture<HttpResponse<String>> sendAndWaitForThread(String method, String path) {
        CompletableFuture<HttpResponse<String>> answer = CompletableFuture.supplyAsync(() -> server.send(method, path));
        while (waitingTasks() == 0) {
            Thread.onSpinWait();
        }
        return answer;
    }

    /** Tasks in the queues of all threads of the scheduler. */
    private static int waitingTasks() {
        return Scannable.from(scheduler(server))
                .inners()
                .mapToInt(thread -> thread.scanOrDefault(Scannable.Attr.BUFFERED, 0))
                .sum();
    }

    private long remaining(String limit) {
        return server.context.getBean(RateLimits.class).peek(limit, null).remaining();
    }

    /** On those of the process, Spring Security checks passwords. */
    @Test
    void theThreadsAreOfTheApplicationAlone() {
        gate.countDown();
        assertThat(server.get("/thread").body()).startsWith("rate-limit-handlers-");
    }

    @ParameterizedTest
    @CsvSource({"/remote, boundedElastic-", "/proxied, boundedElastic-", "/memory, reactor-http-"})
    void aCallWhoseLimitAsksAServerBlocksNoEventLoopAndDoesNotWaitForSleepers(String path, String thread) {
        assertThat(server.get(path).body()).startsWith(thread);
    }

    @ParameterizedTest
    @CsvSource({"GET, /plain, plain", "POST, /body, body", "GET, /never, never"})
    void aCallThatNeedNotWaitGoesHoweverLateItGetsAThread(String method, String path, String limit) {
        CompletableFuture<HttpResponse<String>> answer = sendAndWaitForThread(method, path);
        server.ticker().advance(Duration.ofSeconds(3));
        gate.countDown();

        assertThat(answer.join().statusCode()).isEqualTo(200);
        assertThat(remaining(limit)).isZero();
    }

    @Test
    void aCallWhoseTimeIsOverMayNotWaitAndTakesNothing() {
        assertThat(server.context.getBean(RateLimits.class).tryAcquire("plain", null))
                .isTrue();
        CompletableFuture<HttpResponse<String>> answer = sendAndWaitForThread("GET", "/plain");
        server.ticker().advance(Duration.ofSeconds(59));
        gate.countDown();

        assertThat(answer.join().statusCode()).isEqualTo(429);
        server.ticker().advance(Duration.ofSeconds(1));
        assertThat(remaining("plain")).isEqualTo(1);
    }

    @Test
    void onlyTheRestOfTheLongestWaitMayBeSlept() {
        RateLimits limits = server.context.getBean(RateLimits.class);
        assertThat(limits.tryAcquire("rest", null)).isTrue();
        CompletableFuture<HttpResponse<String>> answer = sendAndWaitForThread("GET", "/rest");
        server.ticker().advance(Duration.ofSeconds(20));
        gate.countDown();

        // It would have to sleep for another 40 seconds, and may for 30.
        assertThat(answer.join().statusCode()).isEqualTo(429);
        server.ticker().advance(Duration.ofSeconds(40));
        assertThat(remaining("rest")).isEqualTo(1);
    }

    /** The limit refuses the call: the wait of the other one is over, which it has not caused. */
    @Test
    void aCallThatALimitRefusesMeanwhileHasOffendedAndOneThatIsOnlyLateHasNot() {
        RateLimits limits = server.context.getBean(RateLimits.class);
        assertThat(limits.tryAcquire("blocks", "all")).isTrue();
        assertThat(limits.tryAcquire("late", "all")).isTrue();
        CompletableFuture<HttpResponse<String>> answer = sendAndWaitForThread("GET", "/late");
        server.ticker().advance(Duration.ofSeconds(3));
        gate.countDown();

        assertThat(answer.join().body())
                .contains("abnormal-usage-detected", "\"violated-policies\":[\"late\",\"blocks\"]");
        assertThat(limits.peek("blocks", "all").blocked()).isTrue();
        assertThat(limits.peek("late", "all").blocked()).isFalse();
    }

    @Test
    void theWaitForTheThreadIsPartOfTheFirstCallOnly() {
        CompletableFuture<HttpResponse<String>> answer = sendAndWaitForThread("GET", "/outer");
        server.ticker().advance(Duration.ofSeconds(2));
        gate.countDown();

        assertThat(answer.join().statusCode()).isEqualTo(200);
        assertThat(remaining("inner")).isZero();
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
        LimiterFactory remote() {
            return new Remote();
        }

        @Bean
        ProxiedApi proxied() {
            return (ProxiedApi) Proxy.newProxyInstance(
                    ProxiedApi.class.getClassLoader(),
                    new Class<?>[] {ProxiedApi.class},
                    (proxy, method, args) -> method.getDeclaringClass() == Object.class
                            ? System.identityHashCode(proxy)
                            : Thread.currentThread().getName());
        }
    }

    @RestController
    interface ProxiedApi {

        @GetMapping("/proxied")
        @RateLimited(name = "proxied", rate = "1/m")
        String proxied();
    }

    /** Limits in memory that do not say where their decisions come from, as those on a server. */
    private static final class Remote implements LimiterFactory {

        @Override
        public String backend() {
            return "remote";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            RateLimiter memory = new InMemoryRateLimiter(limit, new ManualTicker(), 100);
            return (RateLimiter) Proxy.newProxyInstance(
                    getClass().getClassLoader(),
                    new Class<?>[] {RateLimiter.class},
                    (proxy, method, args) -> method.getName().equals("source") ? null : method.invoke(memory, args));
        }
    }

    @RestController
    static class Api {

        private final RateLimits limits;

        Api(RateLimits limits) {
            this.limits = limits;
        }

        @GetMapping("/plain")
        @RateLimited(name = "plain", rate = "1/m", policy = Policy.WAIT, maxWait = "2s")
        String plain() {
            return "plain";
        }

        @GetMapping("/thread")
        @RateLimited(name = "thread", rate = "1/m", policy = Policy.WAIT, maxWait = "2s")
        String thread() {
            return Thread.currentThread().getName();
        }

        @GetMapping("/remote")
        @RateLimited(name = "remote", rate = "1/m")
        String remote() {
            return Thread.currentThread().getName();
        }

        @GetMapping("/memory")
        @RateLimited(name = "memory", rate = "1/m")
        String memory() {
            return Thread.currentThread().getName();
        }

        @GetMapping("/never")
        @RateLimited(name = "never", rate = "1/m", policy = Policy.WAIT, maxWait = "0s")
        String never() {
            return "never";
        }

        @PostMapping("/body")
        @RateLimited(name = "body", rate = "1/m", policy = Policy.WAIT, maxWait = "2s")
        String body(@RequestBody(required = false) String body) {
            return "body";
        }

        @GetMapping("/rest")
        @RateLimited(name = "rest", rate = "1/m", policy = Policy.WAIT, maxWait = "50s")
        String rest() {
            return "rest";
        }

        @GetMapping("/late")
        @RateLimited(name = "late", rate = "1/m", key = "'all'", policy = Policy.WAIT, maxWait = "2s", block = "5m")
        @RateLimited(name = "blocks", rate = "1/m", key = "'all'", block = "10m")
        String late() {
            return "late";
        }

        @GetMapping("/outer")
        @RateLimited(name = "outer", rate = "1/m", policy = Policy.WAIT, maxWait = "2s")
        String outer() {
            return limits.execute("inner", null, () -> "inner");
        }
    }
}
