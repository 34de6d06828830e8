package io.ratelimited.spring.internals.overload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.TestLimits;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A limit learns how each of its calls has ended. */
@Tag("slow")
class EndOfCallTest {

    private final RecordingBackend backend = new RecordingBackend();
    private final ContextRunner runner = ContextRunner.limited()
            .withBean(RecordingBackend.class, () -> backend)
            .withBean(Calls.class)
            .withPropertyValues(
                    "rate-limit.backend=recording",
                    "rate-limit.limits.calls.algorithm=adaptive",
                    "rate-limit.limits.calls.max-concurrent=5",
                    "rate-limit.limits.quota.rate=1/h",
                    "rate-limit.limits.full.algorithm=concurrency",
                    "rate-limit.limits.full.max-concurrent=1");

    static class Calls {

        @RateLimited("calls")
        public String blocking(Callable<String> body) throws Exception {
            return body.call();
        }

        @RateLimited("calls")
        public CompletableFuture<String> future(CompletableFuture<String> future) {
            return future;
        }

        @RateLimited("calls")
        public Mono<String> mono(Mono<String> mono) {
            return mono;
        }

        @RateLimited("calls")
        public Flux<String> flux(Flux<String> flux) {
            return flux;
        }
    }

    private void run(BiConsumer<Calls, TestLimits> test) {
        runner.run(context -> test.accept(context.getBean(Calls.class), TestLimits.of(context)));
    }

    private static String throwing(Exception error) throws Exception {
        throw error;
    }

    private static void failing(Callable<?> call) {
        assertThatThrownBy(call::call).isInstanceOf(Throwable.class);
    }

    @Test
    void ofMethodsThatBlock() {
        run((calls, limits) -> {
            assertThat(answer(() -> calls.blocking(() -> "done"))).isEqualTo("done");
            failing(() -> calls.blocking(() -> throwing(new IllegalStateException())));
            failing(() -> calls.blocking(() -> throwing(new TimeoutException())));
            failing(() -> calls.blocking(() -> throwing(new InterruptedException())));
            failing(() -> calls.blocking(
                    () -> limits.execute("quota", null, () -> "one") + limits.execute("quota", null, () -> "two")));
            failing(() -> calls.blocking(
                    () -> limits.execute("full", null, () -> limits.execute("full", null, () -> "none"))));
        });
        // Limits of the application that reject are no overload.
        assertThat(backend.ends)
                .containsExactly("ANSWERED", "FAILED", "OVERLOADED", "CANCELLED", "FAILED", "FAILED", "FAILED");
    }

    private static <T> T answer(Callable<T> call) {
        try {
            return call.call();
        } catch (Exception ex) {
            throw new IllegalStateException(ex);
        }
    }

    @Test
    void ofFutures() {
        run((calls, limits) -> {
            calls.future(CompletableFuture.completedFuture("done")).join();
            calls.future(CompletableFuture.failedFuture(new IllegalStateException()));
            calls.future(CompletableFuture.failedFuture(new TimeoutException()));
            CompletableFuture<String> never = new CompletableFuture<>();
            calls.future(never).cancel(true);
            assertThat(never).isCancelled();
            CompletableFuture<String> slow = new CompletableFuture<>();
            calls.future(slow).completeExceptionally(new TimeoutException());
            failing(() -> calls.future(null).join());
        });
        assertThat(backend.ends).startsWith("ANSWERED", "FAILED", "OVERLOADED", "CANCELLED", "OVERLOADED");
    }

    @Test
    void ofReactiveTypes() {
        run((calls, limits) -> {
            calls.mono(Mono.just("done")).block();
            calls.mono(Mono.empty()).block();
            failing(() -> calls.mono(Mono.error(new IllegalStateException())).block());
            failing(() -> calls.mono(Mono.error(new TimeoutException())).block());
            Disposable waiting = calls.mono(Mono.never()).subscribe();
            waiting.dispose();
            assertThat(backend.ends).containsExactly("ANSWERED", "ANSWERED", "FAILED", "OVERLOADED", "CANCELLED");
            backend.ends.clear();
            calls.flux(Flux.just("one", "two")).blockLast();
            failing(() -> calls.flux(Flux.error(new IllegalStateException())).blockLast());
            failing(() -> calls.flux(Flux.error(new TimeoutException())).blockLast());
            calls.flux(Flux.never()).subscribe().dispose();
            calls.flux(Flux.just("one", "two")).blockFirst();
        });
        assertThat(backend.ends).containsExactly("ANSWERED", "FAILED", "OVERLOADED", "CANCELLED", "CANCELLED");
    }

    @Test
    void ofCodeWithoutAnnotations() {
        run((calls, limits) -> {
            limits.execute("calls", null, () -> "done");
            failing(() -> limits.execute("calls", null, () -> {
                throw new IllegalStateException(new TimeoutException());
            }));
            limits.executeAsync("calls", null, () -> CompletableFuture.failedFuture(new TimeoutException()));
            try (ReservedPermits reserved = limits.reserve("calls", null, 1)) {
                assertThat(reserved).isNotNull();
            }
            limits.reserve("calls", null, 1).end(new TimeoutException());
            limits.reserve("calls", null, 1).end(null);
            limits.reserve("calls", null, 1).cancel();
        });
        assertThat(backend.ends)
                .containsExactly(
                        "ANSWERED", "OVERLOADED", "OVERLOADED", "ANSWERED", "OVERLOADED", "ANSWERED", "not made");
    }

    @Test
    void aKeyWouldMakeALimitOfItsOwnForEachCaller() {
        run((calls, limits) -> assertThatThrownBy(() -> limits.execute("calls", "ann", () -> "done"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("rate limit 'calls' is ADAPTIVE")
                .hasMessageContaining("use null as its key"));
        assertThat(backend.ends).isEmpty();
    }

    @Test
    void aCallOverItIsRefusedWithoutATimeToRetry() {
        runner.withPropertyValues("rate-limit.limits.calls.max-concurrent=1").run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.execute("calls", null, () -> {
                assertThatThrownBy(() -> limits.execute("calls", null, () -> "done"))
                        .isInstanceOfSatisfying(
                                RateLimitExceededException.class,
                                refusal -> assertThat(refusal.decision().retryAfter())
                                        .isNull());
                return "done";
            });
            assertThat(limits.limit("calls").limit().algorithm()).isEqualTo(Algorithm.ADAPTIVE);
        });
    }
}
