package com.google.common.util.concurrent;

import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Guava's own limiters under the same schedules. In Guava's package because the stopwatch that drives them is
 * package-private. Guava counts whole microseconds and cuts off the rest, so that both may be apart by as many
 * microseconds as calls were made. A stored permit of the coldest kind costs {@code coldFactor} times what it takes to
 * store it: with a factor above Guava's own of 3 each microsecond cut off comes back as several.
 */
class GuavaOracleTest {

    private static final int SCHEDULES = 150;
    private static final int CALLS = 60;
    private static final long ENDLESS = Duration.ofDays(3650).toNanos();

    /** Guava's clock, read from the ticker of the other limiter. */
    private static final class Watch extends RateLimiter.SleepingStopwatch {

        private final ManualTicker ticker;
        private final long start;

        Watch(ManualTicker ticker) {
            this.ticker = ticker;
            this.start = ticker.nanos();
        }

        @Override
        protected long readMicros() {
            return NANOSECONDS.toMicros(ticker.nanos() - start);
        }

        @Override
        protected void sleepMicrosUninterruptibly(long micros) {
            throw new UnsupportedOperationException("reserve does not sleep");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 5, 10, 50, 200, 1000})
    void smoothBurstyWaitsAsGuavaDoes(int rate) {
        for (int seed = 0; seed < SCHEDULES; seed++) {
            ManualTicker ticker = ticker(seed);
            Limit limit = Limit.of("guava", Algorithm.SMOOTH_BURSTY)
                    .rate(perSecond(rate))
                    .build();
            RateLimiter guava = RateLimiter.create(rate, new Watch(ticker));
            new Schedule(limit, guava, ticker, seed).run();
        }
    }

    /** Of 5 a minute Guava stores a twelfth of a permit: one second of the rate, whatever fraction that is. */
    @ParameterizedTest
    @ValueSource(strings = {"5/m", "1/2s", "100/m", "5/2s", "7/3s", "1/h", "999/10s", "3/700ms"})
    void smoothBurstyStoresOneSecondOfAFractionalRateAsGuavaDoes(String text) {
        for (int seed = 0; seed < SCHEDULES; seed++) {
            ManualTicker ticker = ticker(seed);
            Rate rate = Rate.parse(text);
            Limit limit = Limit.of("guava", Algorithm.SMOOTH_BURSTY).rate(rate).build();
            RateLimiter guava =
                    RateLimiter.create(rate.permits() * 1e9 / rate.period().toNanos(), new Watch(ticker));
            new Schedule(limit, guava, ticker, seed).runAtOneRate();
        }
    }

    @Test
    void smoothBurstyStoresOneSecondOfAnyRateAsGuavaDoes() {
        for (int seed = 0; seed < 20 * SCHEDULES; seed++) {
            Random random = new Random(seed);
            ManualTicker ticker = ticker(seed);
            Rate rate = new Rate(1 + random.nextInt(300), Duration.ofMillis(1 + random.nextInt(200_000)));
            Limit limit = Limit.of("guava", Algorithm.SMOOTH_BURSTY).rate(rate).build();
            RateLimiter guava =
                    RateLimiter.create(rate.permits() * 1e9 / rate.period().toNanos(), new Watch(ticker));
            new Schedule(limit, guava, ticker, seed).runAtOneRate();
        }
    }

