package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** P10: a limit changes under load, and neither loses a grant nor hands one out twice (I4). */
class ChangeUnderLoadTest {

    private static final long SECOND = 1_000_000_000L;

    /** The two clocks are far apart, so that a cell that is asked in the time of other terms is seen. */
    private final ManualTicker ticker = new ManualTicker(-5, Instant.parse("2026-03-29T00:59:30Z"));

    private static Limit bucket(long rate, long burst) {
        return Limit.of("a", Algorithm.TOKEN_BUCKET)
                .rate(new Rate(rate, Duration.ofSeconds(1)))
                .burst(burst)
                .build();
    }

    /**
     * The burst stays, so on a frozen clock nothing may change at all: every permit is granted once, whatever cell of
     * whichever terms it was taken from.
     */
    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void changesOfTheRateOnAFrozenClockNeitherLoseNorDoubleAPermit(@Nullable String key) throws Exception {
        // Bursts in which one permit is a whole number of units under every rate: shares are exact.
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket(1_000, 40_000), ticker, 100);
        long granted = Threads.sum(5, thread -> {
            long mine = 0;
            for (int i = 0; i < 6_000; i++) {
                if (thread == 0) {
                    limiter.update(bucket(i % 2 == 0 ? 500 : 1_000, 40_000));
                } else {
                    mine += limiter.tryAcquire(key, 1) ? 1 : 0;
                }
            }
            return mine;
        });
        assertThat(granted).isEqualTo(24_000);
        assertThat(limiter.peek(key, 1, 0).remaining()).isEqualTo(40_000 - granted);
    }

    /** Windows of other lengths and zones, and a bucket, which counts in another time. */
    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void changesOfZonePeriodAndClockNeitherLoseNorDoubleAPermit(@Nullable String key) throws Exception {
        List<Limit> limits = new ArrayList<>();
        for (String zone : List.of("UTC", "Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe")) {
            for (String rate : List.of("40000/m", "40000/h", "40000/12h", "40000/d")) {
                limits.add(Limit.of("a", Algorithm.FIXED_WINDOW)
                        .rate(rate)
                        .zone(ZoneId.of(zone))
                        .build());
            }
            limits.add(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("40000/h").build());
        }
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limits.get(0), ticker, 100);
        long granted = Threads.sum(5, thread -> {
            long mine = 0;
            for (int i = 0; i < 6_000; i++) {
                if (thread == 0) {
                    limiter.update(limits.get(i % limits.size()));
                } else {
                    mine += limiter.tryAcquire(key, 1) ? 1 : 0;
                }
            }
            return mine;
        });
        assertThat(granted).isEqualTo(24_000);
        assertThat(limiter.peek(key, 1, 0).remaining()).isEqualTo(40_000 - granted);
        assertThat(limiter.tryAcquire(key, 40_000 - granted)).isTrue();
        assertThat(limiter.tryAcquire(key, 1)).isFalse();
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void cancelledPermitsComeBackOnceOrAreLostToAChangeButAreNeverDoubled(@Nullable String key) throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket(1_000, 40_000), ticker, 100);
        List<List<Long>> counts = Threads.run(5, thread -> {
            long taken = 0;
            long cancelled = 0;
            for (int i = 0; i < 2_000; i++) {
                if (thread == 0) {
                    limiter.update(bucket(i % 2 == 0 ? 500 : 1_000, 40_000));
                } else {
                    Reservation reservation = limiter.reserve(key, 1, 0);
                    taken += reservation.isRefused() ? 0 : 1;
                    if (i % 3 == 0) {
                        reservation.cancel();
                        reservation.cancel();
                        cancelled++;
                    }
                }
            }
            return List.of(taken, cancelled);
        });
        long taken = counts.stream().mapToLong(count -> count.get(0)).sum();
        long cancelled = counts.stream().mapToLong(count -> count.get(1)).sum();
        assertThat(limiter.peek(key, 1, 0).remaining()).isBetween(40_000 - taken, 40_000 - taken + cancelled);
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void grantsUnderAChangingRateStayBelowItsIntegralAndTheBurst(@Nullable String key) throws Exception {
        grantsStayBelowTheBound(key, new long[] {1_000, 50, 5_000, 400}, new long[] {100, 100, 100, 100});
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void grantsUnderAChangingBurstStayBelowTheIntegralAndTheLargestBurst(@Nullable String key) throws Exception {
        grantsStayBelowTheBound(key, new long[] {1_000, 50, 5_000, 400}, new long[] {100, 20, 200, 50});
    }

    private void grantsStayBelowTheBound(@Nullable String key, long[] rates, long[] bursts) throws Exception {
        long most = LongStream.of(bursts).max().orElseThrow();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket(rates[0], bursts[0]), ticker, 100);
        AtomicBoolean over = new AtomicBoolean();
        double[] integral = new double[1];
        long granted = Threads.sum(4, thread -> {
            if (thread == 0) {
                for (int i = 0; i < 2_000; i++) {
                    // Time passes under one rate at a time: 0.5 ms and then the change.
                    integral[0] += 0.0005 * rates[i % 4];
                    ticker.advanceNanos(500_000);
                    limiter.update(bucket(rates[(i + 1) % 4], bursts[(i + 1) % 4]));
                }
                over.set(true);
                return 0L;
            }
            long mine = 0;
            while (!over.get()) {
                mine += limiter.tryAcquire(key, 1 + thread) ? 1 + thread : 0;
            }
            return mine;
        });
        granted += limiter.peek(key, 1, 0).remaining();
        assertThat(granted).isLessThanOrEqualTo((long) integral[0] + most);
    }

    /** A waiting permit is a debt in permits: it is kept, so that a change pays it once and at the new rate. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"TOKEN_BUCKET", "GCRA", "LEAKY_BUCKET"})
    void debtIsKeptInPermitsThroughManyChangesUnderLoad(Algorithm algorithm) throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("a", algorithm).rate("1000/s").burst(10_000).build(), ticker, 100);
        long atOnce = algorithm == Algorithm.LEAKY_BUCKET ? 1 : 10_000;
        long granted = Threads.sum(4, thread -> {
            long mine = 0;
            for (int i = 0; i < 3_000; i++) {
                if (thread == 0) {
                    limiter.update(Limit.of("a", algorithm)
                            .rate(i % 2 == 0 ? "500/s" : "1000/s")
                            .burst(10_000)
                            .build());
                } else {
                    mine += limiter.reserve(null, 1, Duration.ofDays(1).toNanos())
                                    .isRefused()
                            ? 0
                            : 1;
                }
            }
            return mine;
        });
        assertThat(granted).isEqualTo(9_000);
        // The last rate is 1000/s. The next permit comes behind all others.
        long wait = limiter.reserve(null, 1, Duration.ofDays(1).toNanos()).waitNanos();
        assertThat(wait).isEqualTo(Math.max(0, granted + 1 - atOnce) * 1_000_000);
    }

    static Stream<Algorithm> counting() {
        return Stream.of(
                Algorithm.TOKEN_BUCKET,
                Algorithm.GCRA,
                Algorithm.FIXED_WINDOW,
                Algorithm.SLIDING_WINDOW,
                Algorithm.SLIDING_LOG);
    }

    @ParameterizedTest
    @MethodSource("counting")
    void whatIsLeftSurvivesEveryChangeOfAlgorithm(Algorithm last) {
        for (Algorithm first : counting().toList()) {
            InMemoryRateLimiter limiter =
                    new InMemoryRateLimiter(Limit.of("a", first).rate("100/s").build(), ticker, 100);
            assertThat(limiter.tryAcquire(null, 30)).isTrue();
            assertThat(limiter.tryAcquire("key", 75)).isTrue();
            limiter.update(Limit.of("a", last).rate("200/s").build());
            assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(70);
            assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(25);
            assertThat(limiter.peek("new", 1, 0).remaining()).isEqualTo(200);
        }
    }

    @ParameterizedTest
    @MethodSource("counting")
    void threadsNeverGetMoreThanTheBudgetWhileTheAlgorithmChanges(Algorithm base) throws Exception {
        List<Limit> limits = new ArrayList<>();
        counting()
                .forEach(algorithm ->
                        limits.add(Limit.of("a", algorithm).rate("1000/s").build()));
        InMemoryRateLimiter limiter =
                new InMemoryRateLimiter(Limit.of("a", base).rate("1000/s").build(), ticker, 100);
        long granted = Threads.sum(4, thread -> {
            long mine = 0;
            for (int i = 0; i < 1_500; i++) {
                if (thread == 0) {
                    limiter.update(limits.get(i % limits.size()));
                } else {
                    mine += limiter.tryAcquire("key", 1) ? 1 : 0;
                }
            }
            return mine;
        });
        assertThat(granted).isEqualTo(1_000);
        assertThat(limiter.tryAcquire("key", 1)).isFalse();
    }

    @Test
    void aLimitThatIsClosedAndOpenedAgainHandsOutNoFreshBudget() throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket(1_000, 1_000), ticker, 100);
        Limit closed = Limit.of("a", Algorithm.TOKEN_BUCKET).rate("0/s").build();
        long granted = Threads.sum(4, thread -> {
            long mine = 0;
            for (int i = 0; i < 1_000; i++) {
                if (thread == 0) {
                    limiter.update(i % 2 == 0 ? closed : bucket(1_000, 1_000));
                } else {
                    mine += limiter.tryAcquire("key", 1) ? 1 : 0;
                }
            }
            return mine;
        });
        granted += limiter.peek("key", 1, 0).remaining();
        assertThat(granted).isEqualTo(1_000);
    }

    @Test
    void keysUnderChangeAndEvictionAtOnceNeverGetMoreThanTheirBudget() throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket(100, 50), ticker, 20);
        long granted = Threads.sum(4, thread -> {
            long mine = 0;
            for (int i = 0; i < 3_000; i++) {
                if (thread == 0) {
                    limiter.update(bucket(i % 2 == 0 ? 100 : 50, 50));
                } else if (thread == 1) {
                    limiter.tryAcquire("flood" + i, 1);
                    limiter.tryAcquire("flood" + i / 7, 40);
                } else {
                    mine += limiter.tryAcquire("greedy", 1) ? 1 : 0;
                }
            }
            return mine;
        });
        assertThat(granted).isBetween(1L, 50L);
        assertThat(limiter.tryAcquire("greedy", 51 - granted)).isFalse();
    }

    @Test
    void foldsAndChangesOfAlgorithmAtOnceNeverMixStates() throws Exception {
        List<Limit> limits = counting()
                .map(algorithm -> Limit.of("a", algorithm).rate("50/h").build())
                .toList();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limits.get(0), ticker, 1);
        long granted = Threads.sum(4, thread -> {
            long mine = 0;
            for (int i = 0; i < 2_000; i++) {
                if (thread == 0) {
                    limiter.update(limits.get(i % limits.size()));
                } else {
                    mine += limiter.tryAcquire("greedy", 1) ? 1 : 0;
                    limiter.tryAcquire("other" + i % 2, 1);
                }
            }
            return mine;
        });
        assertThat(granted).isBetween(1L, 50L);
        assertThat(limiter.tryAcquire("greedy", 51 - granted)).isFalse();
    }

    @Test
    void guavasAlgorithmsKeepTheirDebtInTime() {
        for (Limit.Builder limit : List.of(
                Limit.of("a", Algorithm.SMOOTH_BURSTY),
                Limit.of("a", Algorithm.WARM_UP).warmup(Duration.ZERO))) {
            InMemoryRateLimiter limiter =
                    new InMemoryRateLimiter(limit.rate("1/s").build(), ticker, 100);
            assertThat(limiter.tryAcquire(null, 10)).isTrue();
            limiter.update(limit.rate("10/s").build());
            assertThat(limiter.reserve(null, 1, Duration.ofDays(1).toNanos()).waitNanos())
                    .isEqualTo(10 * SECOND);
            assertThat(limiter.reserve(null, 1, Duration.ofDays(1).toNanos()).waitNanos())
                    .isEqualTo(10 * SECOND + SECOND / 10);
        }
    }

    @Test
    void waitersSleepToTheTimeTheyWereTold() throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket(1, 1), ticker, 100);
        limiter.tryAcquire(null, 1);
        Reservation waiting = limiter.reserve(null, 1, 10 * SECOND);
        limiter.update(bucket(1_000, 1));
        assertThat(waiting.waitNanos()).isEqualTo(SECOND);
        assertThat(waiting.awaitAsync()).isNotDone();
        ticker.advanceNanos(SECOND);
        assertThat(waiting.await()).isTrue();
    }

    /** A ticker that does something between the moment a call looks up the limit and the moment it looks up its cell. */
    private final class Interrupting implements Ticker {

        private Runnable interruption = () -> {};

        private void interrupt() {
            Runnable once = interruption;
            interruption = () -> {};
            once.run();
        }

        @Override
        public long nanos() {
            interrupt();
            return ticker.nanos();
        }

        @Override
        public long epochNanos() {
            interrupt();
            return ticker.epochNanos();
        }

        @Override
        public void sleepUntil(long deadline) throws InterruptedException {
            ticker.sleepUntil(deadline);
        }

        @Override
        public Runnable schedule(long deadline, Runnable task) {
            return ticker.schedule(deadline, task);
        }
    }

    /** The time of a call has been read when the limit, and with it the clock that counts, is another. */
    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void aCallIsCountedInTheTimeOfTheCellItFinds(@Nullable String key) {
        List<Limit> limits = Stream.of(Algorithm.TOKEN_BUCKET, Algorithm.FIXED_WINDOW)
                .map(algorithm -> Limit.of("a", algorithm).rate("10/s").build())
                .toList();
        for (int from = 0; from < 2; from++) {
            Interrupting interrupting = new Interrupting();
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(limits.get(from), interrupting, 100);
            Limit before = limits.get(from);
            Limit after = limits.get(1 - from);
            assertThat(limiter.tryAcquire(key, 2)).isTrue();
            interrupting.interruption = () -> limiter.update(after);
            assertThat(limiter.tryAcquire(key, 1)).isTrue();
            interrupting.interruption = () -> limiter.update(before);
            assertThat(limiter.peek(key, 7, 0).admitted()).isTrue();
            assertThat(limiter.peek(key, 8, 0).admitted()).isFalse();
            interrupting.interruption = () -> limiter.update(after);
            assertThat(limiter.reserve(key, 1, 0).isRefused()).isFalse();
            assertThat(limiter.peek(key, 1, 0).remaining()).isEqualTo(6);
            assertThat(limiter.limit()).isEqualTo(after);
        }
    }
}
