package io.ratelimited.core.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** How users test their own limits without sleeping; the guide shows these tests. */
class ManualTickerTest {

    private static final long HOUR = Duration.ofHours(1).toNanos();

    private final ManualTicker ticker = new ManualTicker();

    private InMemoryRateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), ticker, 1_000);
    }

    @Test
    void aRefusedCallerIsAdmittedWhenTimeHasPassed() {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("login", Algorithm.TOKEN_BUCKET).rate("5/m"));
        assertThat(limiter.tryAcquire("ann", 5)).isTrue();
        assertThat(limiter.tryAcquire("ann", 1)).isFalse();
        ticker.advance(Duration.ofSeconds(12));
        assertThat(limiter.tryAcquire("ann", 1)).isTrue();
    }

    @Test
    void aCallerWhoSleepsMovesTheTimeInATestOfOneThread() throws Exception {
        ticker.autoAdvance();
        InMemoryRateLimiter limiter =
                limiter(Limit.of("mail", Algorithm.LEAKY_BUCKET).rate("10/s").burst(20));
        for (int i = 0; i < 5; i++) {
            limiter.acquire(null, 1, HOUR);
        }
        assertThat(ticker.nanos()).isEqualTo(Duration.ofMillis(400).toNanos());
    }

    @Test
    void anAsynchronousCallerMovesTheTimeToo() {
        ticker.autoAdvance();
        InMemoryRateLimiter limiter =
                limiter(Limit.of("mail", Algorithm.LEAKY_BUCKET).rate("10/s").burst(20));
        for (int i = 0; i < 5; i++) {
            assertThat(limiter.reserve(null, 1, HOUR).awaitAsync()).isCompletedWithValue(true);
        }
        assertThat(ticker.elapsed()).isEqualTo(Duration.ofMillis(400));
    }

    @Test
    void callersWhoMoveTheTimeTogetherMoveItNoFurtherThanTheLastOfThemWaits() {
        ticker.autoAdvance();
        IntStream.range(0, 1_000).parallel().forEach(i -> ticker.sleepUntil(i, () -> {}));
        assertThat(ticker.elapsed()).isEqualTo(Duration.ofNanos(999));
    }

    @Test
    void aWaitForACallInFlightThatNeverEndsIsOverInRealTime() throws Exception {
        ticker.autoAdvance();
        InMemoryRateLimiter limiter =
                limiter(Limit.of("report", Algorithm.CONCURRENCY).maxConcurrent(1));
        limiter.reserve(null, 1, 0);
        assertThat(limiter.reserve(null, 1, Duration.ofMillis(10).toNanos()).await())
                .isFalse();
        assertThat(ticker.elapsed()).isEqualTo(Duration.ofMillis(10));
    }

    @Test
    void aWaitForACallInFlightEndsWithThatCallAndMovesNoTime() {
        ticker.autoAdvance();
        InMemoryRateLimiter limiter =
                limiter(Limit.of("report", Algorithm.CONCURRENCY).maxConcurrent(1));
        Reservation running = limiter.reserve(null, 1, 0);
        CompletableFuture<Boolean> turn = limiter.reserve(null, 1, HOUR).awaitAsync();
        running.release();
        assertThat(turn).isCompletedWithValue(true);
        assertThat(ticker.elapsed()).isZero();
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void autoAdvanceCanBeSwitchedOff() {
        ticker.autoAdvance().autoAdvance(false);
        ticker.sleepUntil(10, () -> {});
        assertThat(ticker.sleeping()).isOne();
        assertThat(ticker.elapsed()).isZero();
    }

    @Test
    void aRestartWakesWhoSleepsAndBeginsAtTheSameWallClock() {
        ManualTicker evening = new ManualTicker(5, Instant.parse("2026-03-01T23:59:59Z"));
        long start = evening.epochNanos();
        List<String> rung = new ArrayList<>();
        evening.schedule(30, () -> rung.add("alarm"));
        evening.sleepUntil(20, () -> {
            rung.add("sleeper");
            evening.schedule(1_000, () -> rung.add("next test"));
        });
        evening.setWallClock(Instant.EPOCH);

        evening.restart();
        assertThat(rung).containsExactly("sleeper", "alarm");
        assertThat(evening.epochNanos()).isEqualTo(start);
        assertThat(evening.nanos()).isEqualTo(30);
        assertThat(evening.elapsed()).isZero();
        evening.advanceNanos(7);
        assertThat(evening.elapsed()).isEqualTo(Duration.ofNanos(7));
    }

    @Test
    void anotherThreadSleepsUntilTheTestMovesTheTime() throws Exception {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("mail", Algorithm.LEAKY_BUCKET).rate("10/s").burst(20));
        limiter.tryAcquire(null, 1);
        CompletableFuture<Long> sleeper = CompletableFuture.supplyAsync(() -> {
            try {
                limiter.acquire(null, 1, HOUR);
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
            return ticker.nanos();
        });
        ticker.awaitSleeping(1);
        ticker.advance(Duration.ofMillis(100));
        assertThat(sleeper.join()).isEqualTo(Duration.ofMillis(100).toNanos());
    }

    @Test
    void waitingForSleepersEndsByInterrupt() {
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> ticker.awaitSleeping(1)).isInstanceOf(InterruptedException.class);
    }

    @Test
    void anAsynchronousCallerGoesWhenTheTimeHasCome() {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("mail", Algorithm.LEAKY_BUCKET).rate("10/s").burst(20));
        limiter.tryAcquire(null, 1);
        CompletableFuture<Boolean> waiting = limiter.reserve(null, 1, HOUR).awaitAsync();
        ticker.advance(Duration.ofMillis(99));
        assertThat(waiting).isNotDone();
        ticker.advance(Duration.ofMillis(1));
        assertThat(waiting).isCompletedWithValue(true);
    }

    @Test
    void aCallerWhoWaitsForACallInFlightIsRefusedWhenTheTimeHasCome() {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("report", Algorithm.CONCURRENCY).maxConcurrent(1));
        limiter.reserve(null, 1, 0);
        Reservation waiting = limiter.reserve(null, 1, Duration.ofSeconds(2).toNanos());
        CompletableFuture<Boolean> turn = waiting.awaitAsync();
        ticker.advance(Duration.ofSeconds(2));
        assertThat(turn).isCompletedWithValue(false);
    }

    @Test
    void midnightComesWhenTheWallClockSaysSo() {
        ManualTicker evening = new ManualTicker(0, Instant.parse("2026-03-01T23:59:59Z"));
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("export", Algorithm.FIXED_WINDOW).rate("10/d").build(), evening, 1_000);
        assertThat(limiter.tryAcquire(null, 10)).isTrue();
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
        evening.advance(Duration.ofSeconds(1));
        assertThat(evening.epochNanos())
                .isEqualTo(Instant.parse("2026-03-02T00:00:00Z").getEpochSecond() * 1_000_000_000L);
        assertThat(limiter.tryAcquire(null, 10)).isTrue();
        evening.setWallClock(Instant.parse("2026-03-03T00:00:00.5Z"));
        assertThat(evening.nanos()).isEqualTo(1_000_000_000L);
        assertThat(evening.epochNanos() % 1_000_000_000L).isEqualTo(500_000_000L);
        assertThat(limiter.tryAcquire(null, 10)).isTrue();
    }

    @Test
    void alarmsRingInOrderEachAtItsOwnTime() {
        List<String> rung = new ArrayList<>();
        ticker.schedule(30, () -> rung.add("c" + ticker.nanos()));
        ticker.schedule(10, () -> {
            rung.add("a" + ticker.nanos());
            ticker.schedule(20, () -> rung.add("n" + ticker.nanos()));
        });
        ticker.schedule(30, () -> rung.add("d" + ticker.nanos()));
        ticker.schedule(10, () -> rung.add("b" + ticker.nanos()));
        ticker.schedule(41, () -> rung.add("late"));
        ticker.schedule(15, () -> rung.add("cancelled")).run();
        assertThat(ticker.sleeping()).isEqualTo(5);
        ticker.advanceNanos(40);
        assertThat(rung).containsExactly("a10", "b10", "n20", "c30", "d30");
        assertThat(ticker.nanos()).isEqualTo(40);
        assertThat(ticker.epochNanos()).isEqualTo(40);
        assertThat(ticker.sleeping()).isEqualTo(1);
        ticker.schedule(40, () -> rung.add("at once"));
        assertThat(rung).endsWith("at once");
    }

    @Test
    void timeMayStepBackAndWrap() {
        ManualTicker wrapping = new ManualTicker(Long.MAX_VALUE - 5, Instant.EPOCH);
        List<String> rung = new ArrayList<>();
        wrapping.schedule(Long.MIN_VALUE + 4, () -> rung.add("after the wrap"));
        wrapping.schedule(Long.MAX_VALUE, () -> rung.add("before it"));
        wrapping.advanceNanos(-10);
        assertThat(wrapping.nanos()).isEqualTo(Long.MAX_VALUE - 15);
        wrapping.advanceNanos(19);
        assertThat(rung).containsExactly("before it");
        wrapping.advanceNanos(1);
        assertThat(rung).containsExactly("before it", "after the wrap");
    }

    @Test
    void aSleepThatIsOverReturnsAtOnceAndAnInterruptedOneLeavesNothing() throws Exception {
        ticker.sleepUntil(0);
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> ticker.sleepUntil(0)).isInstanceOf(InterruptedException.class);
        ticker.autoAdvance();
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> ticker.sleepUntil(10)).isInstanceOf(InterruptedException.class);
        assertThat(ticker.nanos()).isZero();
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void aSleeperThatIsInterruptedIsNoLongerCounted() throws Exception {
        CountDownLatch interrupted = new CountDownLatch(1);
        Thread sleeper = new Thread(() -> {
            try {
                ticker.sleepUntil(10);
            } catch (InterruptedException ex) {
                interrupted.countDown();
            }
        });
        sleeper.start();
        ticker.awaitSleeping(1);
        sleeper.interrupt();
        interrupted.await();
        assertThat(ticker.sleeping()).isZero();
    }
}
