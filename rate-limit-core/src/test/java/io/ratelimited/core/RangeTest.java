package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.MethodSource;

/** The ends of the ranges: clocks that wrap, years of rest, the lowest and highest rates, the largest permits. */
class RangeTest {

    private static final long[] BASES = {
        0, -1, Long.MAX_VALUE - 500_000_000, Long.MAX_VALUE, Long.MIN_VALUE, -123_456_789
    };

    private static Limit limit(Algorithm algorithm, String rate) {
        Limit.Builder limit = Limit.of("range", algorithm);
        if (algorithm.countsCallsInFlight()) {
            return limit.maxConcurrent(5).build();
        }
        return (algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofSeconds(2)) : limit)
                .rate(rate)
                .build();
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void theBaseOfTheClockMakesNoDifference(Algorithm algorithm) {
        for (int seed = 0; seed < 40; seed++) {
            List<Object> expected = decisions(algorithm, 0, seed);
            for (long base : BASES) {
                assertThat(decisions(algorithm, base, seed))
                        .as("base " + base + ", seed " + seed)
                        .isEqualTo(expected);
            }
        }
    }

    private static List<Object> decisions(Algorithm algorithm, long base, int seed) {
        Random random = new Random(seed);
        ManualTicker ticker = new ManualTicker(base, Instant.EPOCH);
        RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "5/s"), ticker, 10);
        return Stream.generate(() -> {
                    ticker.advance(Duration.ofMillis(random.nextInt(300)));
                    String key = random.nextBoolean() ? "key" : null;
                    return (Object) limiter.reserve(key, 1L + random.nextInt(3), random.nextInt(1_000_000_000))
                            .decision();
                })
                .limit(60)
                .toList();
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void yearsOfRestGiveNoMoreThanAFreshBudget(Algorithm algorithm) {
        for (long base : BASES) {
            ManualTicker ticker = new ManualTicker(base, Instant.EPOCH);
            RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "5/s"), ticker, 10);
            for (int year = 0; year < 100; year += 20) {
                ticker.advance(Duration.ofDays(365 * 20));
                int granted = 0;
                while (limiter.tryAcquire(null, 1)) {
                    granted++;
                }
                int most = switch (algorithm) {
                    case WARM_UP, LEAKY_BUCKET -> 1;
                    case SMOOTH_BURSTY -> 6;
                    default -> 5;
                };
                assertThat(granted).as("base " + base + ", year " + year).isEqualTo(most);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void hugePermitsOverflowNothing(Algorithm algorithm) {
        for (String rate : List.of("5/s", "3/s", "7/m", "1/d")) {
            for (long base : BASES) {
                ManualTicker ticker = new ManualTicker(base, Instant.EPOCH);
                RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, rate), ticker, 10);
                Decision whole = limiter.peek(null, 1, 0);
                for (long permits = Long.MAX_VALUE; permits > 1L << 61; permits -= permits / 5) {
                    Reservation reservation = limiter.reserve(null, permits, Long.MAX_VALUE);
                    assertThat(reservation.isRefused()).as(rate).isTrue();
                    assertThat(reservation.decision().never()).as(rate).isTrue();
                    assertThat(reservation.decision().retryAfter()).as(rate).isNull();
                }
                assertThat(limiter.peek(null, 1, 0)).isEqualTo(whole);
            }
        }
    }

    static Stream<String> rates() {
        return Stream.of("1/s", "3/s", "7/m", "1000000/s", "666666667/s", "10000000000/s", "1/d");
    }

    @ParameterizedTest
    @MethodSource("rates")
    void debtOfDecadesIsToldAndRefusedAndNeverOverflows(String rate) {
        debtOfDecades(Algorithm.SMOOTH_BURSTY, rate);
        debtOfDecades(Algorithm.WARM_UP, rate);
    }

    private static void debtOfDecades(Algorithm algorithm, String rate) {
        RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, rate), new ManualTicker(), 10);
        long permits = 0;
        for (long bit = 1L << 62; bit > 0; bit >>= 1) {
            permits += limiter.peek(null, permits + bit, 0).never() ? 0 : bit;
        }
        for (int call = 0; call < 5; call++) {
            Decision decision = limiter.reserve(null, permits, Long.MAX_VALUE).decision();
            assertThat(decision.waitTime()).isGreaterThanOrEqualTo(Duration.ZERO);
            assertThat(decision.reset()).isPositive();
            assertThat(decision.remaining()).isZero();
        }
        Decision refusal = limiter.reserve(null, 1, Long.MAX_VALUE).decision();
        assertThat(refusal.admitted()).isFalse();
        assertThat(refusal.never()).isFalse();
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
    }

    @Test
    void negativePermitsAreAnError() {
        for (Algorithm algorithm : Algorithm.all()) {
            RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "5/s"));
            for (long permits : new long[] {-1, -2, Long.MIN_VALUE}) {
                for (Runnable call : List.<Runnable>of(
                        () -> limiter.tryAcquire(null, permits),
                        () -> limiter.reserve("key", permits, 0),
                        () -> limiter.peek(null, permits, 0))) {
                    assertThatThrownBy(call::run)
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessage("permits must be 0 or more: " + permits);
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void aNegativeOrEndlessWaitIsNoneOrAsLongAsItTakes(Algorithm algorithm) {
        RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "5/s"), new ManualTicker(), 10);
        for (int call = 0; call < 6; call++) {
            limiter.reserve(null, 1, Long.MIN_VALUE);
        }
        assertThat(limiter.reserve(null, 1, -1).isRefused()).isTrue();
        assertThat(limiter.reserve(null, 1, Long.MAX_VALUE).isRefused()).isFalse();
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "SMOOTH_BURSTY", "LEAKY_BUCKET", "WARM_UP"})
    void spacingDoesNotDrift(Algorithm algorithm) {
        for (String rate : List.of("3/s", "7/m", "999999937/s")) {
            Limit.Builder limit = Limit.of("range", algorithm).rate(rate);
            limit = algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ZERO) : limit.burst(1);
            ManualTicker ticker = new ManualTicker();
            RateLimiter limiter = new InMemoryRateLimiter(limit.build(), ticker, 1);
            int calls = 0;
            while (calls < 20_000) {
                Reservation reservation = limiter.reserve(null, 1, Long.MAX_VALUE);
                if (reservation.isRefused()) {
                    ticker.advance(reservation.decision().retryAfter());
                } else {
                    ticker.advanceNanos(reservation.waitNanos());
                    calls++;
                }
            }
            Rate parsed = Rate.parse(rate);
            double expected = (calls - 1.0) * parsed.period().toNanos() / parsed.permits();
            assertThat(Math.abs(ticker.nanos() - expected)).as(rate).isLessThanOrEqualTo(2 + expected / 1e15);
        }
    }
}
