package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitCharge;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.TestLimits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.i18n.LocaleContextHolder;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Permits that are taken by hand and may be given back. */
final class ReservedPermitsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final AnnotationConfigApplicationContext context = ContextRunner.start(
            ticker,
            new Class<?>[] {Settled.class},
            "rate-limit.limits.bucket.rate=3/h",
            "rate-limit.limits.log.rate=3/h",
            "rate-limit.limits.log.algorithm=sliding-log",
            "rate-limit.limits.window.rate=3/h",
            "rate-limit.limits.window.algorithm=fixed-window",
            "rate-limit.limits.queue.rate=1/s",
            "rate-limit.limits.queue.policy=wait",
            "rate-limit.limits.queue.max-wait=5s",
            "rate-limit.limits.flight.algorithm=concurrency",
            "rate-limit.limits.flight.max-concurrent=1",
            "rate-limit.limits.turns.algorithm=concurrency",
            "rate-limit.limits.turns.max-concurrent=1",
            "rate-limit.limits.turns.policy=wait",
            "rate-limit.limits.turns.max-wait=5s",
            "rate-limit.limits.watched.rate=3/h",
            "rate-limit.limits.watched.policy=shadow",
            "rate-limit.limits.watched-flight.algorithm=concurrency",
            "rate-limit.limits.watched-flight.max-concurrent=1",
            "rate-limit.limits.watched-flight.policy=shadow");
    private final TestLimits limits = TestLimits.of(context);
    private final Settled observer = context.getBean(Settled.class);

    static final class Settled implements DecisionObserver {

        private final List<Long> settled = new CopyOnWriteArrayList<>();

        @Override
        public void onDecision(RateLimitDecision decision) {}

        @Override
        public void onCharge(RateLimitCharge charge) {
            settled.add(charge.charged());
        }
    }

    @AfterEach
    void stop() {
        context.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"bucket", "log", "window"})
    void whatIsCancelledIsThereAgainAndWhatIsClosedStaysSpent(String limit) {
        try (ReservedPermits cancelled = limits.reserve(limit, "ann", 2)) {
            assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(1);
            cancelled.cancel();
            cancelled.cancel();
        }
        assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(3);

        ReservedPermits closed = limits.reserve(limit, "ann", 2);
        closed.close();
        closed.cancel();

        assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(1);
        assertThatThrownBy(() -> limits.reserve(limit, "ann", 2)).isInstanceOf(RateLimitExceededException.class);
        assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(1);
        assertThat(limits.peek(limit, "bob").remaining()).isEqualTo(3);
    }

    @ParameterizedTest
    @ValueSource(strings = {"bucket", "log", "window"})
    void whatIsSettledReplacesWhatWasReservedAndTheFirstOfSettleAndCancelCounts(String limit) {
        ReservedPermits less = limits.reserve(limit, "ann", 2);
        less.settle(1);
        less.settle(0);
        less.close();
        less.cancel();
        assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(2);

        ReservedPermits more = limits.reserve(limit, "bob", 1);
        more.settle(5);
        more.cancel();
        assertThat(limits.peek(limit, "bob").remaining()).isZero();
        assertThatThrownBy(() -> limits.reserve(limit, "bob", 1)).isInstanceOf(RateLimitExceededException.class);

        ReservedPermits cancelled = limits.reserve(limit, "cid", 2);
        cancelled.cancel();
        cancelled.settle(3);
        cancelled.close();
        assertThat(limits.peek(limit, "cid").remaining()).isEqualTo(3);

        ReservedPermits closed = limits.reserve(limit, "dan", 2);
        closed.close();
        closed.settle(0);
        assertThat(limits.peek(limit, "dan").remaining()).isEqualTo(1);

        limits.reserve(limit, "eve", 2);
        assertThat(limits.peek(limit, "eve").remaining()).isEqualTo(1);
    }

    @Test
    void onlyOneOfManyThatSettleOrCancelAtOnceIsCounted() throws Exception {
        for (int round = 0; round < 200; round++) {
            limits.reset("bucket", null);
            observer.settled.clear();
            ReservedPermits permits = limits.reserve("bucket", null, 2);
            CyclicBarrier gate = new CyclicBarrier(2);
            Thread other = new Thread(() -> {
                pass(gate);
                permits.cancel();
            });
            other.start();
            pass(gate);
            permits.settle(1);
            other.join();
            assertThat(limits.peek("bucket", null).remaining()).isEqualTo(3 - observer.settled.size());
        }
    }

    private static void pass(CyclicBarrier gate) {
        try {
            gate.await();
        } catch (Exception ex) {
            throw new IllegalStateException(ex);
        }
    }

    @Test
    void aNegativeChargeIsAnErrorAndTheReservationStaysOpen() {
        ReservedPermits permits = limits.reserve("bucket", null, 2);
        assertThatThrownBy(() -> permits.settle(-1)).isInstanceOf(IllegalArgumentException.class);
        permits.settle(0);
        assertThat(limits.peek("bucket", null).remaining()).isEqualTo(3);
    }

    @Test
    void anEnormousChargeOverflowsNothing() {
        limits.reserve("bucket", null, 1).settle(Long.MAX_VALUE);
        ticker.advance(Duration.ofDays(365));
        assertThat(limits.tryAcquire("bucket", null)).isFalse();
        assertThat(limits.peek("bucket", null).remaining()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"flight", "watched-flight"})
    void aCallInFlightHasNothingToSettle(String limit) {
        try (ReservedPermits place = limits.reserve(limit, null, 1)) {
            assertThatThrownBy(() -> place.settle(1))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("'" + limit + "'");
            assertThat(limits.peek(limit, null).remaining()).isZero();
        }
        assertThat(limits.peek(limit, null).remaining()).isEqualTo(1);
    }

    @Test
    void aCallInFlightThatHasNothingToSettleCanBeCancelled() {
        ReservedPermits place = limits.reserve("flight", null, 1);
        assertThatThrownBy(() -> place.settle(1)).isInstanceOf(UnsupportedOperationException.class);
        place.cancel();
        assertThat(limits.peek("flight", null).remaining()).isEqualTo(1);
    }

    @Test
    void aWatchedLimitIsSettledToo() {
        limits.reserve("watched", null, 3).settle(1);
        assertThat(limits.peek("watched", null).remaining()).isEqualTo(2);
        limits.reserve("watched", null, 3).settle(9);
        assertThat(limits.peek("watched", null).remaining()).isEqualTo(2);
    }

    @Test
    void aReactiveCallSettlesWhatItReserved() {
        Flux<String> call = Flux.usingWhen(
                Mono.fromFuture(() -> limits.reserveAsync("bucket", null, 3)),
                permits -> Flux.just("a", "b").doOnComplete(() -> permits.settle(2)),
                permits -> Mono.fromRunnable(permits::close));
        assertThat(call.collectList().block()).containsExactly("a", "b");
        assertThat(limits.peek("bucket", null).remaining()).isEqualTo(1);
        assertThatThrownBy(call::blockLast).isInstanceOf(RateLimitExceededException.class);
        assertThat(limits.peek("bucket", null).remaining()).isEqualTo(1);
    }

    @Test
    void anAsynchronousReservationIsSettledAsAnother() {
        assertThat(limits.reserveAsync("log", "ann", 3).thenAccept(permits -> permits.settle(1)))
                .isCompleted();
        assertThat(limits.peek("log", "ann").remaining()).isEqualTo(2);
    }

    @Test
    void aCallInFlightCountsUntilItIsClosedOrCancelled() {
        ReservedPermits first = limits.reserve("flight", null, 1);
        assertThatThrownBy(() -> limits.reserve("flight", null, 1)).isInstanceOf(RateLimitExceededException.class);
        first.close();
        ReservedPermits second = limits.reserve("flight", null, 1);
        second.cancel();
        limits.reserve("flight", null, 1).close();
    }

    @Test
    void aCancelledWaitGivesItsPermitBack() {
        limits.reserveAsync("queue", null, 1).join().close();
        CompletableFuture<ReservedPermits> waiting = limits.reserveAsync("queue", null, 1);
        assertThat(waiting).isNotDone();

        waiting.cancel(false);

        ticker.advance(Duration.ofSeconds(1));
        assertThat(limits.reserveAsync("queue", null, 1)).isCompleted();
    }

    @Test
    void whoeverEndsAWaitGivesItsPermitsBackBeforeOthersLearnOfIt() {
        List<Predicate<CompletableFuture<ReservedPermits>>> ends = List.of(
                waiting -> waiting.complete(null),
                waiting -> waiting.completeExceptionally(new TimeoutException()),
                waiting -> waiting.cancel(false));
        for (Predicate<CompletableFuture<ReservedPermits>> end : ends) {
            ReservedPermits first = limits.reserve("turns", null, 1);
            CompletableFuture<ReservedPermits> waiting = limits.reserveAsync("turns", null, 1);
            CompletableFuture<Integer> seen =
                    waiting.handle((permits, failure) -> limits.limit("turns").waiting());
            assertThat(limits.limit("turns").waiting()).isEqualTo(1);
            assertThat(end.test(waiting)).isTrue();
            assertThat(seen).isCompletedWithValue(0);
            first.close();
            assertThat(limits.peek("turns", null).remaining()).isEqualTo(1);
        }
    }

    /** Its end passes none of the methods that give back at once. */
    @Test
    void aWaitThatIsCompletedAsynchronouslyGivesItsPermitsBackWhenItsTurnComes() {
        ReservedPermits first = limits.reserve("turns", null, 1);
        assertThat(limits.reserveAsync("turns", null, 1).completeAsync(() -> null, Runnable::run))
                .isCompletedWithValue(null);
        first.close();
        Awaitility.await().until(() -> limits.peek("turns", null).remaining() == 1);
    }

    @Test
    @Timeout(60)
    void aCallbackThatBlocksDoesNotHoldUpTheCallThatEnds() {
        ReservedPermits first = limits.reserve("turns", null, 1);
        CountDownLatch ended = new CountDownLatch(1);
        CompletableFuture<String> later = limits.reserveAsync("turns", null, 1).thenApply(permits -> {
            await(ended);
            permits.close();
            return Thread.currentThread().getName();
        });

        first.close();
        ended.countDown();

        assertThat(later.join()).isEqualTo("rate-limit-callbacks");
        assertThat(limits.peek("turns", null).remaining()).isEqualTo(1);
    }

    @Test
    @Timeout(60)
    void aReservationThatWaitedGoesOnWithTheContextsOfItsCaller() {
        ReservedPermits first = limits.reserve("turns", null, 1);
        LocaleContextHolder.setLocale(Locale.CHINESE);
        CompletableFuture<Locale> later;
        try {
            later = limits.reserveAsync("turns", null, 1).thenApply(permits -> LocaleContextHolder.getLocale());
        } finally {
            LocaleContextHolder.resetLocaleContext();
        }

        first.close();

        assertThat(later.join()).isEqualTo(Locale.CHINESE);
    }

    @Test
    @Timeout(60)
    void aReservationThatWaitedGoesOnOnAThreadThatMustNotBlockIfThatOfItsCallerMustNot() {
        ReservedPermits first = limits.reserve("turns", null, 1);
        CompletableFuture<Boolean> later = Mono.fromCallable(
                        () -> limits.reserveAsync("turns", null, 1).thenApply(permits -> EventLoops.isCurrentThread()))
                .subscribeOn(Schedulers.parallel())
                .block();

        first.close();

        assertThat(later.join()).isTrue();
    }

    @Test
    void aReservationThatNoThreadCanGoOnWithGivesItsPermitBack() {
        CompletableFuture<Admission> entered = new CompletableFuture<>();
        CompletableFuture<ReservedPermits> reserved = AdmittedPermits.of(entered, task -> {
            throw new RejectedExecutionException("stopped");
        });

        entered.complete(admission());

        assertThat(limits.peek("turns", null).remaining()).isEqualTo(1);
        assertThatThrownBy(reserved::join).hasCauseInstanceOf(RejectedExecutionException.class);
    }

    @Test
    void aReservationThatIsCancelledBeforeItsThreadHasBegunGivesItsPermitBackAtOnce() {
        List<Runnable> tasks = new ArrayList<>();
        CompletableFuture<Admission> entered = new CompletableFuture<>();
        CompletableFuture<ReservedPermits> reserved = AdmittedPermits.of(entered, tasks::add);
        entered.complete(admission());

        reserved.cancel(false);

        assertThat(tasks).hasSize(1);
        assertThat(limits.peek("turns", null).remaining()).isEqualTo(1);
        tasks.forEach(Runnable::run);
        assertThat(limits.peek("turns", null).remaining()).isEqualTo(1);
    }

    private Admission admission() {
        LimitRequest request = LimitRequest.of(limits.configured("turns"), null, 1, null);
        return context.getBean(LimitEnforcer.class).reserve(new LimitRequest[] {request}, null);
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException ex) {
            throw new IllegalStateException(ex);
        }
    }

    @Test
    void anAsynchronousRefusalIsAFailedFuture() {
        limits.reserveAsync("log", "ann", 3).join().close();
        assertThat(limits.reserveAsync("log", "ann", 1))
                .isCompletedExceptionally()
                .failsWithin(Duration.ZERO)
                .withThrowableThat()
                .withCauseInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void negativePermitsAreAnErrorAndChangeNothing() {
        assertThatThrownBy(() -> limits.reserve("log", "ann", -1)).isInstanceOf(IllegalArgumentException.class);
        assertThat(limits.peek("log", "ann").remaining()).isEqualTo(3);
    }

    @Test
    void everythingGoesWhenNothingIsLimited() {
        ContextRunner.limited().withPropertyValues("rate-limit.enabled=false").run(off -> {
            TestLimits none = TestLimits.of(off);
            none.reserve("unknown", null, 1).close();
            none.reserveAsync("unknown", null, 1).join().cancel();
        });
    }
}
