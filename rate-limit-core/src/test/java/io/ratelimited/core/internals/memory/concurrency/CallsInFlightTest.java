package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.DelegatingTicker;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Calls in flight: each counts from its admission to its end, once. */
@Tag("once")
@Tag("slow")
class CallsInFlightTest {

    private static final long HOUR = Duration.ofHours(1).toNanos();

    private final ManualTicker ticker = new ManualTicker();

    private static Limit limit(int maxConcurrent) {
        return Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(maxConcurrent).build();
    }

    private InMemoryRateLimiter limiter(Limit limit) {
        return new InMemoryRateLimiter(limit, ticker, 10);
    }

    private static long free(InMemoryRateLimiter limiter, @Nullable Object key) {
        return limiter.peek(key, 1, 0).remaining();
    }

    /** The end of a call has come, with all it had to wake. */
    private void assertIdle(InMemoryRateLimiter limiter, @Nullable Object key) {
        assertThat(free(limiter, key)).isEqualTo(limiter.limit().maxConcurrent());
        assertThat(limiter.waiting()).isZero();
        assertThat(limiter.keys()).isZero();
        assertThat(ticker.sleeping()).isZero();
    }

    /** Where another thread went on, it may still have to leave its place when its last call has been told. */
    private void awaitIdle(InMemoryRateLimiter limiter) {
        Threads.until(() -> limiter.keys() == 0 && limiter.waiting() == 0 && ticker.sleeping() == 0);
    }

