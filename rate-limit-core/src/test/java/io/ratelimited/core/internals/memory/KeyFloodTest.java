package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Memory that a flood of keys cannot bend (C1 to C3 of {@link CachedCells}): it stays bounded, and nobody gets budget by
 * being evicted. The cache does its housekeeping where it does in production: in the common pool.
 */
@Tag("once")
@Tag("slow")
class KeyFloodTest {

    private static final int MAXIMUM = 1_000;

    /** Monotonic time may be negative. */
    private final ManualTicker ticker = new ManualTicker(-3_600_000_000_000L, Instant.EPOCH);

    /** Keys of a flood. */
    int flood(Limit limit) {
        return 50_000;
    }

    static Stream<Limit> limits() {
        return Stream.of(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").build(),
                Limit.of("a", Algorithm.FIXED_WINDOW).rate("10/s").build(),
                Limit.of("a", Algorithm.SLIDING_LOG).rate("10/s").build(),
                Limit.of("a", Algorithm.WARM_UP)
                        .rate("10/s")
                        .warmup(Duration.ofSeconds(3))
                        .build());
    }

    static Stream<Limit> moreLimits() {
        return Stream.concat(
                limits(),
                Stream.of(
                        Limit.of("a", Algorithm.GCRA).rate("10/s").build(),
                        Limit.of("a", Algorithm.LEAKY_BUCKET).rate("10/s").build(),
                        Limit.of("a", Algorithm.SMOOTH_BURSTY).rate("10/s").build(),
                        Limit.of("a", Algorithm.SLIDING_WINDOW).rate("10/s").build()));
    }

