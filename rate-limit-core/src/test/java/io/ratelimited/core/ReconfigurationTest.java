package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.ValueSource;

/** P10 in one thread: a change of the limit neither hands out nor loses permits. */
class ReconfigurationTest {

    private static Limit.Builder limit(Algorithm algorithm, String rate) {
        Limit.Builder limit = Limit.of("changed", algorithm).rate(rate);
        return algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofSeconds(4)) : limit;
    }

    private static InMemoryRateLimiter limiter(Limit.Builder limit, ManualTicker ticker) {
        return new InMemoryRateLimiter(limit.build(), ticker, 10);
    }

    @Test
    void theShareOfASmallerBurstIsKept() {
        InMemoryRateLimiter limiter =
                limiter(limit(Algorithm.TOKEN_BUCKET, "10/s").burst(300), new ManualTicker());
        assertThat(limiter.tryAcquire(null, 200)).isTrue();
        limiter.update(limit(Algorithm.TOKEN_BUCKET, "10/s").burst(30).build());
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(10);
        assertThat(limiter.tryAcquire(null, 11)).isFalse();
        assertThat(limiter.tryAcquire(null, 10)).isTrue();
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
    }

    @Test
    void aNewKeyFindsTheNewBurstWhole() {
        InMemoryRateLimiter limiter =
                limiter(limit(Algorithm.TOKEN_BUCKET, "10/s").burst(3), new ManualTicker());
        assertThat(limiter.tryAcquire("known", 3)).isTrue();
        limiter.update(limit(Algorithm.TOKEN_BUCKET, "10/s").burst(300).build());
        assertThat(limiter.tryAcquire("new", 300)).isTrue();
        assertThat(limiter.tryAcquire("known", 1)).isFalse();
    }

    @Test
    void theDecisionOnACallTellsWhatIsLeftOfItsKeyAfterAChange() {
        InMemoryRateLimiter limiter =
                limiter(limit(Algorithm.TOKEN_BUCKET, "10/s").burst(3), new ManualTicker());
        Reservation call = limiter.reserve("key", 2, 0);
        limiter.update(limit(Algorithm.TOKEN_BUCKET, "10/s").burst(300).build());
        assertThat(call.decision().admitted()).isTrue();
        assertThat(call.decision().remaining()).isOne();
    }

    @Test
    void debtIsKeptInPermits() {
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter =
                limiter(limit(Algorithm.TOKEN_BUCKET, "10/s").burst(5), ticker);
        ticker.advance(Duration.ofHours(1));
        assertThat(limiter.tryAcquire(null, 5)).isTrue();
        assertThat(limiter.reserve(null, 4, Long.MAX_VALUE).waitNanos()).isEqualTo(400_000_000);
        limiter.update(limit(Algorithm.TOKEN_BUCKET, "1/s").burst(5).build());
        assertThat(limiter.reserve(null, 1, Long.MAX_VALUE).waitNanos()).isEqualTo(5_000_000_000L);
        limiter.update(limit(Algorithm.TOKEN_BUCKET, "100/s").burst(5).build());
        assertThat(limiter.reserve(null, 1, Long.MAX_VALUE).waitNanos()).isEqualTo(60_000_000);
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void noSeriesOfChangesHandsOutFreshBudget(Algorithm algorithm) {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            ManualTicker ticker = new ManualTicker();
            ticker.advance(Duration.ofMillis(random.nextInt(5_000)));
            InMemoryRateLimiter limiter = limiter(limit(algorithm, "10/s"), ticker);
            ticker.advance(Duration.ofMillis(random.nextInt(500)));
            boolean drained = random.nextBoolean();
            for (int call = drained ? 100 : random.nextInt(12); call > 0; call--) {
                limiter.tryAcquire(null, 1);
            }
            long before = limiter.peek(null, 1, 0).remaining();
            for (int change = random.nextInt(12); change >= 0; change--) {
                limiter.update(limit(algorithm, 1 + random.nextInt(500) + "/s").build());
                // A window that has room for more permits admits them.
                if (drained && algorithm.family() != Algorithm.Family.WINDOW) {
                    assertThat(limiter.tryAcquire(null, 1)).as("seed " + seed).isFalse();
                }
            }
            limiter.update(limit(algorithm, "10/s").build());
            assertThat(limiter.peek(null, 1, 0).remaining()).as("seed " + seed).isLessThanOrEqualTo(before);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void grantsStayWithinTheSumOfTheRatesAndTheBurst(Algorithm algorithm) {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            ManualTicker ticker = new ManualTicker();
            InMemoryRateLimiter limiter = limiter(limit(algorithm, "10/s").burst(10), ticker);
            double allowed = 0;
            long granted = 0;
            for (int call = 0; call < 300; call++) {
                long step = (long) (random.nextDouble() * 300_000_000);
                ticker.advanceNanos(step);
                allowed += step * (limiter.limit().rate().permits() / 1e9);
                while (limiter.tryAcquire(null, 1)) {
                    granted++;
                }
                if (random.nextInt(4) == 0) {
                    limiter.update(limit(algorithm, 1 + random.nextInt(200) + "/s")
                            .burst(10)
                            .build());
                }
            }
            assertThat((double) granted).as("seed " + seed).isLessThanOrEqualTo(allowed + 10 + 1e-6);
            assertThat((double) granted).as("seed " + seed).isGreaterThan(1_000);
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void closedAndUnlimitedRememberTheBudgetBeforeThem(Algorithm algorithm) {
        InMemoryRateLimiter limiter = limiter(limit(algorithm, "10/s"), new ManualTicker());
        while (limiter.tryAcquire(null, 1)) {
            assertThat(limiter.limit().rate().permits()).isEqualTo(10);
        }
        limiter.update(limit(algorithm, "unlimited").build());
        assertThat(limiter.tryAcquire(null, Long.MAX_VALUE)).isTrue();
        limiter.update(limit(algorithm, "0/s").build());
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
        assertThat(limiter.peek(null, 1, 0).never()).isTrue();
        limiter.update(limit(algorithm, "10/s").build());
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
    }

    @Test
    void aReservationOfTheLimitBeforeGivesNothingBackToTheNewOne() {
        InMemoryRateLimiter limiter =
                limiter(limit(Algorithm.TOKEN_BUCKET, "10/s").burst(5), new ManualTicker());
        Reservation old = limiter.reserve(null, 5, 0);
        limiter.update(limit(Algorithm.TOKEN_BUCKET, "20/s").burst(5).build());
        old.cancel();
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
    }

    @Test
    void aLimitIsNeitherRenamedNorTurnedIntoOneOfCallsInFlight() {
        InMemoryRateLimiter limiter = limiter(limit(Algorithm.TOKEN_BUCKET, "10/s"), new ManualTicker());
        Limit renamed = Limit.of("other", Algorithm.TOKEN_BUCKET).rate("1/s").build();
        Limit inFlight =
                Limit.of("changed", Algorithm.CONCURRENCY).maxConcurrent(1).build();
        assertThatThrownBy(() -> limiter.update(renamed))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("'changed' to 'other'");
        assertThatThrownBy(() -> limiter.update(inFlight))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("from TOKEN_BUCKET to CONCURRENCY")
                .hasMessageContaining("restart");
    }

    @Test
    void aKeyNotSeenBeforeTheChangeHasStoredAsMuchAsAnIdleOne() {
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter = limiter(limit(Algorithm.SMOOTH_BURSTY, "10/s"), ticker);
        assertThat(limiter.peek("idle", 1, 0).admitted()).isTrue();
        ticker.advance(Duration.ofMillis(500));
        limiter.update(limit(Algorithm.SMOOTH_BURSTY, "20/s").build());
        assertThat(limiter.peek("new", 1, 0).remaining()).isEqualTo(6); // 5 stored, one on credit
    }

    @ParameterizedTest
    @ValueSource(strings = {"0/s", "unlimited"})
    void aKeyNotSeenBeforeALimitWasClosedOrUnlimitedHasStoredAsMuchAsAnIdleOne(String constant) {
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter = limiter(limit(Algorithm.SMOOTH_BURSTY, "10/s"), ticker);
        ticker.advance(Duration.ofMillis(500));
        limiter.update(limit(Algorithm.SMOOTH_BURSTY, constant).build());
        ticker.advance(Duration.ofMillis(500));
        limiter.update(limit(Algorithm.SMOOTH_BURSTY, "20/s").build());
        assertThat(limiter.peek("new", 1, 0).remaining()).isEqualTo(11); // 10 stored, one on credit
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(11);
    }

    @Test
    void aClosedLimitHasNothingLeftAndAnUnlimitedOneNoEnd() {
        InMemoryRateLimiter limiter = limiter(limit(Algorithm.TOKEN_BUCKET, "0/s"), new ManualTicker());
        assertThat(limiter.peek(null, 1, 0).remaining()).isZero();
        limiter.update(limit(Algorithm.TOKEN_BUCKET, "unlimited").build());
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(Long.MAX_VALUE);
        assertThat(limiter.peek(null, 1, 0).reset()).isZero();
    }

    @Test
    void smoothBurstyStartsWithNothingStoredAndANewKeyWithWhatTheLimitHasStoredSince() {
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter =
                limiter(limit(Algorithm.SMOOTH_BURSTY, "10/s").burst(10), ticker);
        for (String key : new String[] {null, "key"}) {
            assertThat(limiter.peek(key, 1, 0).remaining()).isOne(); // on credit
        }
        ticker.advance(Duration.ofMillis(300));
        assertThat(limiter.peek("new", 1, 0).remaining()).isEqualTo(3 + 1);
        assertThat(limiter.source()).isEqualTo(Decision.Source.MEMORY);
    }
}
