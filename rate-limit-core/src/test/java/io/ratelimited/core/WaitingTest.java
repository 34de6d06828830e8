package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Callers who sleep until their permits are due, and those who stop waiting. */
class WaitingTest {

    private static final long SECOND = 1_000_000_000L;
    private static final long HOUR = 3_600 * SECOND;

    private final ManualTicker ticker = new ManualTicker();

    private static Limit.Builder onePerSecond() {
        return Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1/s").burst(1);
    }

    private InMemoryRateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), ticker, 10);
    }

    @Test
    void sleepersWakeInOrderOneAtATime() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond());
        limiter.tryAcquire("key", 1);
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        List<FutureTask<Integer>> sleepers = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            int sleeper = i;
            sleepers.add(Threads.start(() -> {
                limiter.acquire("key", 1, HOUR);
                order.add(sleeper);
                return sleeper;
            }));
            Threads.until(() -> ticker.sleeping() == sleeper + 1);
        }
        assertThat(limiter.waiting()).isEqualTo(5);
        for (int i = 0; i < 5; i++) {
            ticker.advanceNanos(SECOND - 1);
            assertThat(order).hasSize(i);
            ticker.advanceNanos(1);
            Threads.get(sleepers.get(i));
        }
        assertThat(order).containsExactly(0, 1, 2, 3, 4);
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void asynchronousCallersGoAtTheVeryTimeTheyWereTold() {
        InMemoryRateLimiter limiter = limiter(onePerSecond());
        limiter.tryAcquire(null, 1);
        List<Long> times = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            limiter.reserve(null, 1, HOUR).awaitAsync().thenRun(() -> times.add(ticker.nanos()));
        }
        ticker.advance(Duration.ofMinutes(1));
        assertThat(times).containsExactly(SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND);
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void aCallThatMayGoAtOnceDoesNotSleep() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond().maxWaiting(0));
        Reservation reservation = limiter.acquire(null, 1, HOUR);
        assertThat(reservation.awaitAsync()).isCompletedWithValue(true);
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void aRefusedCallDoesNotSleep() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond());
        limiter.tryAcquire(null, 1);
        Reservation refused = limiter.reserve(null, 1, SECOND - 1);
        assertThat(refused.await()).isFalse();
        assertThat(refused.awaitAsync()).isCompletedWithValue(false);
        assertThatThrownBy(() -> limiter.acquire(null, 1, SECOND - 1))
                .isInstanceOfSatisfying(
                        RateLimitExceededException.class,
                        ex -> assertThat(ex.decision().retryAfter()).isEqualTo(Duration.ofNanos(1)));
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void anInterruptedSleeperGivesItsPermitsBackOnce() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond().burst(3));
        limiter.tryAcquire(null, 3);
        Reservation reservation = limiter.reserve(null, 2, HOUR);
        Thread[] thread = new Thread[1];
        FutureTask<Boolean> sleeper = Threads.start(() -> {
            thread[0] = Thread.currentThread();
            return reservation.await();
        });
        Threads.until(() -> ticker.sleeping() == 1);
        assertThat(limiter.reserve(null, 1, 0).decision().retryAfter()).isEqualTo(Duration.ofSeconds(3));
        thread[0].interrupt();
        assertThatThrownBy(() -> Threads.get(sleeper)).isInstanceOf(InterruptedException.class);
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofSeconds(1));
        reservation.cancel();
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(limiter.waiting()).isZero();
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void aThreadThatComesInterruptedDoesNotSleep() {
        InMemoryRateLimiter limiter = limiter(onePerSecond());
        limiter.tryAcquire(null, 1);
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> limiter.acquire(null, 1, HOUR)).isInstanceOf(InterruptedException.class);
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofSeconds(1));
    }

    @Test
    void onlyWhatNobodyReservedBehindIsGivenBack() {
        InMemoryRateLimiter limiter = limiter(onePerSecond().burst(3));
        limiter.tryAcquire(null, 3);
        CompletableFuture<Boolean> first = limiter.reserve(null, 3, HOUR).awaitAsync();
        Reservation second = limiter.reserve(null, 1, HOUR);
        first.cancel(false);
        assertThat(second.waitNanos()).isEqualTo(4 * SECOND);
        assertThat(limiter.reserve(null, 1, HOUR).waitNanos()).isEqualTo(3 * SECOND);
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"},
            mode = EnumSource.Mode.EXCLUDE)
    void aCancelledFutureLeavesTheBudgetAsIfItHadNeverBeen(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("a", algorithm).rate("10/s");
        if (algorithm == Algorithm.WARM_UP) {
            limit.warmup(Duration.ofSeconds(2));
        }
        InMemoryRateLimiter limiter = limiter(limit);
        InMemoryRateLimiter twin = limiter(limit);
        for (int i = 0; i < 5; i++) {
            assertThat(limiter.reserve(null, 2, HOUR).waitNanos())
                    .isEqualTo(twin.reserve(null, 2, HOUR).waitNanos());
        }
        CompletableFuture<Boolean> waiting = limiter.reserve(null, 1, HOUR).awaitAsync();
        if (waiting.cancel(false)) {
            assertThat(waiting).isCancelled();
            assertThat(limiter.waiting()).isZero();
            assertThat(limiter.reserve(null, 1, HOUR).waitNanos())
                    .isEqualTo(twin.reserve(null, 1, HOUR).waitNanos());
        }
    }

    /** As where the system can start no more threads, and none keeps the time. */
    @Test
    void aCallerWhoseAlarmCannotBeSetFailsAndGivesEverythingBack() throws Exception {
        Error noThread = new Error("unable to create native thread");
        Ticker broken = new DelegatingTicker(ticker) {
            @Override
            public Runnable schedule(long deadline, Runnable task) {
                throw noThread;
            }
        };
        InMemoryRateLimiter timed = new InMemoryRateLimiter(onePerSecond().build(), broken, 10);
        timed.tryAcquire(null, 1);
        assertThat(timed.reserve(null, 1, HOUR).awaitAsync())
                .failsWithin(Duration.ZERO)
                .withThrowableThat()
                .withCause(noThread);
        assertThat(timed.waiting()).isZero();
        assertThat(timed.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofSeconds(1));

        InMemoryRateLimiter inFlight = new InMemoryRateLimiter(
                Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(1).build(), broken, 10);
        Reservation first = inFlight.acquire(null, 1, 0);
        assertThat(inFlight.reserve(null, 1, HOUR).awaitAsync())
                .failsWithin(Duration.ZERO)
                .withThrowableThat()
                .withCause(noThread);
        assertThatThrownBy(() -> inFlight.acquire(null, 1, HOUR)).isSameAs(noThread);
        assertThat(inFlight.waiting()).isZero();
        first.release();
        assertThat(inFlight.reserve(null, 1, 0).isRefused()).isFalse();
    }

    @Test
    void aCancelledReservationLetsNobodyGo() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond());
        limiter.tryAcquire(null, 1);
        Reservation cancelled = limiter.reserve(null, 1, HOUR);
        CompletableFuture<Boolean> future = cancelled.awaitAsync();
        cancelled.cancel();
        ticker.advanceNanos(SECOND);
        assertThat(future).isCompletedWithValue(false);
        assertThat(cancelled.await()).isFalse();
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
    }

    private static Stream<Arguments> endsOfAWait() {
        RuntimeException failure = new IllegalStateException();
        return Stream.of(
                end("close", (limiter, wait) -> limiter.close(), RateLimiterClosedException.class),
                end("cancel", (limiter, wait) -> wait.cancel(false), CancellationException.class),
                end("fail", (limiter, wait) -> wait.completeExceptionally(failure), IllegalStateException.class));
    }

    private static Arguments end(
            String name,
            BiConsumer<RateLimiter, CompletableFuture<Boolean>> end,
            Class<? extends RuntimeException> failure) {
        return Arguments.of(Named.of(name, end), failure);
    }

    @ParameterizedTest
    @MethodSource("endsOfAWait")
    void whenTheCallerOfAFailedWaitLearnsItItsSeatIsFreeAndItsPermitsAreRefunded(
            BiConsumer<RateLimiter, CompletableFuture<Boolean>> end, Class<? extends RuntimeException> failure) {
        InMemoryRateLimiter limiter = limiter(onePerSecond().maxWaiting(1));
        limiter.tryAcquire(null, 1);
        Decision before = limiter.peek(null, 1, 0);
        CompletableFuture<Boolean> wait = limiter.reserve(null, 1, HOUR).awaitAsync();
        CompletableFuture<List<Object>> seen = wait.handle(
                (admitted, thrown) -> List.of(thrown.getClass(), limiter.waiting(), limiter.peek(null, 1, 0)));
        end.accept(limiter, wait);
        assertThat(wait).isDone();
        assertThat(seen).isCompletedWithValue(List.of(failure, 0, before));
        assertThat(ticker.sleeping()).isZero();
        assertThat(wait.complete(true)).isFalse();
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void permitsOfAFailedWaitAreRefundedThoughItsAlarmCannotBeStopped() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                onePerSecond().maxWaiting(1).build(),
                new DelegatingTicker(ticker) {
                    @Override
                    public Runnable schedule(long deadline, Runnable task) {
                        super.schedule(deadline, task);
                        return () -> {
                            throw new IllegalStateException("not stopped");
                        };
                    }
                },
                10);
        limiter.tryAcquire(null, 1);
        Decision before = limiter.peek(null, 1, 0);
        CompletableFuture<Boolean> wait = limiter.reserve(null, 1, HOUR).awaitAsync();
        assertThat(wait.cancel(false)).isTrue();
        assertThat(limiter.waiting()).isZero();
        assertThat(limiter.peek(null, 1, 0)).isEqualTo(before);
    }

    @Test
    void aCallerThatEndsItsWaitByAnyMethodOfTheFutureLeavesItsSeat() {
        InMemoryRateLimiter limiter = limiter(onePerSecond().maxWaiting(1));
        limiter.tryAcquire(null, 1);
        Decision before = limiter.peek(null, 1, 0);
        limiter.reserve(null, 1, HOUR).awaitAsync().obtrudeException(new IllegalStateException());
        assertThat(limiter.peek(null, 1, 0)).isEqualTo(before);
        assertThat(limiter.reserve(null, 1, HOUR).awaitAsync().complete(true)).isTrue();
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofSeconds(2));
        limiter.reserve(null, 1, HOUR).awaitAsync().completeAsync(() -> false, Runnable::run);
        assertThat(limiter.waiting()).isZero();
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void aCancelRacingTheEndOfTheWaitGivesBackAtMostOnce() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond().burst(2));
        limiter.tryAcquire(null, 2);
        for (int round = 0; round < 500; round++) {
            CompletableFuture<Boolean> waiting = limiter.reserve(null, 1, HOUR).awaitAsync();
            Threads.run(2, thread -> {
                if (thread == 0) {
                    waiting.cancel(false);
                } else {
                    ticker.advanceNanos(SECOND);
                }
                return null;
            });
            assertThat(limiter.waiting()).isZero();
            // Cancelled: the second that passed brought a permit, which is taken here. Else it was the call's own.
            assertThat(limiter.tryAcquire(null, 1)).isEqualTo(waiting.isCancelled());
        }
    }

    @Test
    void callersBeyondTheMostSleepersAreRefusedAtOnceAndTakeNothing() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond().maxWaiting(4));
        limiter.tryAcquire("key", 1);
        limiter.reserve("key", 1, HOUR).awaitAsync();
        limiter.reserve("key", 1, HOUR).awaitAsync();
        assertThatThrownBy(() -> limiter.acquire("key", 1, HOUR))
                .isInstanceOfSatisfying(
                        RateLimitExceededException.class,
                        ex -> assertThat(ex.decision().retryAfter()).isEqualTo(Duration.ofSeconds(3)));
        assertThat(limiter.waiting()).isEqualTo(2);
        assertThat(limiter.peek("key", 1, HOUR))
                .isEqualTo(limiter.reserve("key", 1, HOUR).decision());
        ticker.advanceNanos(SECOND);
        assertThat(limiter.peek("key", 1, HOUR).waitTime()).isEqualTo(Duration.ofSeconds(2));
        assertThat(limiter.reserve("key", 1, HOUR).waitNanos()).isEqualTo(2 * SECOND);
    }

    @Test
    void aReservationThatFindsNoPlaceToSleepIsGivenBack() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond().maxWaiting(1));
        limiter.tryAcquire(null, 1);
        Reservation first = limiter.reserve(null, 1, HOUR);
        Reservation second = limiter.reserve(null, 1, HOUR);
        Reservation third = limiter.reserve(null, 1, HOUR);
        first.awaitAsync();
        assertThat(third.await()).isFalse();
        assertThat(third.isRefused()).isTrue();
        assertThat(third.decision().retryAfter()).isEqualTo(Duration.ofSeconds(3));
        assertThat(second.awaitAsync()).isCompletedWithValue(false);
        assertThat(limiter.reserve(null, 1, 0).decision().retryAfter()).isEqualTo(Duration.ofSeconds(2));
        assertThat(limiter.waiting()).isEqualTo(1);
    }

    @Test
    void aReservationThatFindsTheQueueFullKeepsNoPositionOfItsKey() {
        InMemoryRateLimiter limiter = limiter(onePerSecond().maxWaiting(2));
        // Each may wait while nobody does.
        List<Reservation> reservations = Stream.of("first", "second", "late")
                .map(key -> {
                    assertThat(limiter.tryAcquire(key, 1)).isTrue();
                    return limiter.reserve(key, 1, HOUR);
                })
                .toList();
        assertThat(reservations.get(0).awaitAsync()).isNotDone();
        assertThat(reservations.get(1).awaitAsync()).isNotDone();
        assertThat(reservations.get(2).awaitAsync()).isCompletedWithValue(false);
        ticker.advanceNanos(SECOND);
        assertThat(limiter.waiting()).isZero();
        assertThat(limiter.tryAcquire("late", 1)).isTrue();
        assertThat(limiter.reserve("late", 1, HOUR).awaitAsync()).isNotDone();
    }

    @Test
    void threadsNeverSleepInGreaterNumberThanAllowed() throws Exception {
        InMemoryRateLimiter limiter = limiter(Limit.of("a", Algorithm.LEAKY_BUCKET)
                .rate("1000/s")
                .burst(1_000_000)
                .maxWaiting(5));
        limiter.tryAcquire(null, 1);
        AtomicInteger asleep = new AtomicInteger();
        Threads.run(8, thread -> {
            for (int i = 0; i < 1_000; i++) {
                assertThat(limiter.waiting()).isBetween(0, 5);
                CompletableFuture<Boolean> waiting =
                        limiter.reserve(null, 1, HOUR).awaitAsync();
                if (!waiting.isDone()) {
                    assertThat(asleep.incrementAndGet()).isLessThanOrEqualTo(5);
                    asleep.decrementAndGet();
                    waiting.cancel(false);
                }
            }
            return null;
        });
        assertThat(limiter.waiting()).isZero();
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void exactlyTheAllowedNumberOfRacingCallersSleep() throws Exception {
        InMemoryRateLimiter limiter = limiter(onePerSecond().maxWaiting(50));
        limiter.tryAcquire(null, 1);
        long sleeping = Threads.sum(8, thread -> {
            long mine = 0;
            for (int i = 0; i < 50; i++) {
                mine += limiter.reserve(null, 1, HOUR).awaitAsync().isDone() ? 0 : 1;
            }
            return mine;
        });
        assertThat(sleeping).isEqualTo(50);
        assertThat(limiter.waiting()).isEqualTo(50);
        ticker.advance(Duration.ofHours(1));
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void aSpuriousWakeUpDoesNotEndTheSleep() throws Exception {
        Ticker system = Ticker.system();
        long deadline = system.nanos() + 20_000_000;
        Thread[] sleeper = new Thread[1];
        FutureTask<Long> sleep = Threads.start(() -> {
            sleeper[0] = Thread.currentThread();
            LockSupport.unpark(Thread.currentThread());
            system.sleepUntil(deadline);
            return system.nanos();
        });
        while (!sleep.isDone()) {
            if (sleeper[0] != null) {
                LockSupport.unpark(sleeper[0]);
            }
        }
        assertThat(Threads.get(sleep) - deadline).isNotNegative();
    }

    @Test
    void theSystemsSleepEndsByInterrupt() throws Exception {
        Ticker system = Ticker.system();
        Thread[] sleeper = new Thread[1];
        FutureTask<Void> sleep = Threads.start(() -> {
            sleeper[0] = Thread.currentThread();
            system.sleepUntil(system.nanos() + HOUR);
            return null;
        });
        Threads.until(() -> sleeper[0] != null);
        sleeper[0].interrupt();
        assertThatThrownBy(() -> Threads.get(sleep)).isInstanceOf(InterruptedException.class);
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> system.sleepUntil(system.nanos() - 1)).isInstanceOf(InterruptedException.class);
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
    }

    @Test
    void theSystemsAlarmRingsNotBeforeItsTimeAndNotWhenCancelled() throws Exception {
        Ticker system = Ticker.system();
        AtomicInteger cancelled = new AtomicInteger();
        Runnable cancel = system.schedule(system.nanos() + HOUR, cancelled::incrementAndGet);
        cancel.run();
        long deadline = system.nanos() + 5_000_000;
        CompletableFuture<Long> rung = new CompletableFuture<>();
        system.schedule(deadline, () -> rung.complete(system.nanos()));
        assertThat(rung.get(1, TimeUnit.MINUTES) - deadline).isNotNegative();
        CompletableFuture<String> late = new CompletableFuture<>();
        system.schedule(
                system.nanos() - 1, () -> late.complete(Thread.currentThread().getName()));
        assertThat(late.get(1, TimeUnit.MINUTES)).doesNotContain("DelayScheduler");
        assertThat(cancelled).hasValue(0);
    }

    @Test
    void onTheSystemsClockACallerGoesNotBeforeItsTime() throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("a", Algorithm.LEAKY_BUCKET).rate("1/5ms").burst(100).build());
        long begin = System.nanoTime();
        long calls = Threads.sum(4, thread -> {
            limiter.acquire(null, 1, HOUR).release();
            return limiter.reserve(null, 1, HOUR).awaitAsync().join() ? 2L : 1L;
        });
        assertThat(calls).isEqualTo(8);
        assertThat(System.nanoTime() - begin).isGreaterThanOrEqualTo(7 * 5_000_000L);
    }
}