    @Test
    void fiveAMinuteAfterAnHourOfRestWaitAsGuavaDoes() {
        ManualTicker ticker = ticker(0);
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("guava", Algorithm.SMOOTH_BURSTY).rate("5/m").build(), ticker, 1);
        ticker.advance(Duration.ofHours(1));
        for (long seconds : new long[] {0, 11, 23, 35}) {
            assertThat(limiter.reserve(null, 1, ENDLESS).waitNanos()).isEqualTo(seconds * 1_000_000_000L);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "1, 10, 3",
        "2, 4, 3",
        "5, 10, 3",
        "10, 1, 3",
        "50, 10, 3",
        "200, 2, 3",
        "1000, 1, 3",
        "2, 4, 2",
        "10, 3, 10",
        "5, 2, 1"
    })
    void warmUpWaitsAsGuavaDoes(int rate, int warmupSeconds, double coldFactor) {
        for (int seed = 0; seed < SCHEDULES; seed++) {
            ManualTicker ticker = ticker(seed);
            Duration warmup = Duration.ofSeconds(warmupSeconds);
            Limit limit = Limit.of("guava", Algorithm.WARM_UP)
                    .rate(perSecond(rate))
                    .warmup(warmup)
                    .coldFactor(coldFactor)
                    .build();
            RateLimiter guava = RateLimiter.create(rate, warmup.toNanos(), NANOSECONDS, coldFactor, new Watch(ticker));
            new Schedule(limit, guava, ticker, seed).run();
        }
    }

    @ParameterizedTest
    @CsvSource({"4", "2", "1"})
    void aWeightedWarmUpCostsTheSameHoweverItIsSplit(int rate) {
        for (double coldFactor : new double[] {2, 3, 10}) {
            Duration warmup = Duration.ofNanos((long) ((1 + coldFactor) * 10 / (2.0 * rate) * 1e9));
            for (int seed = 0; seed < 100; seed++) {
                ManualTicker ticker = ticker(seed);
                InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                        Limit.of("guava", Algorithm.WARM_UP)
                                .rate(perSecond(rate))
                                .warmup(warmup)
                                .coldFactor(coldFactor)
                                .build(),
                        ticker,
                        1);
                Random random = new Random(seed);
                for (int left = 10; left > 0; ) {
                    int permits = 1 + random.nextInt(left);
                    assertThat(limiter.reserve(null, permits, ENDLESS).isRefused())
                            .isFalse();
                    left -= permits;
                }
                assertThat((double) limiter.reserve(null, 1, ENDLESS).waitNanos())
                        .isCloseTo((double) warmup.toNanos(), within(10.0));
            }
        }
    }

    @Test
    void oneSecondOfWorkIsTheLongestBurstWhateverTheRateWasBefore() {
        for (int seed = 0; seed < 20; seed++) {
            ManualTicker ticker = ticker(seed).autoAdvance();
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("guava", Algorithm.SMOOTH_BURSTY).rate("1/s").build(), ticker, 1);
            Random random = new Random(seed);
            for (int rate : new int[] {1000, 1, 10, 1_000_000, 10, 1}) {
                ticker.advance(Duration.ofSeconds(rate));
                limiter.update(limiter.limit().toBuilder().rate(perSecond(rate)).build());
                assertThat(timeOf(limiter, ticker, rate, random)).isLessThanOrEqualTo(1_000_000_000L);
                assertThat(timeOf(limiter, ticker, rate, random)).isGreaterThanOrEqualTo(1_000_000_000L);
            }
        }
    }

    /** Nanoseconds until a second of work is done and the next call may go. */
    private static long timeOf(InMemoryRateLimiter limiter, ManualTicker ticker, int work, Random random) {
        long start = ticker.nanos();
        for (int left = work; left > 0; ) {
            int permits = 1 + random.nextInt(Math.max(1, Math.min(left, work / 10)));
            ticker.advanceNanos(limiter.reserve(null, permits, ENDLESS).waitNanos());
            left -= permits;
        }
        ticker.advanceNanos(limiter.reserve(null, 1, ENDLESS).waitNanos());
        return ticker.nanos() - start;
    }

    private static ManualTicker ticker(long seed) {
        return new ManualTicker(new Random(seed).nextLong() / 1_000 * 1_000, Instant.EPOCH);
    }

    private static Rate perSecond(int rate) {
        return new Rate(rate, Duration.ofSeconds(1));
    }

    /** The same calls on both limiters. */
    private static final class Schedule {

        private final InMemoryRateLimiter ours;
        private final RateLimiter guava;
        private final ManualTicker ticker;
        private final int seed;
        private final Random random;
        /** Nanoseconds that one call may add to the distance. */
        private final long cutOff;

        private long apart;

        Schedule(Limit limit, RateLimiter guava, ManualTicker ticker, int seed) {
            this.ours = new InMemoryRateLimiter(limit, ticker, 1);
            this.guava = guava;
            this.ticker = ticker;
            this.seed = seed;
            this.random = new Random(seed);
            this.cutOff = limit.coldFactor() > 3 ? (long) (1_000 * limit.coldFactor()) : 1_000;
        }

        void run() {
            run(10);
        }

        void runAtOneRate() {
            run(9);
        }

        private void run(int steps) {
            for (int call = 0; call < CALLS; call++) {
                double interval = 1e9 / guava.getRate();
                switch (random.nextInt(steps)) {
                    case 0 -> step((long) (interval * 100 * random.nextDouble()));
                    case 1, 2, 3 -> step((long) (interval * 2 * random.nextDouble()));
                    case 4 -> step(Duration.ofSeconds(30).toNanos());
                    case 9 -> changeRate();
                    default -> {}
                }
                reserve(1 + (random.nextInt(3) == 0 ? random.nextInt(20) : 0), call);
            }
        }

        private void step(long nanos) {
            ticker.advanceNanos(nanos / 1_000 * 1_000);
        }

        /**
         * Where a change adds no permits and nobody is in debt. Guava's changes differ in two cases: what is stored grows with
         * the rate, and a debt keeps its time, not its permits.
         */
        private void changeRate() {
            int rate = 1 + random.nextInt(1_000);
            boolean raises = rate > guava.getRate();
            if (raises && ours.limit().algorithm() == Algorithm.SMOOTH_BURSTY) {
                reserve((int) guava.getRate() + 1, -1);
            }
            Duration debt = ours.peek(null, 1, 0).retryAfter();
            step((debt == null ? 0 : debt.toNanos()) + (raises ? 0 : apart + 1_000));
            guava.setRate(rate);
            ours.update(ours.limit().toBuilder().rate(perSecond(rate)).build());
            apart += 3 * cutOff;
        }

        private void reserve(int permits, int call) {
            apart += cutOff;
            Reservation reservation = ours.reserve(null, permits, ENDLESS);
            long expected = guava.reserve(permits) * 1_000;
            assertThat(reservation.isRefused()).isFalse();
            assertThat(Math.abs(reservation.waitNanos() - expected))
                    .as(ours.limit() + ", seed " + seed + ", call " + call + ": ours " + reservation.waitNanos()
                            + " ns, Guava's " + expected + " ns")
                    .isLessThanOrEqualTo(apart);
        }
    }
}
