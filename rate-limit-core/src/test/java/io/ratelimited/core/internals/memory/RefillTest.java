package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Permits that a bucket gets from elsewhere. */
class RefillTest {

    private static final int THREADS = 4;

    private final ManualTicker ticker = new ManualTicker(Long.MAX_VALUE - 1_000_000_000L, Instant.ofEpochSecond(1_000));

    private CellRateLimiter limiter(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("a", algorithm).rate("10/d");
        return new CellRateLimiter(
                (algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofMinutes(1)) : limit).build(),
                ticker,
                () -> 100);
    }

    private static int takeAll(CellRateLimiter limiter, @Nullable Object key) {
        int taken = 0;
        while (limiter.tryAcquire(key, 1)) {
            taken++;
        }
        return taken;
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "SMOOTH_BURSTY", "LEAKY_BUCKET", "WARM_UP"})
    void aBucketThatIsUsedUpHasAsManyMore(Algorithm algorithm) {
        CellRateLimiter limiter = limiter(algorithm);
        for (Object key : new Object[] {"k", 7L}) {
            takeAll(limiter, key);
            limiter.refill(key, 1);
            assertThat(takeAll(limiter, key)).isEqualTo(1);
        }
        takeAll(limiter, null);
        limiter.refill(null, 1);
        assertThat(takeAll(limiter, null)).isEqualTo(1);
    }

    /** Where the next caller pays, the permit on credit stays one. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "LEAKY_BUCKET", "WARM_UP"})
    void itIsNeverMoreThanFull(Algorithm algorithm) {
        CellRateLimiter limiter = limiter(algorithm);
        limiter.refill("unknown", 5);
        assertThat(limiter.keys()).isZero();
        int full = takeAll(limiter, "k");
        limiter.refill("k", 1_000_000);
        assertThat(takeAll(limiter, "k")).isEqualTo(full);
        limiter.refill("k", full);
        limiter.refill("k", 1);
        assertThat(takeAll(limiter, "k")).isEqualTo(full);
        assertThat(takeAll(limiter, "other")).isEqualTo(full);
    }

    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aWindowStaysAsItIs(Algorithm algorithm) {
        CellRateLimiter limiter = limiter(algorithm);
        takeAll(limiter, "k");
        limiter.refill("k", 5);
        assertThat(takeAll(limiter, "k")).isZero();
    }

    @Test
    void debtIsPaidFirst() {
        CellRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET);
        limiter.reserve("k", 1, 0).settle(15);
        limiter.refill("k", 5);
        assertThat(takeAll(limiter, "k")).isZero();
        limiter.refill("k", 3);
        assertThat(takeAll(limiter, "k")).isEqualTo(3);
    }

    @Test
    void whatWasReservedBeforeIsNotGivenBackAgain() {
        CellRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET);
        Reservation first = limiter.reserve("k", 4, 0);
        takeAll(limiter, "k");
        limiter.refill("k", 4);
        first.cancel();
        assertThat(takeAll(limiter, "k")).isEqualTo(4);
    }

    @Test
    void callsOfOtherThreadsLoseNothingAndGainNothing() throws Exception {
        CellRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET);
        takeAll(limiter, "k");
        long taken = Threads.sum(THREADS, thread -> {
            long own = 0;
            for (int i = 0; i < 2_000; i++) {
                // At most as many as are taken: it is never full.
                limiter.refill("k", 1);
                own += takeAll(limiter, "k");
            }
            return own;
        });
        assertThat(taken + takeAll(limiter, "k")).isEqualTo(THREADS * 2_000L);
    }
}
