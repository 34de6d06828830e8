package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A cancelled reservation gives back what nobody has reserved behind it, whatever was cancelled before. */
class GiveBackTest {

    private static final long SECOND = 1_000_000_000L;
    private static final long DAY = 86_400 * SECOND;

    private final ManualTicker ticker = new ManualTicker();

    private InMemoryRateLimiter limiter(Algorithm algorithm, String rate, long burst) {
        return new InMemoryRateLimiter(
                Limit.of("back", algorithm).rate(rate).burst(burst).build(), ticker, 100);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void aCancelOnOneKeyIsOfNoConcernToAnother(Algorithm algorithm) {
        InMemoryRateLimiter limiter = limiter(algorithm, "10/s", 4);
        limiter.reserve("b", 4, 0);
        Reservation other = limiter.reserve("b", 2, DAY);
        limiter.reserve("a", 4, 0);
        Reservation middle = limiter.reserve("a", 3, DAY);
        limiter.reserve("a", 1, DAY);
        middle.cancel();
        other.cancel();
        assertThat(limiter.reserve("b", 2, DAY).waitNanos()).isEqualTo(SECOND / 5);
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void theLastReservationIsUndoneAlsoAfterACancelFromTheMiddle(@Nullable String key) {
        InMemoryRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/s", 4);
        limiter.reserve(key, 4, 0);
        Reservation middle = limiter.reserve(key, 3, DAY);
        Reservation last = limiter.reserve(key, 1, DAY);
        assertThat(limiter.peek(key, 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(500));
        middle.cancel(); // 3 permits less the one behind
        assertThat(limiter.peek(key, 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(300));
        last.cancel();
        assertThat(limiter.peek(key, 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(200));
        middle.cancel();
        last.cancel();
        assertThat(limiter.peek(key, 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(200));
    }

    /** As x/time: 10/s, burst 10; of 10, 5, 4 and 1 reserved, cancelling 5, then 4 gives back 0 and 3. */
    @Test
    void eachGivesBackWhatIsNotReservedBehindIt() {
        InMemoryRateLimiter limiter = limiter(Algorithm.GCRA, "10/s", 10);
        limiter.reserve("key", 10, 0);
        Reservation five = limiter.reserve("key", 5, DAY);
        Reservation four = limiter.reserve("key", 4, DAY);
        Reservation one = limiter.reserve("key", 1, DAY);
        five.cancel();
        assertThat(limiter.peek("key", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(1_100));
        four.cancel();
        assertThat(limiter.peek("key", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(800));
        Reservation next = limiter.reserve("key", 2, DAY);
        assertThat(next.waitNanos()).isEqualTo(9 * SECOND / 10);
        one.cancel(); // 2 permits are behind it
        assertThat(limiter.peek("key", 1, 0).retryAfter()).isEqualTo(Duration.ofSeconds(1));
        next.cancel();
        assertThat(limiter.peek("key", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(800));
    }

    /** 1/s, burst 12: of two calls of 6, the first is settled for nothing after 3 s; the bucket would hold 9 had it not come. */
    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void theRoomThatACallMadeIsGivenBackThoughAnotherCameBehindIt(@Nullable String key) {
        for (Algorithm algorithm : List.of(Algorithm.TOKEN_BUCKET, Algorithm.GCRA)) {
            InMemoryRateLimiter limiter = limiter(algorithm, "1/s", 12);
            Reservation first = limiter.reserve(key, 6, 0);
            assertThat(limiter.reserve(key, 6, 0).isRefused()).isFalse();
            ticker.advance(Duration.ofSeconds(3));
            first.settle(0);
            assertThat(limiter.peek(key, 1, 0).remaining()).isEqualTo(9);
        }
    }

    /** What has been refilled before a later call was not there to be taken from it. */
    @Test
    void whatWasRefilledBeforeALaterCallIsNotGivenBackAgain() {
        InMemoryRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "1/s", 12);
        Reservation first = limiter.reserve("key", 6, 0);
        ticker.advance(Duration.ofSeconds(4));
        limiter.reserve("key", 6, 0);
        first.settle(0);
        // Had the first call not come, the bucket would have been full after 4 s, and 6 would be left.
        assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(6);
    }

    /** Any number of calls in flight that end in any order: what is left is the burst less what was used. */
    @ParameterizedTest
    @ValueSource(ints = {33, 64, 1_000})
    void callsInFlightGiveBackAllThatTheyHaveNotUsed(int calls) {
        for (int seed = 0; seed < 20; seed++) {
            Random random = new Random(seed);
            InMemoryRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "1/d", 10L * calls);
            List<Reservation> open = new ArrayList<>();
            for (int call = 0; call < calls; call++) {
                open.add(limiter.reserve("key", 10, 0));
                ticker.advanceNanos(random.nextInt(1_000_000));
            }
            Collections.shuffle(open, random);
            long left = 0;
            for (Reservation call : open) {
                long used = random.nextInt(11);
                call.settle(used);
                left += 10 - used;
                ticker.advanceNanos(random.nextInt(1_000_000));
            }
            assertThat(limiter.peek("key", 1, 0).remaining()).isBetween(left - 1, left);
        }
    }

    /** S4: 1/s, burst 3. The second call goes in 3 s with 2 of its 3 permits; the first made no room for it. */
    @Test
    void aCallThatIsSettledWhileItWaitsStillStandsInFrontOfOthers() {
        InMemoryRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "1/s", 3);
        Reservation first = limiter.reserve("key", 3, 0);
        Reservation waiting = limiter.reserve("key", 3, DAY);
        assertThat(waiting.waitNanos()).isEqualTo(3 * SECOND);
        waiting.settle(2);
        ticker.advanceNanos(SECOND);
        first.settle(0);
        // At 2 s from here two permits are used, so one is left for that time, and the second comes a second later.
        assertThat(limiter.reserve("key", 2, DAY).waitNanos()).isEqualTo(3 * SECOND);
    }

    /** Some cells are divided by several threads at once; every permit that stands is still counted. */
    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void threadsThatCancelFromTheMiddleGiveNothingBackTwice(@Nullable String key) throws Exception {
        for (int round = 0; round < 50; round++) {
            InMemoryRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/s", 20);
            long standing = Threads.sum(4, thread -> {
                Random random = new Random(thread);
                List<Reservation> live = new ArrayList<>();
                for (int call = 0; call < 20; call++) {
                    live.add(limiter.reserve(key, 1L + thread, DAY));
                    if (random.nextBoolean()) {
                        live.remove(random.nextInt(live.size())).cancel();
                    }
                }
                return (1L + thread) * live.size();
            });
            Duration retryAfter = limiter.peek(key, 1, 0).retryAfter();
            assertThat(retryAfter).isGreaterThanOrEqualTo(Duration.ofMillis((standing + 1 - 20) * 100));
        }
    }

    /** Reserving and cancelling at once leaves everything as it was, whatever the history. */
    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aReservationThatIsCancelledAtOnceWasNeverMade(Algorithm algorithm) {
        // Without keys: those whose cells are swept meanwhile get back less of what is cancelled.
        for (int seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            Limit.Builder limit = Limit.of("back", algorithm).rate("10/s");
            if (algorithm == Algorithm.WARM_UP) {
                limit.warmup(Duration.ofSeconds(1));
            }
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit.build(), ticker, 10);
            List<Reservation> live = new ArrayList<>();
            for (int step = 0; step < 60; step++) {
                ticker.advanceNanos(random.nextInt(3) == 0 ? random.nextInt(300_000_000) : 0);
                long maxWait = random.nextBoolean() ? 0 : random.nextInt(1_000_000_000);
                Reservation next = limiter.reserve(null, 1 + random.nextInt(6), maxWait);
                if (!next.isRefused()) {
                    live.add(next);
                }
                if (!live.isEmpty() && random.nextInt(3) == 0) {
                    live.remove(random.nextInt(live.size())).cancel();
                }
                Decision before = limiter.peek(null, 1, 0);
                // A window that was reached by waiting has closed those before it.
                Reservation tried = limiter.reserve(null, 1 + random.nextInt(6), windows(algorithm) ? 0 : maxWait);
                tried.cancel();
                assertThat(limiter.peek(null, 1, 0))
                        .as(algorithm + ", seed " + seed + ", step " + step)
                        .isEqualTo(before);
            }
        }
    }

    private static boolean windows(Algorithm algorithm) {
        return algorithm == Algorithm.FIXED_WINDOW || algorithm == Algorithm.SLIDING_WINDOW;
    }

    /** P9: of what is not cancelled, no interval holds more than burst and rate allow. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void nothingIsGivenBackThatCouldBeUsedTwice(Algorithm algorithm) {
        record Granted(Reservation reservation, long instant, long permits) {}
        for (int seed = 0; seed < 1_500; seed++) {
            Random random = new Random(seed);
            long burst = 1L + random.nextInt(12);
            InMemoryRateLimiter limiter = limiter(algorithm, "10/s", burst);
            long start = ticker.nanos();
            List<Granted> granted = new ArrayList<>();
            for (int step = 0; step < 60; step++) {
                if (random.nextInt(3) == 0) {
                    ticker.advanceNanos(
                            random.nextInt(4) == 0 ? SECOND * random.nextInt(3) : random.nextInt(200_000_000));
                }
                if (random.nextInt(5) < 3) {
                    long permits = 1L + random.nextInt((int) burst);
                    Reservation next = limiter.reserve("key", permits, random.nextInt(3) == 0 ? 0 : 5 * SECOND);
                    if (!next.isRefused()) {
                        granted.add(new Granted(next, ticker.nanos() - start + next.waitNanos(), permits));
                    }
                } else if (!granted.isEmpty()) {
                    granted.remove(random.nextInt(granted.size())).reservation.cancel();
                }
            }
            GrantLog log = new GrantLog();
            granted.forEach(grant -> log.add(grant.instant, grant.permits));
            assertThat(log.worstExcess((double) burst, limiter.limit().rate()))
                    .as("seed " + seed)
                    .isLessThanOrEqualTo(1e-6);
            ticker.advance(Duration.ofHours(1));
        }
    }
}
