package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.CallersNumbersContract;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Threads;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("slow")
class CallersNumbersTest extends CallersNumbersContract {

    @Override
    protected List<RateLimiter> limiters(Limit limit) {
        return List.of(new InMemoryRateLimiter(limit, ticker, 1_000_000));
    }

    @Override
    protected int tenants() {
        return 10_000;
    }

    /** An idle caller is looked at by other numbers than its own, at the time of the look: a later one would reject it, again and again. */
    @ParameterizedTest
    @ValueSource(strings = {"none", "block"})
    @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aLookAtAnIdleCallerByOtherNumbersEnds(String kind) {
        Limit limit = Limit.of("once", Algorithm.TOKEN_BUCKET).rate("1/h").build();
        RateLimiter limiter = new InMemoryRateLimiter(
                kind.equals("none")
                        ? limit
                        : limit.toBuilder().block(Duration.ofHours(1)).build(),
                Ticker.system(),
                10);
        limiter.ofCallers(CallerLimit.of("1/m")).reserve("k", 1, 0).cancel();
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(1);
        assertThat(limiter.peek("k", 2, 0).admitted()).isFalse();
        assertThat(limiter.ofCallers(CallerLimit.of("2/h")).peek("k", 2, 0).admitted())
                .isTrue();
    }

    /** The small burst is full soon, and the key is kept all the same. */
    @Test
    void aBurstThatShrinksAndGrowsGivesNoSecondOne() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("small", Algorithm.TOKEN_BUCKET).rate("1/s").build(), ticker, 10);
        RateLimiter large = limiter.ofCallers(CallerLimit.of("1/s burst 100"));
        assertThat(large.tryAcquire("k", 100)).isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        for (int second = 0; second < 50; second++) {
            ticker.advance(Duration.ofSeconds(1));
            assertThat(limiter.tryAcquire("k" + second, 1)).isTrue();
        }
        assertThat(large.peek("k", 1, 0).remaining()).isLessThanOrEqualTo(1);
    }

    /** The smaller burst is of faster numbers: what is used with them counts, too, before the larger burst is full again. */
    @ParameterizedTest
    @CsvSource({"10/s burst 5, false", "10/s burst 5, true", "9/s burst 5, false", "9/s burst 5, true"})
    void aLargerBurstIsNotFullASecondTimeWhileSmallerOnesAreUsed(String other, boolean sweeps) {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("fast", Algorithm.TOKEN_BUCKET).rate("10/s").burst(5).build(), ticker, 10);
        RateLimiter large = limiter.ofCallers(CallerLimit.of("2/s burst 40"));
        RateLimiter[] small = {limiter, limiter.ofCallers(CallerLimit.of(other))};
        long admitted = 0;
        for (int round = 0; round < 10; round++) {
            admitted += all(large, "k");
            for (int tenth = 0; tenth < 205; tenth++) {
                ticker.advance(Duration.ofMillis(100));
                // The bucket is full when the caller has its larger burst again.
                admitted += tenth < 195 ? all(small[tenth % 2], "k") : 0;
            }
            if (sweeps) {
                limiter.tryAcquire("sweeps", 1);
                Threads.until(CallbackThreads.SHARED::isQuiescent);
            }
        }
        assertThat(admitted).isLessThanOrEqualTo(40 + 10 * 205);
    }

    /** A key that has all its permits has all of its new numbers, as if a sweep had dropped its cell. */
    @ParameterizedTest
    @CsvSource({
        "TOKEN_BUCKET, false",
        "TOKEN_BUCKET, true",
        "GCRA, false",
        "GCRA, true",
        "SMOOTH_BURSTY, false",
        "SMOOTH_BURSTY, true"
    })
    void aSweepMakesNoDifferenceToAnIdleCallerWhoseNumbersChange(Algorithm algorithm, boolean sweeps) {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("idle", algorithm).rate("60/m").burst(60).build(), ticker, 10);
        RateLimiter small = limiter.ofCallers(CallerLimit.of("5/m burst 5"));
        RateLimiter large = limiter.ofCallers(CallerLimit.of("500/m burst 1000"));
        ticker.advance(Duration.ofMinutes(2));
        for (String key : new String[] {"once", "again"}) {
            if (key.equals("again")) {
                assertThat(all(large, key)).isGreaterThanOrEqualTo(1_000);
            }
            assertThat(all(small, key)).isLessThanOrEqualTo(6);
        }
        for (int minute = 0; minute < 4; minute++) {
            ticker.advance(Duration.ofMinutes(1));
            if (sweeps) {
                limiter.tryAcquire("sweeps", 1);
                Threads.until(CallbackThreads.SHARED::isQuiescent);
            }
        }
        assertThat(limiter.knownKeys().anyMatch(key -> key.toString().equals("once")))
                .isEqualTo(!sweeps);
        long most = limiter.ofCallers(CallerLimit.of("500/m burst 1000"))
                .peek("new", 1, 0)
                .remaining();
        assertThat(large.peek("once", 1, 0).remaining()).isEqualTo(most);
        assertThat(large.peek("again", 1, 0).remaining()).isEqualTo(most);
        assertThat(all(large, "once")).isEqualTo(most);
        assertThat(all(large, "again")).isEqualTo(most);
    }

    private static long all(RateLimiter limiter, String key) {
        long admitted = 0;
        while (limiter.tryAcquire(key, 1)) {
            admitted++;
        }
        return admitted;
    }

    /** Evicted keys that share a cell have different numbers: none gets more than its own. */
    @Test
    void keysThatAreEvictedGetNoMoreThanTheirNumbers() {
        for (Algorithm algorithm : List.of(Algorithm.TOKEN_BUCKET, Algorithm.SLIDING_LOG)) {
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("flood", algorithm).rate("3/m").build(), ticker, 50);
            RateLimiter fast =
                    limiter.ofCallers(CallerLimit.of(algorithm == Algorithm.TOKEN_BUCKET ? "100/s" : "100/m"));
            RateLimiter slow = limiter.ofCallers(CallerLimit.of("2/m"));
            int keys = 40_000;
            for (int key = 0; key < keys; key++) {
                long permits = key % 2 == 0 ? 100 : 2;
                assertThat((key % 2 == 0 ? fast : slow).tryAcquire("k" + key, 1) || key > 100)
                        .isTrue();
                (key % 2 == 0 ? fast : slow).tryAcquire("k" + key, permits - 1);
            }
            ticker.advance(Duration.ofSeconds(2));
            int again = 0;
            for (int key = 1; key < keys; key += 2) {
                again += slow.tryAcquire("k" + key, 1) ? 1 : 0;
            }
            assertThat(again).as(algorithm.toString()).isZero();
        }
    }

    /** The slower numbers of the other keys are full sooner, also where the numbers of the key have changed before. */
    @Test
    void aLargerBurstIsNotFullASecondTimeAfterAFlood() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("flood", Algorithm.TOKEN_BUCKET).rate("60/m").build(), ticker, 50);
        RateLimiter large = limiter.ofCallers(CallerLimit.of("500/m burst 1000"));
        int tenants = 50;
        for (int tenant = 0; tenant < tenants; tenant++) {
            assertThat(large.tryAcquire("tenant" + tenant, 1)).isTrue();
            assertThat(limiter.tryAcquire("tenant" + tenant, 1)).isTrue();
            large.tryAcquire("tenant" + tenant, 1);
        }
        for (int key = 0; key < 40_000; key++) {
            limiter.tryAcquire("k" + key, 1);
        }
        ticker.advance(Duration.ofSeconds(75));
        limiter.tryAcquire("sweeps", 1);
        Threads.until(() -> limiter.keys() <= 1);
        for (int tenant = 0; tenant < tenants; tenant++) {
            assertThat(large.peek("tenant" + tenant, 1, 0).remaining()).isLessThanOrEqualTo(58 + 625);
        }
    }

    /** The number of keys is that for which there is memory if each has the log of the limit itself. */
    @ParameterizedTest
    @ValueSource(strings = {"10/h", "unlimited"})
    void aLogThatIsLargerThanThatOfTheLimitCountsAsSeveralKeys(String rate) {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("logs", Algorithm.SLIDING_LOG).rate(rate).build(), ticker, 1_000);
        RateLimiter large = limiter.ofCallers(CallerLimit.of("2000/h"));
        int keys = 200;
        for (int key = 0; key < keys; key++) {
            for (int call = 0; call < 2_000; call++) {
                ticker.advanceNanos(1);
                assertThat(large.tryAcquire("k" + key, 1)).isTrue();
            }
        }
        // Some 35; a key that was evicted while its log grew goes on with a smaller one, of a seventh of the memory at
        // least.
        Threads.until(() -> limiter.keys() <= 150);
        // Neither those that were evicted nor the others have used less.
        for (int key = 0; key < keys; key++) {
            assertThat(large.tryAcquire("k" + key, 1)).isFalse();
        }
        ticker.advance(Duration.ofHours(1));
        for (int key = 0; key < keys; key++) {
            assertThat(large.tryAcquire("k" + key, 2_000)).isTrue();
        }
    }

    /** The number of keys was found for the smaller logs. */
    @ParameterizedTest
    @ValueSource(strings = {"10/h", "0/h"})
    void aLogOfALimitThatWasRaisedCountsAsSeveralKeys(String before) {
        Limit limit = Limit.of("logs", Algorithm.SLIDING_LOG).rate("10/h").build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 1_000);
        limiter.update(limit.toBuilder().rate(before).build());
        limiter.update(limit.toBuilder().rate("2000/h").build());
        int keys = 200;
        for (int key = 0; key < keys; key++) {
            for (int call = 0; call < 2_000; call++) {
                ticker.advanceNanos(1);
                assertThat(limiter.tryAcquire("k" + key, 1)).isTrue();
            }
        }
        Threads.until(() -> limiter.keys() <= 150);
        for (int key = 0; key < keys; key++) {
            assertThat(limiter.tryAcquire("k" + key, 1)).isFalse();
        }
    }

    /** Its log takes more memory than all keys may, so it is evicted whenever it has grown, without any flood. */
    @Test
    void aCallerWhoseLogIsEvictedAgainAndAgainIsNotRejectedWithinItsNumber() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("logs", Algorithm.SLIDING_LOG).rate("5/m").build(), ticker, 10);
        RateLimiter large = limiter.ofCallers(CallerLimit.of("10000/m"));
        for (int call = 0; call < 40_000; call++) {
            ticker.advance(Duration.ofMinutes(1).dividedBy(8_000));
            assertThat(large.tryAcquire("tenant", 1)).as("call %d", call).isTrue();
        }
        assertThat(large.peek("tenant", 1, 0).remaining()).isBetween(1_000L, 2_000L);
    }

    /** A caller that may have many, and has few, takes no memory from others. */
    @Test
    void aLogCountsByItsEntriesAndNotByTheNumberOfItsCaller() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("logs", Algorithm.SLIDING_LOG).rate("10/h").build(), ticker, 1_000);
        RateLimiter large = limiter.ofCallers(CallerLimit.of("1000000/h"));
        for (int key = 0; key < 500; key++) {
            for (int call = 0; call < 10; call++) {
                ticker.advanceNanos(1);
                assertThat(large.tryAcquire("k" + key, 1)).isTrue();
            }
        }
        assertThat(limiter.keys()).isEqualTo(500);
    }

    @Test
    void keysOfCallersWithOtherPeriodsThatAreEvictedGetNoMoreThanTheirNumbers() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("flood", Algorithm.FIXED_WINDOW).rate("unlimited").build(), ticker, 50);
        RateLimiter hourly = limiter.ofCallers(CallerLimit.of("2/h"));
        RateLimiter daily = limiter.ofCallers(CallerLimit.of("2/d"));
        int keys = 40_000;
        for (int key = 0; key < keys; key++) {
            for (int call = 0; call < 3; call++) {
                (key % 2 == 0 ? hourly : daily).tryAcquire("k" + key, 1);
            }
        }
        int again = 0;
        for (int key = 0; key < keys; key++) {
            again += (key % 2 == 0 ? hourly : daily).tryAcquire("k" + key, 1) ? 1 : 0;
        }
        assertThat(again).isZero();
    }

    /** Whatever its callers have: it is one key to an operator. */
    @Test
    void aKeyOfCallersWithOtherPeriodsIsBlockedForEachAndIsResetForAll() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("blocks", Algorithm.FIXED_WINDOW)
                        .rate("unlimited")
                        .block(Duration.ofHours(1))
                        .build(),
                ticker,
                50);
        List<BlockedKey> observed = new ArrayList<>();
        limiter.onBlock(observed::add);
        RateLimiter hourly = limiter.ofCallers(CallerLimit.of("2/h"));
        RateLimiter daily = limiter.ofCallers(CallerLimit.of("3/d"));
        assertThat(hourly.tryAcquire("k", 2)).isTrue();
        assertThat(daily.tryAcquire("k", 3)).isTrue();
        assertThat(daily.tryAcquire("k", 1)).isFalse();
        assertThat(hourly.peek("k", 1, 0).blocked()).isFalse();
        assertThat(hourly.tryAcquire("k", 1)).isFalse();
        for (RateLimiter callers : List.of(hourly, daily)) {
            assertThat(callers.peek("k", 1, 0).blocked()).isTrue();
        }
        assertThat(observed).extracting(blocked -> blocked.key().toString()).containsExactly("k", "k");
        assertThat(limiter.blockedKeys())
                .extracting(blocked -> blocked.key().toString())
                .containsOnly("k");
        assertThat(limiter.knownKeys()).extracting(Object::toString).containsExactly("k");
        assertThat(limiter.ofKnownCaller("k").limit().rate().permits()).isBetween(2L, 3L);
        limiter.reset("k");
        assertThat(hourly.tryAcquire("k", 2)).isTrue();
        assertThat(daily.tryAcquire("k", 3)).isTrue();
        assertThat(limiter.blockedKeys()).isEmpty();
    }

    @Test
    void numbersThatAreKnownOfACallerWithAnotherPeriodAreItsOwn() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("known", Algorithm.SLIDING_LOG).rate("unlimited").build(), ticker, 50);
        assertThat(limiter.ofCallers(CallerLimit.of("2/h")).tryAcquire("other", 1))
                .isTrue();
        assertThat(limiter.ofCallers(CallerLimit.of("3/d")).tryAcquire("k", 1)).isTrue();
        assertThat(limiter.ofKnownCaller("k").peek("k", 1, 0).remaining()).isEqualTo(2);
    }

    /** The numbers of a caller know no later limit: its cell takes the step back when the caller comes again, whatever came between. */
    @Test
    void oneWrongReadingOfTheWallClockBeforeAChangeOfTheLimitClosesNoWindow() {
        Limit limit = Limit.of("wrong", Algorithm.FIXED_WINDOW).rate("100/m").build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 50);
        RateLimiter own = limiter.ofCallers(CallerLimit.of("10/m"));
        Instant right = Instant.parse("2026-01-01T00:00:00Z");
        ticker.setWallClock(Instant.parse("2030-01-01T00:00:00Z"));
        assertThat(own.tryAcquire("k", 10)).isTrue();
        ticker.setWallClock(right);
        assertThat(limiter.tryAcquire("other", 1)).isTrue();
        limiter.update(limit.toBuilder().rate("200/m").build());
        assertThat(own.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofMinutes(1));
        ticker.advance(Duration.ofMinutes(1));
        assertThat(own.tryAcquire("k", 10)).isTrue();
        assertThat(own.tryAcquire("k", 1)).isFalse();
    }

    /** The limit has no windows that say how far a wall clock may step back: those of its callers do. */
    @ParameterizedTest
    @ValueSource(strings = {"unlimited", "0/s"})
    void aWallClockThatStepsBackByLessThanAnHourClosesNoShortWindowOfCallers(String rate) {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("short", Algorithm.FIXED_WINDOW).rate(rate).build(), ticker, 50);
        RateLimiter hourly = limiter.ofCallers(CallerLimit.of("10/h"));
        RateLimiter own = limiter.ofCallers(CallerLimit.of("10/m"));
        ticker.setWallClock(Instant.parse("2026-01-01T00:40:00Z"));
        assertThat(own.tryAcquire("k", 10)).isTrue();
        assertThat(hourly.tryAcquire("k", 10)).isTrue();
        ticker.setWallClock(Instant.parse("2026-01-01T00:10:00Z"));
        assertThat(own.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofMinutes(1));
        assertThat(hourly.tryAcquire("k", 1)).isFalse();
        ticker.advance(Duration.ofMinutes(1));
        assertThat(own.tryAcquire("k", 10)).isTrue();
        assertThat(hourly.tryAcquire("k", 1)).isFalse();
    }
}
