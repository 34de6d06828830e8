package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** P10: a limit changes under load, and neither loses a grant nor hands one out twice (I4). */
@Tag("slow")
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

    static Stream<Arguments> windowsAndKeys() {
        return Stream.of(Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG)
                .flatMap(window -> Stream.of(Arguments.of(window, null), Arguments.of(window, "key")));
    }

    @ParameterizedTest
    @MethodSource("windowsAndKeys")
    void changesOfTheNumberOfAWindowNeitherLoseNorDoubleAPermit(Algorithm window, @Nullable String key)
            throws Exception {
        List<Limit> limits = Stream.of("40000/h", "41000/h", "30000/h")
                .map(rate -> Limit.of("a", window).rate(rate).build())
                .toList();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limits.get(0), ticker, 100);
        long granted = Threads.sum(5, thread -> {
            long mine = 0;
            for (int i = 0; i < 2_000; i++) {
                if (thread == 0) {
                    limiter.update(limits.get(i % limits.size()));
                } else {
                    mine += limiter.tryAcquire(key, 1) ? 1 : 0;
                }
            }
            return mine;
        });
        assertThat(granted).isEqualTo(8_000);
        limiter.update(limits.get(0));
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

    /** Each change of the algorithm gives one budget, and no more. */
    @ParameterizedTest
    @MethodSource("counting")
    void threadsGetOneBudgetForEachChangeOfTheAlgorithmAtMost(Algorithm base) throws Exception {
        List<Limit> limits = new ArrayList<>();
        counting()
                .filter(algorithm -> algorithm != base)
                .forEach(algorithm ->
                        limits.add(Limit.of("a", algorithm).rate("5/h").build()));
        InMemoryRateLimiter limiter =
                new InMemoryRateLimiter(Limit.of("a", base).rate("5/h").build(), ticker, 100);
        long granted = Threads.sum(4, thread -> {
            long mine = 0;
            for (int i = 0; i < 3_000; i++) {
                if (thread > 0) {
                    mine += limiter.tryAcquire("key", 1) ? 1 : 0;
                } else if (i % 30 == 0) {
                    limiter.update(limits.get(i / 30 % limits.size()));
                }
            }
            return mine;
        });
        granted += limiter.peek("key", 1, 0).remaining();
        assertThat(granted).isBetween(5L, 5L * 101);
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
                .map(algorithm -> Limit.of("a", algorithm).rate("5/h").build())
                .toList();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limits.get(0), ticker, 1);
        long granted = Threads.sum(4, thread -> {
            long mine = 0;
            for (int i = 0; i < 2_000; i++) {
                if (thread > 0) {
                    mine += limiter.tryAcquire("greedy", 1) ? 1 : 0;
                    limiter.tryAcquire("other" + i % 2, 1);
                } else if (i % 20 == 19) {
                    limiter.update(limits.get(i / 20 % limits.size()));
                }
            }
            return mine;
        });
        assertThat(granted).isBetween(1L, 5L * 101);
        assertThat(limiter.tryAcquire("greedy", 6)).isFalse();
    }

    @Test
    void guavasAlgorithmsKeepTheirDebtInPermits() {
        for (Limit.Builder limit : List.of(
                Limit.of("a", Algorithm.SMOOTH_BURSTY),
                Limit.of("a", Algorithm.WARM_UP).warmup(Duration.ZERO))) {
            InMemoryRateLimiter limiter =
                    new InMemoryRateLimiter(limit.rate("1/s").build(), ticker, 100);
            assertThat(limiter.tryAcquire(null, 10)).isTrue();
            limiter.update(limit.rate("10/s").build());
            assertThat(limiter.reserve(null, 1, Duration.ofDays(1).toNanos()).waitNanos())
                    .isEqualTo(SECOND);
            limiter.update(limit.rate("1/s").build());
            assertThat(limiter.reserve(null, 1, Duration.ofDays(1).toNanos()).waitNanos())
                    .isEqualTo(11 * SECOND);
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
    private final class Interrupting extends DelegatingTicker {

        private Runnable interruption = () -> {};

        private Interrupting() {
            super(ticker);
        }

        private void interrupt() {
            Runnable once = interruption;
            interruption = () -> {};
            once.run();
        }

        @Override
        public long nanos() {
            interrupt();
            return super.nanos();
        }

        @Override
        public long epochNanos() {
            interrupt();
            return super.epochNanos();
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
            assertThat(limiter.peek(key, 1, 0).remaining()).isEqualTo(9);
            interrupting.interruption = () -> limiter.update(before);
            assertThat(limiter.peek(key, 10, 0).admitted()).isTrue();
            interrupting.interruption = () -> limiter.update(after);
            assertThat(limiter.reserve(key, 4, 0).isRefused()).isFalse();
            assertThat(limiter.peek(key, 1, 0).remaining()).isEqualTo(6);
            assertThat(limiter.limit()).isEqualTo(after);
        }
    }
}
