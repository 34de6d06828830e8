package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.expression.CallResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** What holds for a limited method of any kind; a subclass says how a method of its kind is called. */
@ExtendWith(CapturedLog.Capture.class)
abstract class CallFacts {

    final ManualTicker ticker = new ManualTicker();
    AnnotationConfigApplicationContext context;
    Journal journal;

    /**
     * The service: its methods {@code rejecting}, {@code waiting}, {@code falling}, {@code failing}, {@code both}, {@code
     * charged} and {@code inFlight} take a string and return a string in the way of their kind.
     */
    abstract Class<?> service();

    /** Calls a method; cancelling the future cancels the call. */
    abstract CompletableFuture<String> call(String method, String id);

    /** Sees to it that a call has come so far that it waits, or has ended. */
    void settle(CompletableFuture<String> call) {}

    /** What a charge sees of a call that returned {@code body a}. */
    CallResult returned() {
        return new CallResult("body a", null, 1);
    }

    /** What a charge sees as the error of a cancelled call. */
    Class<? extends Throwable> cancellation() {
        return CancellationException.class;
    }

    @BeforeEach
    void start() {
        context = ContextRunner.start(
                ticker,
                new Class<?>[] {Journal.class, service()},
                "rate-limit.limits.rejecting.rate=1/s",
                "rate-limit.limits.waiting.rate=1/s",
                "rate-limit.limits.waiting.policy=wait",
                "rate-limit.limits.waiting.max-wait=3s",
                "rate-limit.limits.falling.rate=1/s",
                "rate-limit.limits.failing.rate=10/s",
                "rate-limit.limits.wide.rate=10/s",
                "rate-limit.limits.narrow.rate=1/s",
                "rate-limit.limits.charged.rate=100/h",
                "rate-limit.limits.watched.rate=100/h",
                "rate-limit.limits.watched.policy=shadow",
                "rate-limit.limits.flight.algorithm=concurrency",
                "rate-limit.limits.flight.max-concurrent=1");
        journal = context.getBean(Journal.class);
    }

    @AfterEach
    void stop() {
        context.close();
    }

    static String result(CompletableFuture<String> call) {
        return call.orTimeout(20, TimeUnit.SECONDS).join();
    }

    static void assertRefused(CompletableFuture<String> call, String limit) {
        assertThatThrownBy(() -> result(call))
                .isInstanceOf(CompletionException.class)
                .cause()
                .isInstanceOfSatisfying(
                        RateLimitExceededException.class,
                        refusal -> assertThat(refusal.limit()).isEqualTo(limit));
    }

    TestLimits limits() {
        return TestLimits.of(context);
    }

    @Test
    void callWithinItsLimitIsAdmitted() {
        assertThat(result(call("rejecting", "a"))).isEqualTo("body a");
    }

    @Test
    void callOverItsLimitIsRefusedAndItsBodyIsNotRun() {
        result(call("rejecting", "a"));
        assertRefused(call("rejecting", "b"), "rejecting");
        assertThat(journal.bodies).containsExactly("a");
    }

    @Test
    void everyCallCountsOnce() {
        result(call("failing", "a"));
        assertThat(limits().peek("failing", null).remaining()).isEqualTo(9);
    }

    @Test
    void refusedCallIsAdmittedAfterItsRetryAfter() {
        result(call("rejecting", "a"));
        assertRefused(call("rejecting", "b"), "rejecting");
        ticker.advance(Duration.ofSeconds(1));
        assertThat(result(call("rejecting", "c"))).isEqualTo("body c");
    }

    @Test
    void callWaitsForItsTurn() {
        result(call("waiting", "a"));
        CompletableFuture<String> second = call("waiting", "b");
        settle(second);
        assertThat(ticker.sleeping()).isEqualTo(1);
        assertThat(second).isNotDone();
        assertThat(journal.bodies).containsExactly("a");
        ticker.advance(Duration.ofSeconds(1));
        assertThat(result(second)).isEqualTo("body b");
    }

    @Test
    void callThatCouldNotGoInTimeIsRefusedWithoutWaiting() {
        result(call("waiting", "a"));
        for (String id : new String[] {"b", "c", "d"}) {
            settle(call("waiting", id));
        }
        assertRefused(call("waiting", "e"), "waiting");
        assertThat(ticker.sleeping()).isEqualTo(3);
        ticker.advance(Duration.ofSeconds(3));
    }

    @Test
    void cancelledWaitGivesItsPermitBack() {
        result(call("waiting", "a"));
        CompletableFuture<String> cancelled = call("waiting", "b");
        settle(cancelled);
        cancelled.cancel(true);
        assertThat(ticker.sleeping()).isZero();
        CompletableFuture<String> next = call("waiting", "c");
        settle(next);
        ticker.advance(Duration.ofSeconds(1));
        assertThat(result(next)).isEqualTo("body c");
        assertThat(journal.bodies).containsExactly("a", "c");
        assertThat(limits().configured("waiting").limiter().waiting()).isZero();
    }

    @Test
    void fallbackIsCalledInsteadOfARefusedCall() {
        assertThat(result(call("falling", "a"))).isEqualTo("body a");
        assertThat(result(call("falling", "b"))).isEqualTo("instead of b: falling");
        assertThat(journal.bodies).containsExactly("a");
    }

    @Test
    void failureOfTheBodyReachesTheCallerWithoutAFallback() {
        assertThatThrownBy(() -> result(call("failing", "bad")))
                .isInstanceOf(CompletionException.class)
                .cause()
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("bad");
    }