    @Test
    void aCallThatCannotBeReleasedLeavesNothingBehind() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("kept", Algorithm.CONCURRENCY).maxConcurrent(1).build(), new ManualTicker(), 10);
        for (int key = 0; key < 100; key++) {
            String caller = "key " + key;
            assertThatThrownBy(() -> limiter.tryAcquire(caller, 1)).isInstanceOf(UnsupportedOperationException.class);
        }
        assertThat(limiter.keys()).isZero();
    }

    @Test
    void neverMoreCallsAreInFlightThanAllowed() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(3));
        AtomicLong inFlight = new AtomicLong();
        AtomicLong most = new AtomicLong();
        long admitted = Threads.sum(8, thread -> {
            long mine = 0;
            for (int i = 0; i < 2_000; i++) {
                int permits = 1 + i % 3;
                Reservation call = limiter.reserve("key", permits, 0);
                if (!call.isRefused()) {
                    most.accumulateAndGet(inFlight.addAndGet(permits), Math::max);
                    inFlight.addAndGet(-permits);
                    call.release();
                    mine++;
                }
            }
            return mine;
        });
        assertThat(admitted).isPositive();
        assertThat(most.get()).isBetween(1L, 3L);
        assertIdle(limiter, "key");
    }

    @Test
    void exactlySoManyCallsAreAdmittedWhenNoneEnds() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(5));
        long admitted = Threads.sum(8, thread -> limiter.reserve(null, 1, 0).isRefused() ? 0L : 1L);
        assertThat(admitted).isEqualTo(5);
        assertThat(free(limiter, null)).isZero();
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void aCallIsReleasedOnceHoweverOftenAndByWhomeverItIsEnded(@Nullable String key) throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(2));
        for (int round = 0; round < 200; round++) {
            Reservation other = limiter.reserve(key, 1, 0);
            Reservation call = limiter.reserve(key, 1, 0);
            Threads.run(4, thread -> {
                if (thread % 2 == 0) {
                    call.release();
                } else {
                    call.cancel();
                }
                return null;
            });
            assertThat(free(limiter, key)).isEqualTo(1);
            other.release();
            assertIdle(limiter, key);
        }
    }

    @Test
    void aCallThatFailsIsReleasedByItsFinally() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        assertThatThrownBy(() -> {
                    Reservation call = limiter.acquire("key", 1, 0);
                    try {
                        throw new IllegalStateException("body");
                    } finally {
                        call.release();
                    }
                })
                .hasMessage("body");
        assertIdle(limiter, "key");
    }

    @Test
    void aRefusedCallHoldsNothingAndItsReleaseFreesNothing() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Reservation call = limiter.reserve("key", 1, 0);
        Reservation refused = limiter.reserve("key", 1, 0);
        assertThat(refused.isRefused()).isTrue();
        refused.release();
        refused.cancel();
        assertThat(free(limiter, "key")).isZero();
        Decision decision = refused.decision();
        assertThat(decision.admitted()).isFalse();
        assertThat(decision.retryAfter()).isNull();
        assertThat(decision.never()).isFalse();
        call.release();
        assertThat(limiter.reserve("key", 2, HOUR).decision().never()).isTrue();
        assertIdle(limiter, "key");
    }

    @Test
    void tryAcquireIsNoWayToTakeACallThatMustBeReleased() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        assertThatThrownBy(() -> limiter.tryAcquire(null, 1))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("reserve");
    }

    @Test
    void waitingCallersAreServedInOrderWhateverTheirWeight() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(4));
        Reservation running = limiter.reserve("key", 4, 0);
        List<Integer> order = new ArrayList<>();
        List<CompletableFuture<Void>> callers = new ArrayList<>();
        int[] weights = {3, 1, 4, 1, 2, 1};
        for (int i = 0; i < weights.length; i++) {
            int caller = i;
            Reservation waiting = limiter.reserve("key", weights[i], HOUR);
            callers.add(waiting.awaitAsync().thenAccept(admitted -> {
                assertThat(admitted).isTrue();
                order.add(caller);
                waiting.release();
            }));
        }
        assertThat(limiter.waiting()).isEqualTo(6);
        running.release();
        for (CompletableFuture<Void> caller : callers) {
            caller.join();
        }
        assertThat(order).containsExactly(0, 1, 2, 3, 4, 5);
        assertIdle(limiter, "key");
    }

    @Test
    void aLightCallerDoesNotOvertakeAHeavyOneThatWaits() {
        InMemoryRateLimiter limiter = limiter(limit(3));
        Reservation running = limiter.reserve(null, 2, 0);
        CompletableFuture<Boolean> heavy = limiter.reserve(null, 2, HOUR).awaitAsync();
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isTrue();
        assertThat(limiter.peek(null, 1, 0).admitted()).isFalse();
        assertThat(limiter.peek(null, 1, 1).admitted()).isTrue();
        CompletableFuture<Boolean> light = limiter.reserve(null, 1, HOUR).awaitAsync();
        assertThat(heavy).isNotDone();
        assertThat(light).isNotDone();
        running.release();
        assertThat(heavy).isCompletedWithValue(true);
        assertThat(light).isCompletedWithValue(true);
    }

    @Test
    void whoeverStandsBehindAHeavyCallerThatGivesUpIsServedAtOnce() {
        InMemoryRateLimiter limiter = limiter(limit(3));
        limiter.reserve(null, 2, 0);
        CompletableFuture<Boolean> heavy = limiter.reserve(null, 2, HOUR).awaitAsync();
        CompletableFuture<Boolean> light = limiter.reserve(null, 1, HOUR).awaitAsync();
        heavy.cancel(false);
        assertThat(light).isCompletedWithValue(true);
        assertThat(free(limiter, null)).isZero();
    }

    /** Callbacks of the others may be slow. */
    @Test
    void aCallThatLeavesTheQueueIsRefusedBeforeThoseBehindItContinue() {
        InMemoryRateLimiter limiter = limiter(limit(3));
        limiter.reserve("key", 1, 0);
        Reservation late = limiter.reserve("key", 3, 1_000);
        CompletableFuture<Boolean> turn = late.awaitAsync();
        CompletableFuture<Void> next = limiter.reserve("key", 1, HOUR)
                .awaitAsync()
                .thenAccept(admitted -> {
                    assertThat(admitted).isTrue();
                    assertThat(late.isRefused()).isTrue();
                    assertThat(late.decision().admitted()).isFalse();
                    assertThat(turn).isCompletedWithValue(false);
                    assertThat(limiter.waiting()).isZero();
                });
        ticker.advanceNanos(1_000);
        assertThat(next).isCompleted();
    }

    @Test
    void aCallThatLeavesTheQueueFindsThePermitsOfThoseBehindItTaken() {
        InMemoryRateLimiter limiter = limiter(limit(3));
        limiter.reserve("key", 1, 0);
        Reservation next = limiter.reserve("key", 3, HOUR);
        CompletableFuture<Void> late = next.awaitAsync().thenAccept(admitted -> {
            assertThat(admitted).isFalse();
            assertThat(free(limiter, "key")).isOne();
            assertThat(limiter.reserve("key", 2, 0).isRefused()).isTrue();
            assertThat(limiter.reserve("key", 1, 0).isRefused()).isFalse();
        });
        CompletableFuture<Boolean> light = limiter.reserve("key", 1, HOUR).awaitAsync();
        next.cancel();
        assertThat(late).isCompleted();
        assertThat(light).isCompletedWithValue(true);
    }

    @Test
    void aWaiterIsRefusedAtItsDeadlineAndNotBefore() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Reservation running = limiter.reserve("key", 1, 0);
        Reservation late = limiter.reserve("key", 1, 1_000);
        CompletableFuture<Boolean> turn = late.awaitAsync();
        ticker.advanceNanos(999);
        assertThat(turn).isNotDone();
        assertThat(late.isRefused()).isFalse();
        ticker.advanceNanos(1);
        assertThat(turn).isCompletedWithValue(false);
        assertThat(late.isRefused()).isTrue();
        assertThat(late.decision().retryAfter()).isNull();
        running.release();
        assertIdle(limiter, "key");
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void aCallerWhoseTurnHasPassedWithoutWaitingIsRefusedWhenItAsks() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Reservation running = limiter.reserve("key", 1, 0);
        Reservation late = limiter.reserve("key", 1, 1_000);
        ticker.advanceNanos(1_000);
        assertThat(late.await()).isFalse();
        running.release();
        assertIdle(limiter, "key");
    }

    @Test
    void aCallerAdmittedBeforeItWaitsGoesAtOnce() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Reservation running = limiter.reserve("key", 1, 0);
        Reservation next = limiter.reserve("key", 1, 1_000);
        running.release();
        ticker.advanceNanos(5_000);
        assertThat(next.await()).isTrue();
        assertThat(next.awaitAsync()).isCompletedWithValue(true);
        next.release();
        assertIdle(limiter, "key");
    }

    /** The alarm of a waiter and the release that admits it meet: one of the two wins, and nothing is left behind. */
    @Test
    void aTurnThatComesAtTheDeadlineIsEitherTakenOrPassedOn() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        for (int round = 0; round < 1_000; round++) {
            Reservation running = limiter.reserve("key", 1, 0);
            Reservation waiting = limiter.reserve("key", 1, 10);
            CompletableFuture<Boolean> turn = waiting.awaitAsync();
            Threads.run(2, thread -> {
                if (thread == 0) {
                    running.release();
                } else {
                    ticker.advanceNanos(10);
                }
                return null;
            });
            if (turn.join()) {
                assertThat(free(limiter, "key")).isZero();
                waiting.release();
            }
            assertIdle(limiter, "key");
        }
    }

    @Test
    void aFutureCancelledAsItsTurnComesLeavesNoPermitBehind() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        for (int round = 0; round < 1_000; round++) {
            Reservation running = limiter.reserve("key", 1, 0);
            Reservation waiting = limiter.reserve("key", 1, HOUR);
            CompletableFuture<Boolean> turn = waiting.awaitAsync();
            Threads.run(2, thread -> {
                if (thread == 0) {
                    running.release();
                } else if (!turn.cancel(false)) {
                    waiting.release();
                }
                return null;
            });
            assertIdle(limiter, "key");
        }
    }

    @Test
    void aSleeperInterruptedAsItsTurnComesLeavesNoPermitBehind() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        AtomicInteger interrupted = new AtomicInteger();
        for (int round = 0; round < 1_000; round++) {
            Reservation running = limiter.reserve("key", 1, 0);
            Thread[] sleeper = new Thread[1];
            FutureTask<Void> waits = Threads.start(() -> {
                sleeper[0] = Thread.currentThread();
                try {
                    limiter.acquire("key", 1, HOUR).release();
                } catch (InterruptedException ex) {
                    interrupted.incrementAndGet();
                    assertThat(Thread.currentThread().isInterrupted()).isFalse();
                }
                return null;
            });
            Threads.until(() -> limiter.waiting() == 1);
            Threads.run(2, thread -> {
                if (thread == 0) {
                    running.release();
                } else {
                    sleeper[0].interrupt();
                }
                return null;
            });
            Threads.get(waits);
            assertIdle(limiter, "key");
        }
        assertThat(interrupted.get()).isPositive();
    }

    @Test
    void aCallerIsNotStrandedInTheCellOfTheLastCall() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        for (int round = 0; round < 3_000; round++) {
            Reservation running = limiter.reserve("key", 1, 0);
            List<Reservation> calls = Threads.run(2, thread -> {
                if (thread == 0) {
                    running.release();
                    return running;
                }
                return limiter.reserve("key", 1, HOUR);
            });
            assertThat(calls.get(1).awaitAsync()).isCompletedWithValue(true);
            calls.get(1).release();
            assertIdle(limiter, "key");
        }
    }

    @Test
    void manyCallersOfFewKeysAllGetTheirTurn() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(2));
        AtomicInteger[] inFlight = {new AtomicInteger(), new AtomicInteger(), new AtomicInteger()};
        Threads.run(12, thread -> {
            for (int i = 0; i < 200; i++) {
                int key = (thread + i) % 3;
                Reservation call = limiter.acquire(key, 1, HOUR);
                assertThat(inFlight[key].incrementAndGet()).isBetween(1, 2);
                inFlight[key].decrementAndGet();
                call.release();
            }
            return null;
        });
        assertIdle(limiter, 0);
    }

    @Test
    void aStuckCallNoLongerCountsWhenItsLeaseIsOver() {
        InMemoryRateLimiter limiter =
                limiter(limit(1).toBuilder().lease(Duration.ofNanos(100)).build());
        Reservation stuck = limiter.reserve("key", 1, 0);
        ticker.advanceNanos(99);
        assertThat(limiter.reserve("key", 1, 0).isRefused()).isTrue();
        assertThat(free(limiter, "key")).isZero();
        ticker.advanceNanos(1);
        Reservation next = limiter.reserve("key", 1, 0);
        assertThat(next.isRefused()).isFalse();
        stuck.release();
        assertThat(free(limiter, "key")).isZero();
        next.release();
        assertIdle(limiter, "key");
    }

    @Test
    void peekSeesThatALeaseIsOver() {
        InMemoryRateLimiter limiter =
                limiter(limit(1).toBuilder().lease(Duration.ofNanos(100)).build());
        limiter.reserve(null, 1, 0);
        ticker.advanceNanos(100);
        assertThat(limiter.peek(null, 1, 0).admitted()).isTrue();
        assertThat(free(limiter, null)).isEqualTo(1);
    }

    @Test
    void callersWhoWaitBehindStuckCallsGoWhenTheLeasesEnd() {
        InMemoryRateLimiter limiter =
                limiter(limit(1).toBuilder().lease(Duration.ofNanos(100)).build());
        limiter.reserve("key", 1, 0);
        CompletableFuture<Boolean> second = limiter.reserve("key", 1, HOUR).awaitAsync();
        CompletableFuture<Boolean> third = limiter.reserve("key", 1, HOUR).awaitAsync();
        CompletableFuture<Boolean> impatient = limiter.reserve("key", 1, 150).awaitAsync();
        ticker.advanceNanos(99);
        assertThat(second).isNotDone();
        ticker.advanceNanos(1);
        assertThat(second).isCompletedWithValue(true);
        ticker.advanceNanos(49);
        assertThat(impatient).isNotDone();
        ticker.advanceNanos(1);
        assertThat(impatient).isCompletedWithValue(false);
        assertThat(third).isNotDone();
        ticker.advanceNanos(50);
        assertThat(third).isCompletedWithValue(true);
        assertThat(ticker.sleeping()).isZero();
        ticker.advanceNanos(100);
        assertThat(free(limiter, "key")).isEqualTo(1);
        assertIdle(limiter, "key");
    }

    @Test
    void callersWhoWaitGoWhenALeaseEndsThatWasShortenedMeanwhile() {
        for (long elapsed : new long[] {30, 60}) {
            InMemoryRateLimiter limiter =
                    limiter(limit(1).toBuilder().lease(Duration.ofNanos(100)).build());
            limiter.reserve("key", 1, 0);
            CompletableFuture<Boolean> second = limiter.reserve("key", 1, HOUR).awaitAsync();
            CompletableFuture<Boolean> third = limiter.reserve("key", 1, HOUR).awaitAsync();
            ticker.advanceNanos(elapsed);
            limiter.update(limit(1).toBuilder().lease(Duration.ofNanos(50)).build());
            ticker.advanceNanos(Math.max(0, 50 - elapsed));
            assertThat(second).isCompletedWithValue(true);
            ticker.advanceNanos(49);
            assertThat(third).isNotDone();
            ticker.advanceNanos(1);
            assertThat(third).isCompletedWithValue(true);
            assertThat(ticker.sleeping()).isZero();
        }
    }

    @Test
    void callersWhoWaitedBeforeThereWereLeasesGoWhenTheFirstOneEnds() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Reservation endless = limiter.reserve("key", 1, 0);
        limiter.reserve("key", 1, HOUR).awaitAsync();
        CompletableFuture<Boolean> third = limiter.reserve("key", 1, HOUR).awaitAsync();
        limiter.update(limit(1).toBuilder().lease(Duration.ofNanos(100)).build());
        ticker.advanceNanos(70);
        endless.release();
        ticker.advanceNanos(99);
        assertThat(third).isNotDone();
        ticker.advanceNanos(1);
        assertThat(third).isCompletedWithValue(true);
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void aCallThatEndsInTimeHoldsNoLease() {
        InMemoryRateLimiter limiter =
                limiter(limit(2).toBuilder().lease(Duration.ofNanos(100)).build());
        Reservation first = limiter.reserve(null, 1, 0);
        ticker.advanceNanos(60);
        Reservation second = limiter.reserve(null, 1, 0);
        first.release();
        ticker.advanceNanos(60);
        assertThat(free(limiter, null)).isEqualTo(1);
        second.release();
        assertThat(free(limiter, null)).isEqualTo(2);
    }

    @Test
    void onlySoManyCallersQueue() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1).toBuilder().maxWaiting(5).build());
        Reservation running = limiter.reserve("key", 1, 0);
        List<CompletableFuture<Boolean>> turns = new ArrayList<>();
        List<Reservation> calls = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            calls.add(limiter.reserve("key", 1, HOUR));
            turns.add(calls.get(i).awaitAsync());
        }
        assertThat(limiter.reserve("key", 1, HOUR).isRefused()).isTrue();
        assertThat(limiter.reserve("other", 1, HOUR).isRefused()).isFalse();
        assertThat(turns).noneMatch(CompletableFuture::isDone);
        running.release();
        assertThat(turns.get(0)).isCompletedWithValue(true);
        assertThat(limiter.waiting()).isEqualTo(2);
    }

    @Test
    void aCallerWhoQueuedButFindsNoPlaceToSleepLeavesTheQueue() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1).toBuilder().maxWaiting(1).build());
        Reservation running = limiter.reserve("key", 1, 0);
        Reservation first = limiter.reserve("key", 1, HOUR);
        Reservation second = limiter.reserve("key", 1, HOUR);
        CompletableFuture<Boolean> turn = first.awaitAsync();
        assertThat(second.await()).isFalse();
        assertThat(second.isRefused()).isTrue();
        running.release();
        assertThat(turn).isCompletedWithValue(true);
        first.release();
        assertIdle(limiter, "key");
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void anUpdateWakesWhoeverMayGoNow(@Nullable String key) {
        InMemoryRateLimiter limiter = limiter(limit(1));
        limiter.reserve(key, 1, 0);
        CompletableFuture<Boolean> second = limiter.reserve(key, 1, HOUR).awaitAsync();
        CompletableFuture<Boolean> third = limiter.reserve(key, 1, HOUR).awaitAsync();
        limiter.update(limit(2));
        assertThat(second).isCompletedWithValue(true);
        assertThat(third).isNotDone();
        limiter.update(limit(1));
        assertThat(free(limiter, key)).isZero();
        limiter.update(limit(3));
        assertThat(third).isCompletedWithValue(true);
    }

    @Test
    void callersQueuedWhileTheLimitChangesAreAllServed() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Threads.run(5, thread -> {
            for (int i = 0; i < 500; i++) {
                if (thread == 0) {
                    limiter.update(limit(1 + i % 3));
                } else {
                    limiter.acquire("key" + i % 2, 1, HOUR).release();
                }
            }
            return null;
        });
        assertIdle(limiter, "key0");
        assertIdle(limiter, "key1");
    }

    /** Nobody would stop it: a call sets its alarm when it begins to wait, and stops it when the wait has ended. */
    @Test
    void aChangeSetsNoAlarmForACallThatDoesNotWaitYet() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        for (boolean cancels : new boolean[] {true, false}) {
            Reservation running = limiter.reserve("key", 1, 0);
            Reservation waiting = limiter.reserve("key", 1, HOUR);
            limiter.update(limit(1));
            assertThat(ticker.sleeping()).isZero();
            if (cancels) {
                waiting.cancel();
            } else {
                CompletableFuture<Boolean> turn = waiting.awaitAsync();
                limiter.update(limit(1));
                assertThat(ticker.sleeping()).isOne();
                running.release();
                assertThat(turn).isCompletedWithValue(true);
                waiting.release();
            }
            running.release();
            assertIdle(limiter, "key");
        }
    }

    /** A change sets an alarm for a call between the two steps in which that sets its own. */
    @Test
    void ofTwoAlarmsThatAreSetTogetherNoneIsLeft() {
        AtomicReference<Runnable> meanwhile = new AtomicReference<>(() -> {});
        Ticker interrupted = new DelegatingTicker(ticker) {
            @Override
            public Runnable schedule(long deadline, Runnable task) {
                Runnable cancel = super.schedule(deadline, task);
                meanwhile.getAndSet(() -> {}).run();
                return cancel;
            }
        };
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit(1), interrupted, 10);
        Reservation running = limiter.reserve("key", 1, 0);
        Reservation waiting = limiter.reserve("key", 1, HOUR);
        meanwhile.set(() -> limiter.update(limit(1)));
        CompletableFuture<Boolean> turn = waiting.awaitAsync();
        assertThat(ticker.sleeping()).isOne();
        running.release();
        assertThat(turn).isCompletedWithValue(true);
        waiting.release();
        assertIdle(limiter, "key");
    }

    @Test
    void callbacksOfWokenCallersRunUnderNoLock() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        limiter.reserve("key", 1, 0);
        Reservation waiting = limiter.reserve("key", 1, HOUR);
        CompletableFuture<Void> body = waiting.awaitAsync().thenAccept(admitted -> {
            try {
                Threads.get(Threads.start(() -> {
                    limiter.update(limit(3));
                    limiter.reserve("key", 1, 0).release();
                    return null;
                }));
            } catch (Exception ex) {
                throw new AssertionError(ex);
            }
            waiting.release();
        });
        limiter.update(limit(2));
        assertThat(body).isCompleted();
        assertThat(free(limiter, "key")).isEqualTo(2);
    }

    @Test
    void aLongQueueOfCallsThatEndAtOnceDoesNotOverflowTheStack() {
        InMemoryRateLimiter limiter =
                limiter(limit(1).toBuilder().maxWaiting(40_000).build());
        Reservation running = limiter.reserve("key", 1, 0);
        List<CompletableFuture<Boolean>> calls = new ArrayList<>();
        for (int i = 0; i < 20_000; i++) {
            Reservation call = limiter.reserve("key", 1, HOUR);
            calls.add(call.awaitAsync().thenApply(admitted -> {
                call.release();
                return admitted;
            }));
        }
        running.release();
        assertThat(calls).allMatch(CompletableFuture::join);
        awaitIdle(limiter);
        assertIdle(limiter, "key");
    }

    /** Deep in such a chain another thread goes on, and it must not tell a refused caller that it is admitted. */
    @Test
    void aRefusalIsToldHoweverDeepInAQueueItComes() {
        InMemoryRateLimiter limiter = limiter(limit(2));
        Reservation running = limiter.reserve("key", 2, 0);
        List<CompletableFuture<Boolean>> light = new ArrayList<>();
        List<CompletableFuture<Boolean>> heavy = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            Reservation call = limiter.reserve("key", i % 2 == 0 ? 2 : 1, HOUR);
            (i % 2 == 0 ? heavy : light).add(call.awaitAsync().thenApply(admitted -> {
                call.release();
                return admitted;
            }));
        }
        limiter.update(limit(1));
        running.release();
        assertThat(light).allMatch(CompletableFuture::join);
        assertThat(heavy).noneMatch(CompletableFuture::join);
        awaitIdle(limiter);
        assertIdle(limiter, "key");
    }

    @Test
    void resetForgetsNoCallInFlight() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Reservation keyed = limiter.reserve("key", 1, 0);
        Reservation single = limiter.reserve(null, 1, 0);
        limiter.reset("key");
        limiter.reset(null);
        assertThat(free(limiter, "key")).isZero();
        assertThat(free(limiter, null)).isZero();
        keyed.release();
        single.release();
        assertIdle(limiter, "key");
    }

    @Test
    void aCallTellsWhetherItMayHaveToWait() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Reservation running = limiter.reserve("key", 1, 0);
        Reservation waiting = limiter.reserve("key", 1, HOUR);
        assertThat(running.mayWait()).isFalse();
        assertThat(waiting.mayWait()).isTrue();
        assertThat(limiter.reserve("key", 1, 0).mayWait()).isFalse();
        InMemoryRateLimiter bucket =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1/s").build());
        assertThat(bucket.reserve(null, 1, HOUR).mayWait()).isFalse();
        assertThat(bucket.reserve(null, 1, HOUR).mayWait()).isTrue();
        assertThat(bucket.reserve(null, 1, 0).mayWait()).isFalse();
    }

    @Test
    void theKnownKeysAreThoseWithCallsInFlight() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        Reservation one = limiter.reserve("one", 1, 0);
        limiter.reserve("two", 1, 0);
        assertThat(limiter.knownKeys()).containsExactlyInAnyOrder("one", "two");
        assertThat(limiter.keys()).isEqualTo(2);
        one.release();
        assertThat(limiter.knownKeys()).containsExactly("two");
    }

    @Test
    void peekCountsTheCallsInFlightAndThePermitsItIsAskedFor() {
        InMemoryRateLimiter limiter = limiter(limit(3));
        limiter.reserve("key", 2, 0);
        assertThat(limiter.peek("key", 1, 0).admitted()).isTrue();
        assertThat(limiter.peek("key", 2, 0).admitted()).isFalse();
        assertThat(limiter.peek("key", 2, HOUR).admitted()).isTrue();
    }

    @Test
    void peekRemembersNoKey() {
        InMemoryRateLimiter limiter = limiter(limit(1));
        assertThat(limiter.peek("key", 1, 0).admitted()).isTrue();
        assertThat(limiter.peek("key", 2, HOUR).never()).isTrue();
        assertThat(limiter.keys()).isZero();
    }

    @Test
    void parkingAThreadNeverHoldsTheCell() throws Exception {
        InMemoryRateLimiter limiter = limiter(limit(1));
        Reservation running = limiter.reserve("key", 1, 0);
        Thread[] sleeper = new Thread[1];
        FutureTask<Boolean> waits = Threads.start(() -> {
            sleeper[0] = Thread.currentThread();
            return limiter.reserve("key", 1, HOUR).await();
        });
        Threads.until(() -> limiter.waiting() == 1);
        LockSupport.unpark(sleeper[0]);
        assertThat(limiter.peek("key", 1, 1).admitted()).isTrue();
        assertThat(waits.isDone()).isFalse();
        running.release();
        assertThat(Threads.get(waits)).isTrue();
    }
}
