package io.ratelimited.spring.internals.overload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.Sleeper;
import io.ratelimited.spring.internals.request.Serving;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Calls that sleep in the threads of requests, and those for which no thread is left. */
@Timeout(60)
@Tag("slow")
class SleepersTest {

    /** Half of them may sleep. */
    private static final int THREADS = 4;

    private final ExecutorService executor = Executors.newCachedThreadPool();
    private final CountDownLatch end = new CountDownLatch(1);

    @AfterEach
    void end() {
        end.countDown();
        executor.shutdownNow();
    }

    static class Calls {

        @RateLimited(name = "calls", priority = "#kind", policy = Policy.WAIT, maxWait = "1m")
        public String call(String kind, Callable<String> body) throws Exception {
            return body.call();
        }

        @RateLimited(name = "calls", priority = "#kind", policy = Policy.WAIT, maxWait = "1m")
        @RateLimited(name = "other", rate = "1000/s", policy = Policy.WAIT, maxWait = "1m")
        public String several(String kind, Callable<String> body) throws Exception {
            return body.call();
        }
    }

    static class Paced {

        @RateLimited(name = "calls", priority = "#kind")
        @RateLimited(name = "pace", algorithm = Algorithm.LEAKY_BUCKET, rate = "1/h", burst = 10, maxWait = "1d")
        public String call(String kind, Callable<String> body) throws Exception {
            return body.call();
        }
    }

    private static ContextRunner runner(Algorithm algorithm) {
        return ContextRunner.with(ContextRunner.limited(), Calls.class)
                .withBean(RequestThreads.class, () -> new RequestThreads(THREADS))
                .withBean(Serving.class, Serving::new)
                .withPropertyValues(
                        "rate-limit.limits.calls.algorithm=" + algorithm,
                        "rate-limit.limits.calls.max-concurrent=2",
                        "rate-limit.limits.calls.priorities=critical,batch");
    }

    /** With a queue on a backend that records what becomes of reservations. */
    private static ContextRunner withQueue(RecordingBackend backend) {
        return runner(Algorithm.CONCURRENCY)
                .withBean(RecordingBackend.class, () -> backend)
                .withPropertyValues(
                        "rate-limit.limits.queue.algorithm=leaky-bucket",
                        "rate-limit.limits.queue.rate=1/h",
                        "rate-limit.limits.queue.max-wait=1d",
                        "rate-limit.limits.queue.backend=recording");
    }

    private interface Call {
        String make(String kind, Callable<String> body) throws Exception;
    }

    private CompletableFuture<String> start(Call call, String kind, Callable<String> body) {
        CompletableFuture<String> result = new CompletableFuture<>();
        executor.execute(() -> {
            try {
                result.complete(call.make(kind, body));
            } catch (Throwable ex) {
                result.completeExceptionally(ex);
            }
        });
        return result;
    }

    private String atTheEnd() throws InterruptedException {
        end.await();
        return "first";
    }

    private void run(Algorithm algorithm, boolean several) {
        runner(algorithm).run(context -> {
            Calls calls = context.getBean(Calls.class);
            Call call = several ? calls::several : calls::call;
            TestLimits limits = TestLimits.of(context);
            CompletableFuture<String> first = start(call, "critical", this::atTheEnd);
            CompletableFuture<String> second = start(call, "critical", this::atTheEnd);
            await(() -> !limits.peek("calls", null).admitted());
            List<CompletableFuture<String>> batch = List.of(
                    waiting(limits, () -> start(call, "batch", () -> "batch"), 1),
                    waiting(limits, () -> start(call, "batch", () -> "batch"), 2));
            assertThatThrownBy(() -> call.make("batch", () -> "batch")).isInstanceOf(RateLimitExceededException.class);
            CompletableFuture<String> critical = start(call, "critical", () -> "critical");
            await(batch.get(1)::isDone);
            assertThat(batch.get(1)).isCompletedExceptionally();
            assertThatThrownBy(batch.get(1)::get).hasCauseInstanceOf(RateLimitExceededException.class);
            await(() -> waiters(limits) == 2);
            if (algorithm == Algorithm.ADAPTIVE) {
                assertThat(Objects.requireNonNull(
                                        limits.configured("calls").limiter().foundLimit())
                                .refused())
                        .containsExactly(0L, 2L);
            }
            end.countDown();
            assertThat(critical.get()).isEqualTo("critical");
            assertThat(batch.get(0).get()).isEqualTo("batch");
            assertThat(List.of(first.get(), second.get())).containsOnly("first");
            await(() -> waiters(limits) == 0);
            assertThat(call.make("batch", () -> "free")).isEqualTo("free");
        });
    }