    private InMemoryRateLimiter limiter(Limit limit, long maximumKeys) {
        return new InMemoryRateLimiter(limit, ticker, maximumKeys);
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aGreedyCallerAmongManyKeysIsNeverAheadOfOneAlone(Limit limit) {
        InMemoryRateLimiter flooded = limiter(limit, MAXIMUM);
        InMemoryRateLimiter alone = limiter(limit, MAXIMUM);
        long granted = 0;
        long due = 0;
        long most = 0;
        for (int i = 0; i < flood(limit); i++) {
            flooded.tryAcquire(i, 1);
            if (i % 10 == 0) {
                due += alone.tryAcquire(null, 1) ? 1 : 0;
                granted += flooded.tryAcquire("greedy", 1) ? 1 : 0;
                assertThat(granted).isLessThanOrEqualTo(due);
                most = Math.max(most, flooded.keys());
            }
            if (i % 1_000 == 0) {
                ticker.advanceNanos(10_000_000);
            }
        }
        assertThat(granted).isPositive();
        // The cache's write buffer holds what its housekeeping has not seen yet.
        assertThat(most).isLessThan(20 * MAXIMUM);
        Threads.until(() -> flooded.keys() <= MAXIMUM);
    }

    @ParameterizedTest
    @MethodSource("moreLimits")
    void floodsFromSeveralThreadsBuyNobodyBudget(Limit limit) throws Exception {
        InMemoryRateLimiter flooded = limiter(limit, 100);
        long once = limit.algorithm() == Algorithm.WARM_UP
                        || limit.algorithm() == Algorithm.LEAKY_BUCKET
                        || limit.algorithm() == Algorithm.SMOOTH_BURSTY
                ? 1
                : 10;
        AtomicBoolean over = new AtomicBoolean();
        AtomicLong granted = new AtomicLong();
        Threads.run(4, thread -> {
            if (thread < 2) {
                for (int i = 0; i < flood(limit) / 10; i++) {
                    flooded.tryAcquire(List.of(thread, i), 1);
                }
                over.set(true);
            } else {
                while (!over.get()) {
                    granted.addAndGet(flooded.tryAcquire("greedy", 1) ? 1 : 0);
                }
            }
            return null;
        });
        assertThat(granted.get()).isBetween(0L, once);
        while (granted.get() < once && flooded.tryAcquire("greedy", 1)) {
            granted.incrementAndGet();
        }
        assertThat(flooded.tryAcquire("greedy", 1)).isFalse();
        Threads.until(() -> flooded.keys() <= 100);
    }

    @ParameterizedTest
    @MethodSource("moreLimits")
    void whatKeysHadSpentBeforeTheFloodIsStillSpentAfterIt(Limit limit) {
        InMemoryRateLimiter flooded = limiter(limit, 100);
        boolean counts = limit.algorithm().name().matches("TOKEN_BUCKET|GCRA|FIXED_WINDOW|SLIDING_.*");
        long left = limit.algorithm() == Algorithm.LEAKY_BUCKET ? 9 : counts ? 3 : 0; // the queue has 9 places
        for (int victim = 0; victim < 50; victim++) {
            assertThat(flooded.tryAcquire("victim" + victim, counts ? 7 : 1)).isTrue();
        }
        for (int i = 0; i < 20_000; i++) {
            flooded.tryAcquire(i, 1);
        }
        Threads.until(() -> flooded.keys() <= 100);
        for (int victim = 0; victim < 50; victim++) {
            assertThat(flooded.tryAcquire("victim" + victim, counts ? 4 : 1)).isFalse();
            assertThat(flooded.peek("victim" + victim, 1, 0).remaining()).isLessThanOrEqualTo(left);
        }
    }

    @Test
    void aFoldedKeyIsWholeAgainWhenItsTimeHasCome() {
        InMemoryRateLimiter flooded =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").build(), 10);
        flooded.tryAcquire("victim", 10);
        for (int i = 0; i < 5_000; i++) {
            flooded.tryAcquire(i, 10);
        }
        assertThat(flooded.tryAcquire("victim", 1)).isFalse();
        ticker.advance(Duration.ofMillis(500));
        assertThat(flooded.tryAcquire("victim", 5)).isTrue();
        assertThat(flooded.tryAcquire("victim", 1)).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(flooded.tryAcquire("victim", 10)).isTrue();
    }

    /** Keys of one hash share all their places; of texts nobody can choose that. */
    private record Colliding(int id) {

        @Override
        public int hashCode() {
            return 42;
        }
    }

    /** A limiter whose keys are as they are, which text of callers never is. */
    private CellRateLimiter ofAnyKeys(Limit limit, long maximumKeys) {
        return new AnyKeys(limit, ticker, () -> maximumKeys);
    }

    @Test
    void keysThatShareAPlaceMayBeLimitedEarlyButNeverLate() {
        CellRateLimiter flooded =
                ofAnyKeys(Limit.of("a", Algorithm.SLIDING_LOG).rate("10/h").build(), 1);
        long[] granted = new long[20];
        for (int round = 0; round < 2_000; round++) {
            int id = round * 7 % 20;
            granted[id] += flooded.tryAcquire(new Colliding(id), 1) ? 1 : 0;
        }
        assertThat(granted[0]).isPositive();
        for (long own : granted) {
            assertThat(own).isLessThanOrEqualTo(10);
        }
    }

    @Test
    void keysOfAnotherPlaceAreNotLimitedEarly() {
        CellRateLimiter flooded =
                ofAnyKeys(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/h").build(), 1);
        for (int id = 0; id < 200; id++) {
            flooded.tryAcquire(new Colliding(id), 10);
        }
        int whole = 0;
        for (int key = 0; key < 10; key++) {
            whole += flooded.tryAcquire("key" + key, 10) ? 1 : 0;
        }
        assertThat(whole).isGreaterThanOrEqualTo(9);
    }

    @Test
    void resetForgetsWhatAPlaceRemembersOfItsKey() {
        CellRateLimiter flooded =
                ofAnyKeys(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/h").build(), MAXIMUM);
        for (int id = 0; id < 5 * MAXIMUM; id++) {
            flooded.tryAcquire(new Colliding(id), 10);
        }
        Threads.until(() -> flooded.keys() <= MAXIMUM);
        assertThat(flooded.tryAcquire("new", 10)).isTrue();
        Colliding fresh = new Colliding(-1);
        assertThat(flooded.tryAcquire(fresh, 1)).isFalse();
        flooded.reset(fresh);
        assertThat(flooded.tryAcquire(fresh, 10)).isTrue();
        assertThat(flooded.tryAcquire(fresh, 1)).isFalse();
    }

    @Test
    void aChangeOfTheLimitChangesWhenKeysAreForgotten() {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("a", Algorithm.SLIDING_LOG).rate("10/h").build(), MAXIMUM);
        for (int i = 0; i < 100; i++) {
            limiter.tryAcquire(i, 10);
        }
        limiter.update(Limit.of("a", Algorithm.SLIDING_LOG).rate("10/s").build());
        assertThat(limiter.knownKeys()).hasSize(100).contains(CanonicalKey.ofText("(Integer)99"));
        ticker.advance(Duration.ofSeconds(3));
        Threads.until(() -> {
            limiter.tryAcquire("other", 1);
            return limiter.keys() == 1;
        });
        assertThat(limiter.knownKeys()).containsExactly("other");
    }

    @Test
    void aKeyThatExpiresInDebtKeepsItsDebt() {
        Limit limit = Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1/s").burst(5).build();
        InMemoryRateLimiter limiter = limiter(limit, MAXIMUM);
        for (int i = 0; i < 105; i++) {
            limiter.reserve("debtor", 1, Duration.ofHours(1).toNanos());
        }
        // Idle for longer than a bucket takes to fill, but 100 s in debt.
        ticker.advance(Duration.ofSeconds(20));
        limiter.tryAcquire("other", 1);
        assertThat(limiter.reserve("debtor", 1, Duration.ofHours(1).toNanos()).waitNanos())
                .isEqualTo(Duration.ofSeconds(81).toNanos());
    }

    /** A key that is dropped before it equals a fresh one leaves what it has spent to all keys of its place. */
    @Test
    void aKeyInUseIsNeverDropped() {
        CellParameters parameters = CellFactory.parameters(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").build(), 0, 0);
        SteadyClock clock = new SteadyClock(ticker);
        CachedCells cells = new CachedCells(parameters, clock, MAXIMUM);
        Cell cell = cells.get("key", parameters, clock.now(false));
        for (int i = 0; i < 1_000; i++) {
            assertThat(cell.reserve(10, clock.now(false), Long.MAX_VALUE / 4, null))
                    .isNotNegative();
            ticker.advance(Duration.ofMillis(i * 37 % 1_000));
            assertThat(cells.get("key", parameters, clock.now(false))).isSameAs(cell);
        }
    }

    @Test
    void aKeyIsForgottenOnceItEqualsAFreshOne() {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").build(), MAXIMUM);
        for (int i = 0; i < 500; i++) {
            limiter.tryAcquire(i, 10);
        }
        ticker.advance(Duration.ofMillis(999));
        for (int i = 500; i < 600; i++) {
            limiter.tryAcquire(i, 10);
        }
        assertThat(limiter.keys()).isEqualTo(600);
        ticker.advance(Duration.ofMillis(1_100));
        limiter.tryAcquire("other", 1);
        // Expired cells go with the housekeeping that the next uses set off.
        Threads.until(() -> {
            limiter.tryAcquire("other", 1);
            return limiter.keys() <= 101;
        });
    }

    /** What a sweep costs is in proportion to the keys; so is the pause before the next, 10 µs a key. */
    @Test
    void manyKeysAreSweptSeldom() {
        int keys = 300_000;
        InMemoryRateLimiter limiter =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").build(), 2L * keys);
        limiter.tryAcquire("last", 10);
        ticker.advance(Duration.ofMillis(500));
        for (int i = 0; i < keys; i++) {
            limiter.tryAcquire(i, 10);
        }
        assertThat(sweptKeys(limiter, Duration.ofMillis(600))).isEqualTo(keys + 1);
        // All but the last are fresh soon, but the next sweep is 3.00001 s after the one before.
        assertThat(sweptKeys(limiter, Duration.ofSeconds(3))).isEqualTo(keys + 1);
        assertThat(sweptKeys(limiter, Duration.ofNanos(10_000))).isOne();
    }

    /** How many keys there are after a call at a later time, and the sweep that it may have set off. */
    private long sweptKeys(InMemoryRateLimiter limiter, Duration later) {
        ticker.advance(later);
        limiter.tryAcquire("last", 10);
        Threads.until(CallbackThreads.SHARED::isQuiescent);
        return limiter.keys();
    }

    /** Whoever is in debt when the limit changes is found by a sweep before his next call. */
    @Test
    void aSweepAfterAChangeOfTheLimitForgetsNoDebt() {
        Limit limit = Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").build();
        InMemoryRateLimiter limiter = limiter(limit, MAXIMUM);
        for (int i = 0; i < 4; i++) {
            limiter.reserve("debtor", 10, PermitTime.FAR);
        }
        limiter.update(limit);
        assertThat(sweptKeys(limiter, Duration.ofSeconds(1))).isEqualTo(2);
        assertThat(limiter.peek("debtor", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(2_100));
    }

    @Test
    void aPlaceRemembersTheMostSpentOfItsKeys() {
        CellRateLimiter flooded =
                ofAnyKeys(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/h").build(), 10);
        for (int permits : new int[] {1, 5}) {
            for (int id = 0; id < 500; id++) {
                flooded.tryAcquire(new Colliding(1_000 * permits + id), permits);
            }
            Threads.until(() -> flooded.keys() <= 10);
        }
        assertThat(flooded.peek(new Colliding(-1), 1, 0).remaining()).isLessThanOrEqualTo(4);
    }

    /** A cold limiter is slower than a warm one: what other keys have warmed up is no budget of a new one. */
    @Test
    void aNewKeyStartsColdThoughThoseOfItsPlaceWereWarm() {
        CellRateLimiter flooded = ofAnyKeys(
                Limit.of("a", Algorithm.WARM_UP)
                        .rate("10/s")
                        .warmup(Duration.ofSeconds(3))
                        .build(),
                10);
        for (int id = 0; id < 1_000; id++) {
            flooded.reserve(new Colliding(id), 30, 0);
        }
        Threads.until(() -> flooded.keys() <= 10);
        Duration warm = flooded.peek(new Colliding(999), 1, 0).retryAfter();
        assertThat(flooded.peek(new Colliding(-1), 1, 0).retryAfter()).isEqualTo(warm);
        ticker.advance(warm);
        assertThat(flooded.tryAcquire(new Colliding(-1), 1)).isTrue();
        assertThat(flooded.peek(new Colliding(-1), 1, 0).retryAfter()).isEqualTo(Duration.ofNanos(293_333_334));
    }

    @ParameterizedTest
    @MethodSource("moreLimits")
    void resetGivesAFreshBudgetToItsKeyAlone(Limit limit) {
        InMemoryRateLimiter limiter = limiter(limit, MAXIMUM);
        InMemoryRateLimiter fresh = limiter(limit, MAXIMUM);
        long wait = Duration.ofHours(1).toNanos();
        for (String key : new String[] {"a", "b"}) {
            for (int i = 0; i < 5; i++) {
                limiter.reserve(key, 5, wait);
            }
        }
        limiter.reserve(null, 10, wait);
        Decision other = limiter.peek("b", 1, wait);
        limiter.reset("a");
        limiter.reset(null);
        limiter.reset("never seen");
        assertThat(limiter.peek("a", 1, wait)).isEqualTo(fresh.peek("a", 1, wait));
        assertThat(limiter.peek(null, 1, wait)).isEqualTo(fresh.peek(null, 1, wait));
        assertThat(limiter.peek("b", 1, wait)).isEqualTo(other);
    }

    @Test
    void aReservationMadeBeforeAResetGivesNothingBackAfterIt() {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").build(), MAXIMUM);
        for (String key : new String[] {"key", null}) {
            Reservation before = limiter.reserve(key, 5, 0);
            limiter.reset(key);
            assertThat(limiter.tryAcquire(key, 10)).isTrue();
            before.cancel();
            assertThat(limiter.tryAcquire(key, 1)).isFalse();
        }
    }

    @Test
    void racingResetsGiveAtMostOneBudgetEach() throws Exception {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/h").build(), MAXIMUM);
        for (String key : new String[] {"key", null}) {
            long granted = Threads.sum(4, thread -> {
                long mine = 0;
                for (int i = 0; i < 500; i++) {
                    if (thread == 0 && i % 5 == 0) {
                        limiter.reset(key);
                    }
                    mine += limiter.tryAcquire(key, 1) ? 1 : 0;
                }
                return mine;
            });
            assertThat(granted).isBetween(10L, 10 * 101L);
        }
    }

    @Test
    void twoLimitsWithOneKeyShareNothing() {
        Limit one = Limit.of("one", Algorithm.TOKEN_BUCKET).rate("10/s").build();
        Limit two = Limit.of("two", Algorithm.TOKEN_BUCKET).rate("10/s").build();
        InMemoryRateLimiter first = limiter(one, 1);
        InMemoryRateLimiter second = limiter(two, 1);
        assertThat(first.tryAcquire("key", 10)).isTrue();
        for (int i = 0; i < 1_000; i++) {
            first.tryAcquire(i, 10);
        }
        assertThat(second.tryAcquire("key", 10)).isTrue();
        assertThat(first.tryAcquire(null, 10)).isTrue();
        assertThat(second.tryAcquire(null, 10)).isTrue();
    }

    @Test
    void peekRemembersNoKey() {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").build(), MAXIMUM);
        for (int i = 0; i < 100; i++) {
            assertThat(limiter.peek(i, 1, 0).remaining()).isEqualTo(10);
        }
        assertThat(limiter.keys()).isZero();
    }
}
