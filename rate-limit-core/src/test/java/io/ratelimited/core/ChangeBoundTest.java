package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** P10 on random series of changes: no change adds permits, whatever changes and in which order. */
class ChangeBoundTest {

    private static final long SECOND = 1_000_000_000L;

    private final ManualTicker ticker = new ManualTicker(3, Instant.parse("2026-01-01T00:00:00Z"));

    private static Limit bucket(String rate, long burst) {
        return Limit.of("bound", Algorithm.TOKEN_BUCKET).rate(rate).burst(burst).build();
    }

    @Test
    void aBurstThatShrinksAndGrowsGivesNoSecondOne() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket("10/s", 100), ticker, 10);
        long granted = 0;
        for (int round = 0; round < 1_000; round++) {
            limiter.update(bucket("10/s", 1));
            ticker.advanceNanos(SECOND / 1_000);
            limiter.update(bucket("10/s", 100));
            while (limiter.tryAcquire(null, 1)) {
                granted++;
            }
        }
        assertThat(granted).isLessThanOrEqualTo(110);
    }

    @Test
    void whatIsLeftIsNeverMoreThanItWasNorThanItsShareOfTheNewBurst() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket("10/s", 100), ticker, 10);
        limiter.tryAcquire("key", 40);
        limiter.update(bucket("10/s", 10));
        assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(6);
        limiter.update(bucket("10/s", 1_000));
        assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(6);
        ticker.advanceNanos(SECOND);
        assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(16);
    }

    @Test
    void aWindowThatGrowsHasItsOldRestUntilTheNextOne() {
        for (Algorithm window : List.of(Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG)) {
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("bound", window).rate("10/s").build(), ticker, 10);
            limiter.tryAcquire("key", 3);
            limiter.update(Limit.of("bound", window).rate("1000/s").build());
            assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(7);
            ticker.advance(Duration.ofMillis(1_100));
            assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(1_000);
            limiter.tryAcquire("key", 500);
            limiter.update(Limit.of("bound", window).rate("10/s").build());
            assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(5);
        }
    }

    /** 10/s from nothing, updated after a millisecond: a new key has what the millisecond has brought. */
    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"CONCURRENCY", "WARM_UP", "LEAKY_BUCKET", "SMOOTH_BURSTY"})
    void aLimitThatBeganEmptyGivesNewKeysNoBurstAfterAChange(Algorithm next) {
        InMemoryRateLimiter limiter = InMemoryRateLimiter.startingEmpty(bucket("10/s", 100), ticker, 10);
        assertThat(limiter.tryAcquire("untouched", 1)).isFalse();
        ticker.advanceNanos(SECOND / 1_000);
        limiter.update(Limit.of("bound", next).rate("100/s").build());
        assertThat(limiter.tryAcquire("new", 1)).isFalse();
        limiter.update(bucket("20/s", 50));
        for (int half = 0; half < 8; half++) {
            assertThat(limiter.peek("new", 1, 0).remaining())
                    .isEqualTo(limiter.peek("untouched", 1, 0).remaining())
                    .isEqualTo(Math.min(50, half * 10L));
            ticker.advanceNanos(SECOND / 2);
        }
    }

    private static Limit random(Random random, List<Algorithm> algorithms) {
        Algorithm algorithm = algorithms.get(random.nextInt(algorithms.size()));
        Limit.Builder limit = Limit.of("bound", algorithm)
                .rate(new Rate(1 + random.nextInt(40), Duration.ofMillis(250L << random.nextInt(4))));
        if (algorithm.uses(Algorithm.Attribute.BURST) && random.nextInt(4) > 0) {
            limit.burst(1 + random.nextInt(100));
        }
        if (algorithm == Algorithm.WARM_UP) {
            limit.warmup(Duration.ofMillis(random.nextInt(3_000)));
        }
        return limit.build();
    }

    private static double perNano(Limit limit) {
        return (double) limit.rate().permits() / limit.rate().period().toNanos();
    }

    /** What may go at once: the next caller's credit is one call of one permit here. */
    private static long atOnce(Limit limit) {
        return switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA -> limit.burst();
            case SMOOTH_BURSTY -> limit.burst() + 1;
            case LEAKY_BUCKET, WARM_UP -> 1;
            // The end of one window meets the beginning of the next.
            default -> 2 * limit.rate().permits();
        };
    }

    /** Every interval holds at most the integral of the rates in force and the largest burst: buckets and queues. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "SMOOTH_BURSTY", "LEAKY_BUCKET", "WARM_UP"})
    void noIntervalHoldsMoreThanTheRatesInForceAndTheLargestBurst(Algorithm algorithm) {
        changes(List.of(algorithm), true);
    }

    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void noIntervalHoldsMoreThanTheHighestRateAndTheLargestWindow(Algorithm algorithm) {
        changes(List.of(algorithm), false);
    }

    @Test
    void noChangeBetweenBucketsAndQueuesAddsPermits() {
        changes(List.of(Algorithm.TOKEN_BUCKET, Algorithm.GCRA, Algorithm.LEAKY_BUCKET), true);
    }

    @Test
    void noChangeOfAlgorithmAddsPermits() {
        List<Algorithm> all = new ArrayList<>(List.of(Algorithm.values()));
        all.remove(Algorithm.CONCURRENCY);
        changes(all, false);
    }

    private void changes(List<Algorithm> algorithms, boolean integral) {
        for (int seed = 0; seed < 150; seed++) {
            Random random = new Random(seed);
            Limit limit = random(random, algorithms);
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
            double highest = perNano(limit);
            long largest = atOnce(limit);
            List<long[]> grants = new ArrayList<>();
            List<Double> allowed = new ArrayList<>();
            double credit = 0;
            for (int step = 0; step < 150; step++) {
                long nanos = random.nextInt(3) == 0 ? random.nextInt(200_000_000) : random.nextInt(3_000_000);
                credit += nanos * perNano(limiter.limit());
                ticker.advanceNanos(nanos);
                int calls = random.nextInt(4) == 0 ? 200 : random.nextInt(3);
                while (calls-- > 0 && limiter.tryAcquire("key", 1)) {
                    grants.add(new long[] {ticker.nanos()});
                    allowed.add(credit);
                }
                for (int change = random.nextInt(3); change > 0; change--) {
                    limit = random(random, algorithms);
                    highest = Math.max(highest, perNano(limit));
                    largest = Math.max(largest, atOnce(limit));
                    limiter.update(limit);
                }
            }
            double open = Double.NEGATIVE_INFINITY;
            for (int i = 0; i < grants.size(); i++) {
                double time = integral ? allowed.get(i) : highest * (grants.get(i)[0] - grants.get(0)[0]);
                open = Math.max(open, time - i);
                assertThat(i + 1 - time + open)
                        .as(algorithms + ", seed " + seed + ", grant " + i)
                        .isLessThanOrEqualTo(largest + 1e-6);
            }
            ticker.advance(Duration.ofHours(1));
        }
    }
}