    private static CompletableFuture<String> waiting(
            TestLimits limits, Supplier<CompletableFuture<String>> start, int waiters) {
        CompletableFuture<String> call = start.get();
        await(() -> waiters(limits) == waiters);
        return call;
    }

    private static int waiters(TestLimits limits) {
        return limits.configured("calls").limiter().waiting();
    }

    private static void await(Callable<Boolean> condition) {
        Awaitility.await().until(condition);
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void aCallOfAHigherPriorityTakesTheThreadOfTheLastOneBelow(Algorithm algorithm) {
        run(algorithm, false);
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void soDoesACallUnderSeveralLimits(Algorithm algorithm) {
        run(algorithm, true);
    }

    @Test
    void aDisplacedCallIsRejectedByTheLimitForWhichItWaited() {
        runner(Algorithm.CONCURRENCY).run(context -> {
            Calls calls = context.getBean(Calls.class);
            TestLimits limits = TestLimits.of(context);
            for (int i = 0; i < 2; i++) {
                start(calls::call, "critical", this::atTheEnd);
            }
            await(() -> !limits.peek("calls", null).admitted());
            waiting(limits, () -> start(calls::call, "batch", () -> "batch"), 1);
            CompletableFuture<String> displaced = waiting(limits, () -> start(calls::call, "batch", () -> "batch"), 2);
            start(calls::call, "critical", () -> "critical");
            RateLimitExceededException rejection = rejection(displaced);
            assertThat(rejection.limits()).containsExactly("calls");
            assertThat(rejection.decision().admitted()).isFalse();
        });
    }

    private static RateLimitExceededException rejection(CompletableFuture<String> call) {
        Throwable failure = catchThrowable(() -> call.get(20, TimeUnit.SECONDS));
        assertThat(failure).hasCauseInstanceOf(RateLimitExceededException.class);
        return (RateLimitExceededException) failure.getCause();
    }

    @Test
    void aDisplacedCallThatWaitedForAnotherLimitHasTheTimeOfThatOne() {
        runner(Algorithm.CONCURRENCY)
                .withBean(Paced.class)
                .withPropertyValues("rate-limit.limits.calls.max-wait=1d")
                .run(context -> {
                    Paced paced = context.getBean(Paced.class);
                    TestLimits limits = TestLimits.of(context);
                    assertThat(paced.call("batch", () -> "first")).isEqualTo("first");
                    CompletableFuture<String> displaced = new CompletableFuture<>();
                    for (int waiters = 1; waiters <= THREADS / 2; waiters++) {
                        int all = waiters;
                        displaced = start(paced::call, "batch", () -> "batch");
                        await(() -> limits.limit("pace").waiting() == all);
                    }
                    start(paced::call, "critical", () -> "critical");
                    RateLimitExceededException rejection = rejection(displaced);
                    assertThat(rejection.limits()).containsExactly("pace");
                    assertThat(rejection.decision().admitted()).isFalse();
                    assertThat(rejection.decision().retryAfter()).isPositive();
                });
    }

    /** Time of a queue that is given back is lost where another call came in between. */
    @Test
    void aCallForWhichNoThreadIsLeftReservesNoTimeOfAQueue() {
        RecordingBackend backend = new RecordingBackend();
        withQueue(backend).run(context -> {
            TestLimits limits = TestLimits.of(context);
            RequestThreads threads = context.getBean(RequestThreads.class);
            assertThat(limits.<String>execute("queue", null, () -> "first")).isEqualTo("first");
            for (int i = 0; i < THREADS / 2; i++) {
                assertThat(threads.tryEnter(0, new Sleeper(List.of(), List.of())))
                        .isTrue();
            }
            assertThatThrownBy(() -> limits.execute("queue", null, () -> "second"))
                    .isInstanceOf(RateLimitExceededException.class);
            assertThat(backend.ends).containsExactly("ANSWERED");
        });
    }

    /** A reservation that nobody waits for would delay all later calls. */
    @Test
    void aCallThatLosesTheLastThreadToAnotherGivesItsTimeOfAQueueBack() {
        RecordingBackend backend = new RecordingBackend();
        withQueue(backend).run(context -> {
            TestLimits limits = TestLimits.of(context);
            RequestThreads threads = context.getBean(RequestThreads.class);
            limits.<String>execute("queue", null, () -> "first");
            backend.whenReserved = () -> {
                for (int i = 0; i < THREADS / 2; i++) {
                    threads.tryEnter(0, new Sleeper(List.of(), List.of()));
                }
            };
            assertThatThrownBy(() -> limits.execute("queue", null, () -> "second"))
                    .isInstanceOf(RateLimitExceededException.class);
            assertThat(backend.ends).containsExactly("ANSWERED", "not made");
        });
    }
}
