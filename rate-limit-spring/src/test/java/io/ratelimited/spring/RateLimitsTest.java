package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** Limits by name, for code without annotations. */
final class RateLimitsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final AnnotationConfigApplicationContext context = ContextRunner.start(
            ticker,
            new Class<?>[0],
            "rate-limit.limits.search.rate=2/s",
            "rate-limit.limits.search.tier='gold'",
            "rate-limit.limits.search.tiers.gold.rate=10/s",
            "rate-limit.limits.bucket.rate=2/s",
            "rate-limit.limits.bucket.burst=5",
            "rate-limit.limits.queue.rate=1/s",
            "rate-limit.limits.queue.policy=wait",
            "rate-limit.limits.flight.algorithm=concurrency",
            "rate-limit.limits.flight.max-concurrent=1",
            "rate-limit.limits.counted.rate=2/s",
            "rate-limit.limits.counted.policy=shadow",
            "rate-limit.limits.tried.rate=2/s",
            "rate-limit.limits.tried.candidates=5/s",
            "rate-limit.limits.found.algorithm=adaptive");
    private final TestLimits limits = TestLimits.of(context);

    @AfterEach
    void stop() {
        context.close();
    }

    @Test
    void everyKeyHasABudgetOfItsOwn() {
        assertThat(limits.tryAcquire("search", "ann", 2)).isTrue();
        assertThat(limits.tryAcquire("search", "ann")).isFalse();
        assertThat(limits.tryAcquire("search", "bob")).isTrue();
        assertThat(limits.tryAcquire("search", null)).isTrue();
    }

    @Test
    void anotherAlgorithmLeavesBehindWhatHasNoMeaningForIt() {
        limits.change("bucket", LimitChange.of("algorithm", "sliding-log"));
        assertThat(limits.limit("bucket").limit()).hasToString("bucket: sliding-log, rate 2/s");
    }

    @Test
    void peekChangesNothing() {
        assertThat(limits.peek("search", "ann").remaining()).isEqualTo(2);
        assertThat(limits.peek("search", "ann").admitted()).isTrue();
        assertThat(limits.peek("search", "ann").remaining()).isEqualTo(2);
    }

    @Test
    void resetForgetsWhatAKeyHasUsed() {
        limits.tryAcquire("search", "ann", 2);
        limits.reset("search", "ann");
        assertThat(limits.peek("search", "ann").remaining()).isEqualTo(2);
    }

    @Test
    void updateKeepsWhatIsSpent() {
        limits.tryAcquire("search", null, 2);
        assertThat(limits.change("search", LimitChange.rate("4/s").burst(4)).burst())
                .isEqualTo(4);
        assertThat(limits.tryAcquire("search", null)).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(limits.peek("search", null).remaining()).isEqualTo(4);
    }

    @Test
    void invalidUpdateChangesNothing() {
        assertThatThrownBy(() -> limits.change("search", LimitChange.rate("many")))
                .isInstanceOf(InvalidRateLimitException.class);
        assertThat(limits.peek("search", null).remaining()).isEqualTo(2);
    }

    @Test
    void executeCallsWhatIsAdmittedOnly() {
        assertThat(limits.execute("search", "ann", () -> "found")).isEqualTo("found");
        limits.tryAcquire("search", "ann");
        assertThatThrownBy(() -> limits.execute("search", "ann", () -> {
                    throw new AssertionError("called");
                }))
                .isInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void executeReleasesACallThatFailed() {
        assertThatThrownBy(() -> limits.execute("flight", null, () -> {
                    throw new IllegalStateException("crashed");
                }))
                .hasMessage("crashed");
        assertThat(limits.execute("flight", null, () -> "landed")).isEqualTo("landed");
    }

    @Test
    void executeAsyncWaitsWithoutTheCaller() {
        limits.executeAsync("queue", null, () -> CompletableFuture.completedFuture("first"));
        CompletableFuture<String> second =
                limits.executeAsync("queue", null, () -> CompletableFuture.completedFuture("second"));
        assertThat(second).isNotDone();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(second.orTimeout(20, TimeUnit.SECONDS).join()).isEqualTo("second");
    }

    @Test
    void executeAsyncFailsWithTheRefusal() {
        CompletableFuture<String> first = new CompletableFuture<>();
        CompletableFuture<String> running = limits.executeAsync("flight", null, () -> first);
        assertThatThrownBy(() -> limits.executeAsync("flight", null, () -> CompletableFuture.completedFuture("never"))
                        .join())
                .hasCauseInstanceOf(RateLimitExceededException.class);
        first.complete("landed");
        assertThat(running).isCompletedWithValue("landed");
        assertThat(limits.executeAsync("flight", null, () -> CompletableFuture.completedFuture("next")))
                .isCompletedWithValue("next");
    }

    @Test
    void aCallThatReturnsAStageIsInFlightUntilItCompletes() {
        CompletableFuture<String> first = new CompletableFuture<>();
        assertThat(limits.execute("flight", null, () -> first)).isNotDone();
        assertThatThrownBy(() -> limits.execute("flight", null, () -> "too early"))
                .isInstanceOf(RateLimitExceededException.class);
        first.complete("landed");
        assertThat(limits.execute("flight", null, () -> "next")).isEqualTo("next");
    }

    @Test
    void executeAsyncTurnsAThrownExceptionIntoAFailedFuture() {
        assertThat(limits.<String>executeAsync("flight", null, () -> {
                    throw new IllegalStateException("crashed");
                }))
                .isCompletedExceptionally();
        assertThat(limits.execute("flight", null, () -> "landed")).isEqualTo("landed");
    }

    static Stream<TestCall> calls() {
        return Stream.of(
                (limits, name, key) -> limits.tryAcquire(name, key),
                (limits, name, key) -> limits.tryAcquire(name, key, 1),
                (limits, name, key) -> limits.execute(name, key, () -> "found"),
                (limits, name, key) -> limits.executeAsync(name, key, () -> CompletableFuture.completedFuture("found")),
                (limits, name, key) -> limits.reserve(name, key, 1),
                (limits, name, key) -> limits.reserveAsync(name, key, 1),
                (limits, name, key) -> limits.peek(name, key));
    }

    @ParameterizedTest
    @MethodSource("calls")
    void invalidArgumentsAreThrownByEveryMethod(TestCall call) {
        assertThatThrownBy(() -> call.make(limits, "serach", null))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("serach");
        assertThatThrownBy(() -> call.make(limits, "search", new Object()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("is not a key");
    }

    @ParameterizedTest
    @ValueSource(strings = {"search", "queue", "flight", "counted", "tried", "found"})
    void aNegativeNumberOfPermitsIsThrownByEveryMethod(String name) {
        Stream.<Consumer<RateLimits>>of(
                        calls -> calls.tryAcquire(name, null, -1),
                        calls -> calls.reserve(name, null, -1),
                        calls -> calls.reserveAsync(name, null, -1))
                .forEach(call -> assertThatThrownBy(() -> call.accept(limits))
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessage("permits must be 0 or more: -1"));
    }

    /** With or without a key, other methods than tryAcquire are the remedy: that is said first. */
    @Test
    void tryAcquireDoesNotSupportCallsInFlightWhateverTheirKey() {
        for (String name : List.of("flight", "found")) {
            for (String key : new String[] {null, "ann"}) {
                assertThatThrownBy(() -> limits.tryAcquire(name, key))
                        .isInstanceOf(UnsupportedOperationException.class)
                        .hasMessageContaining("use execute or reserve");
            }
        }
    }

    static Stream<TestCall> callsWithoutTryAcquire() {
        return calls().skip(2);
    }

    @ParameterizedTest
    @MethodSource("callsWithoutTryAcquire")
    void aKeyOfAnAdaptiveLimitIsAnInvalidArgument(TestCall call) {
        assertThatThrownBy(() -> call.make(limits, "found", "ann"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("use null as its key");
    }

    private interface TestCall {
        Object make(RateLimits limits, String name, Object key);
    }
}