    @Test
    void refusalByOneOfTwoLimitsChargesNeither() {
        result(call("both", "a"));
        assertRefused(call("both", "b"), "narrow");
        assertThat(limits().peek("wide", null).remaining()).isEqualTo(9);
        assertThat(journal.bodies).containsExactly("a");
    }

    @Test
    void callIsInFlightUntilItsResultIsThere() {
        CompletableFuture<String> first = call("inFlight", "a");
        settle(first);
        assertRefused(call("inFlight", "b"), "flight");
        journal.flight.complete("landed");
        assertThat(result(first)).isEqualTo("landed");
        assertThat(result(call("inFlight", "c"))).isEqualTo("landed");
    }

    @Test
    void failedCallIsNoLongerInFlight() {
        CompletableFuture<String> first = call("inFlight", "a");
        settle(first);
        journal.flight.completeExceptionally(new IllegalStateException("crashed"));
        assertThatThrownBy(() -> result(first)).hasRootCauseMessage("crashed");
        journal.flight = CompletableFuture.completedFuture("landed");
        assertThat(result(call("inFlight", "b"))).isEqualTo("landed");
    }

    @Test
    void cancelledCallIsNoLongerInFlight() {
        CompletableFuture<String> first = call("inFlight", "a");
        settle(first);
        first.cancel(true);
        journal.flight = CompletableFuture.completedFuture("landed");
        assertThat(result(call("inFlight", "b"))).isEqualTo("landed");
    }

    private long remaining(String limit) {
        return limits().peek(limit, null).remaining();
    }

    @Test
    void callThatCostLessGivesBackTheRestAndEachLimitHasAChargeOfItsOwn() {
        journal.cost = result -> 2.1;
        assertThat(result(call("charged", "a"))).isEqualTo("body a");
        assertThat(journal.ended).containsExactly(returned());
        assertThat(remaining("charged")).isEqualTo(97);
        assertThat(remaining("watched")).isEqualTo(100 - returned().count() - 1);
        assertThat(remaining("wide")).isEqualTo(9);
    }

    @Test
    void callThatCostMoreIsChargedIntoDebtAndTheFallbackOfTheNextIsNotCharged() {
        journal.cost = result -> 150L;
        result(call("charged", "a"));
        assertThat(limits().peek("charged", null).retryAfter()).isEqualTo(Duration.ofSeconds(51 * 36));
        assertThat(result(call("charged", "b"))).isEqualTo("instead of b: charged");
        assertThat(journal.ended).hasSize(1);
        assertThat(remaining("watched")).isEqualTo(100 - returned().count() - 1);
        ticker.advance(Duration.ofMinutes(36));
        journal.cost = result -> 0;
        assertThat(result(call("charged", "c"))).isEqualTo("body c");
        assertThat(remaining("charged")).isEqualTo(10);
    }

    @Test
    void callThatFailsIsChargedByItsError() {
        journal.cost = result -> result.error() == null ? 10 : 1;
        assertThatThrownBy(() -> result(call("charged", "bad"))).hasRootCauseMessage("bad");
        assertThat(journal.ended).singleElement().satisfies(end -> {
            assertThat(end.error()).isInstanceOf(IllegalStateException.class).hasMessage("bad");
            assertThat(end.value()).isNull();
            assertThat(end.count()).isZero();
        });
        assertThat(remaining("charged")).isEqualTo(99);
        assertThat(remaining("watched")).isEqualTo(99);
    }

    @Test
    void cancelledCallIsChargedByItsCancellation() {
        journal.cost = result -> 4;
        CompletableFuture<String> call = call("charged", "fly");
        settle(call);
        assertThat(remaining("charged")).isEqualTo(90);
        call.cancel(true);
        assertThat(journal.ended).singleElement().satisfies(end -> {
            assertThat(end.error()).isInstanceOf(cancellation());
            assertThat(end.count()).isZero();
            assertThat(end.cancelled()).isTrue();
        });
        assertThat(remaining("charged")).isEqualTo(96);
        assertThat(remaining("watched")).as("what it reserved").isEqualTo(90);
    }

    @Test
    void chargeThatFailsFailsNoCallIsLoggedOnceAMinuteAndLeavesTheReservation(CapturedLog output) {
        List<Function<CallResult, @Nullable Object>> failing = List.of(
                result -> null,
                result -> Double.NaN,
                result -> -1,
                result -> "7",
                result -> 2e15,
                result -> {
                    throw new IllegalStateException("no usage");
                },
                result -> {
                    throw new AssertionError("no usage at all");
                });
        List<String> results = new ArrayList<>();
        for (Function<CallResult, @Nullable Object> cost : failing) {
            journal.cost = cost;
            results.add(result(call("charged", "a")));
        }
        assertThat(results).hasSize(failing.size()).containsOnly("body a");
        assertThat(remaining("charged")).isEqualTo(100 - 10 * failing.size());
        assertThat(output.toString().split("the cost of a completed call is unknown", -1))
                .hasSize(2);
        assertThat(output)
                .contains("Rate limit 'charged' (")
                .contains("charge of rate limit 'charged' \"" + Journal.CHARGE
                        + "\" must be a number from 0 to 10^15; it is null");
        ticker.advance(Duration.ofMinutes(1));
        result(call("charged", "a"));
        assertThat(output.toString().split("the cost of a completed call is unknown", -1))
                .hasSize(3);
    }
}
