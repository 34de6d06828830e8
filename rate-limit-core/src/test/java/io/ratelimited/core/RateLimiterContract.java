package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What every limiter does, wherever its cells live. Durations are whole microseconds, the finest that all of them
 * count.
 */
public abstract class RateLimiterContract {

    private static final long PATIENCE = 20;
    private static final Limit ONE_CALL =
            Limit.of("one", Algorithm.CONCURRENCY).maxConcurrent(1).build();

    protected final ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));

    /** A limiter on {@link #ticker} and nothing else of time. */
    protected abstract RateLimiter limiter(Limit limit);

    /** How many random schedules of reservations and charges are compared with the limit. */
    protected int schedules() {
        return 150;
    }

    /** Returns whether a change is in force before the next call of a key. */
    protected boolean changesBeforeACall() {
        return true;
    }

    /** Whether a step of the wall clock is known to the next call; otherwise its time goes on from before for a moment. */
    protected boolean seesStepsAtOnce() {
        return true;
    }

    /** A limit of ten permits a second that admits five calls at once, whatever the algorithm. */
    static Limit limit(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("contract-" + algorithm, algorithm);
        return switch (algorithm) {
            case TOKEN_BUCKET, GCRA -> limit.rate("10/s").burst(5).build();
            case SMOOTH_BURSTY -> limit.rate("10/s").burst(5).build();
            case WARM_UP -> limit.rate("10/s").warmup(Duration.ofSeconds(1)).build();
            case LEAKY_BUCKET -> limit.rate("10/s").burst(5).build();
            case FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG -> limit.rate("5/s").build();
            case CONCURRENCY -> limit.maxConcurrent(5).build();
            case ADAPTIVE, DEFAULT -> throw new IllegalArgumentException("no algorithm with keys");
        };
    }

    /** How many calls go at once at the start. */
    private static int burst(Algorithm algorithm) {
        return switch (algorithm) {
            case SMOOTH_BURSTY, WARM_UP, LEAKY_BUCKET -> 1;
            default -> 5;
        };
    }

    private static boolean hasCapacity(Algorithm algorithm) {
        return algorithm != Algorithm.SMOOTH_BURSTY && algorithm != Algorithm.WARM_UP;
    }

    private static List<Reservation> exhaust(RateLimiter limiter, Object key) {
        List<Reservation> admitted = new ArrayList<>();
        for (Reservation next = limiter.reserve(key, 1, 0); !next.isRefused(); next = limiter.reserve(key, 1, 0)) {
            admitted.add(next);
        }
        return admitted;
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void admitsTheBurstAndNoMore(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        assertThat(exhaust(limiter, "k")).hasSize(burst(algorithm));
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        assertThat(limiter.reserve("k", 1, 0).decision().admitted()).isFalse();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void admitsALoneRetryAtRetryAfterAndNotEarlier(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        for (int round = 0; round < 5; round++) {
            exhaust(limiter, "k");
            Duration retryAfter = limiter.reserve("k", 1, 0).decision().retryAfter();
            assertThat(retryAfter).isPositive();
            ticker.advance(retryAfter.minusNanos(1000));
            assertThat(limiter.tryAcquire("k", 1)).isFalse();
            ticker.advance(Duration.ofNanos(1000));
            assertThat(limiter.tryAcquire("k", 1)).isTrue();
            ticker.advance(Duration.ofMillis(round * 7L));
        }
    }

    @Test
    void theColdestAndSlowestWarmUpAdmitsACall() {
        Limit slow = Limit.of("cold", Algorithm.WARM_UP)
                .rate("1/3650d")
                .warmup(Duration.ofDays(365))
                .coldFactor(1_000)
                .build();
        RateLimiter limiter = limiter(slow);
        assertThat(limiter.peek("k", 1, 0).never()).isFalse();
        assertThat(limiter.tryAcquire("k", 1)).isTrue();
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isBetween(Duration.ofDays(3_650), Duration.ofDays(4_015));
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void refusesWithoutChangingAnything(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        exhaust(limiter, "k");
        Decision before = limiter.peek("k", 1, 0);
        for (int i = 0; i < 10; i++) {
            assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        }
        assertThat(limiter.peek("k", 1, 0)).isEqualTo(before);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void peekSaysWhatReserveWouldDecide(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        assertThat(limiter.peek("k", 1, 0).admitted()).isTrue();
        exhaust(limiter, "k");
        Decision peeked = limiter.peek("k", 1, 0);
        Decision decided = limiter.reserve("k", 1, 0).decision();
        assertThat(peeked.admitted()).isFalse();
        assertThat(peeked.retryAfter()).isEqualTo(decided.retryAfter());
        assertThat(peeked.remaining()).isZero();
        assertThat(limiter.peek("other", 1, 0).admitted()).isTrue();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void tellsWhatIsLeft(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        int burst = burst(algorithm);
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(burst);
        if (algorithm != Algorithm.SMOOTH_BURSTY) { // which starts empty
            assertThat(limiter.peek("k", 1, 0).reset()).isZero();
        }
        int left = burst == 1 ? 0 : 3;
        assertThat(limiter.reserve("k", 2, 0).decision().remaining()).isEqualTo(left);
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(left);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void asManyCallsGoAtOnceAsItTells(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        for (int round = 0; round < 5; round++) {
            ticker.advance(Duration.ofMillis(round * 130L));
            assertThat((long) exhaust(limiter, "k").size())
                    .isEqualTo(limiter.peek("fresh", 1, 0).remaining());
            long waits =
                    limiter.reserve("k", 1, Duration.ofSeconds(3).toNanos()).waitNanos();
            assertThat(limiter.peek("k", 1, 0).remaining()).isZero();
            ticker.advanceNanos(waits);
            Duration reset = limiter.peek("k", 1, 0).reset();
            ticker.advance(reset.minusNanos(1000));
            long almost = limiter.peek("k", 1, 0).remaining();
            ticker.advance(Duration.ofNanos(1000));
            assertThat(limiter.peek("k", 1, 0).reset()).isZero();
            assertThat(limiter.peek("k", 1, 0).remaining()).isGreaterThan(almost);
            limiter.reset("k");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void tellsWhatIsLeftAfterALongPause(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        limiter.reserve("k", 1, 0);
        ticker.advance(Duration.ofHours(1));
        assertThat(limiter.reserve("k", 2, 0).decision().remaining()).isEqualTo(3);
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(3);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void givesEachKeyABudgetOfItsOwn(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        exhaust(limiter, "a");
        assertThat(exhaust(limiter, "b")).hasSize(burst(algorithm));
        assertThat(exhaust(limiter, null)).hasSize(burst(algorithm));
        assertThat(limiter.reserve("a", 1, 0).isRefused()).isTrue();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void refusesForeverWhatIsMoreThanItsCapacity(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        Decision decision = limiter.reserve("k", 6, 0).decision();
        if (hasCapacity(algorithm)) {
            assertThat(decision.never()).isTrue();
            assertThat(decision.retryAfter()).isNull();
            assertThat(limiter.peek("k", 6, 0).never()).isTrue();
            assertThat(limiter.reserve("k", Long.MAX_VALUE, Long.MAX_VALUE)
                            .decision()
                            .never())
                    .isTrue();
        } else {
            assertThat(decision.admitted()).isTrue();
        }
        assertThat(exhaust(limiter, "other")).hasSize(burst(algorithm));
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void rejectsNegativePermits(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        assertThatIllegalArgumentException().isThrownBy(() -> limiter.reserve("k", -1, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> limiter.reserveAsync("k", -1, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> limiter.peek("k", -1, 0));
        if (algorithm != Algorithm.CONCURRENCY) {
            assertThatIllegalArgumentException().isThrownBy(() -> limiter.tryAcquire("k", -1));
        } else {
            assertThatThrownBy(() -> limiter.tryAcquire("k", 1)).isInstanceOf(UnsupportedOperationException.class);
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void aCallOfNoPermitsGoesAndTakesNothing(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm));
        for (String key : List.of("new", "spent")) {
            if (key.equals("spent")) {
                exhaust(limiter, key);
            }
            Decision before = limiter.peek(key, 1, 0);
            assertThat(limiter.peek(key, 0, 0).admitted()).isTrue();
            assertThat(limiter.peek(key, 0, 0).remaining()).isEqualTo(before.remaining());
            for (Reservation call : List.of(
                    limiter.reserve(key, 0, 0),
                    limiter.acquire(key, 0, 0),
                    limiter.reserveAsync(key, 0, 0).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS))) {
                assertThat(call.isRefused()).isFalse();
                assertThat(call.mayWait()).isFalse();
                assertThat(call.await()).isTrue();
                assertThat(call.decision().admitted()).isTrue();
                assertThat(call.decision().remaining()).isEqualTo(before.remaining());
                call.cancel();
                call.release();
            }
            if (algorithm != Algorithm.CONCURRENCY) {
                assertThat(limiter.tryAcquire(key, 0)).isTrue();
            }
            awaitSettled();
            assertThat(limiter.peek(key, 1, 0)).isEqualTo(before);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aCallOfNoPermitsIsChargedWithWhatItHasCost(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        assertThat(remainingAfterSettling(limiter, "k", 0, 0)).isEqualTo(5);
        assertThat(remainingAfterSettling(limiter, "k", 0, 3)).isEqualTo(2);
        assertThat(remainingAfterSettling(limiter, null, 0, 1)).isEqualTo(4);
    }

    /** Also where no limit says that its calls are charged: whoever settles knows. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aCallOfNoPermitsIsRejectedWhileItsKeyOwesWhatCallsHaveCost(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        RateLimiter other =
                limiter(Limit.of("other", Algorithm.TOKEN_BUCKET).rate("5/h").build());
        for (Object key : Arrays.asList("k", null)) {
            long left = other.peek(key, 1, 0).remaining();
            limiter.reserve(key, 0, 0).settle(50);
            awaitSettled();
            for (int i = 0; i < 3; i++) {
                assertThat(limiter.reserve(key, 0, 0).isRefused()).isTrue();
                assertThat(limiter.peek(key, 0, 0).admitted()).isFalse();
                assertThat(limiter.tryAcquire(key, 0)).isFalse();
                assertThat(AllOf.reserve(List.of(Claim.of(limiter, key, 0, 0), Claim.of(other, key, 1, 0)))
                                .isRefused())
                        .isTrue();
            }
            assertThat(other.peek(key, 1, 0).remaining()).isEqualTo(left);
            assertThat(limiter.reserve("fresh-" + key, 0, 0).isRefused()).isFalse();
            Duration retryAfter = limiter.reserve(key, 0, 0).decision().retryAfter();
            assertThat(retryAfter).isNotNull();
            ticker.advance(retryAfter.minusNanos(1_000));
            assertThat(limiter.reserve(key, 0, 0).isRefused()).isTrue();
            ticker.advance(Duration.ofNanos(1_000));
            assertThat(limiter.reserve(key, 0, 0).isRefused()).isFalse();
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aKeyThatIsUsedUpOwesNothing(Algorithm algorithm) {
        for (boolean charged : new boolean[] {false, true}) {
            RateLimiter limiter = limiter(
                    limit(algorithm, "used-up-" + charged).charged(charged).build());
            limiter.reserve("owes", 0, 0).settle(50);
            limiter.reserve("k", 1, 0).settle(5);
            awaitSettled();
            assertThat(limiter.tryAcquire("k", 1)).isFalse();
            for (int i = 0; i < 3; i++) {
                assertThat(limiter.reserve("k", 0, 0).isRefused()).isFalse();
                assertThat(limiter.peek("k", 0, 0).admitted()).isTrue();
                assertThat(limiter.tryAcquire("k", 0)).isTrue();
            }
        }
    }

    @Test
    void whereCallsAreChargedAClosedLimitRejectsThoseOfNoPermits() {
        RateLimiter limiter = limiter(limit(Algorithm.TOKEN_BUCKET));
        limiter.reserve("k", 0, 0).settle(3);
        awaitSettled();
        limiter.update(limit(Algorithm.TOKEN_BUCKET).toBuilder().rate("0/s").build());
        assertThat(limiter.reserve("k", 0, 0).decision().never()).isTrue();
        assertThat(limiter.peek("k", 0, 0).never()).isTrue();
        limiter.update(
                limit(Algorithm.TOKEN_BUCKET).toBuilder().rate("unlimited").build());
        assertThat(limiter.reserve("k", 0, 0).isRefused()).isFalse();
    }

    private static Limit.Builder limit(Algorithm algorithm, String name) {
        Limit like = limit(algorithm);
        Limit.Builder limit = Limit.of(name + "-" + algorithm, algorithm).rate(like.rate());
        return algorithm.family() == Algorithm.Family.BUCKET ? limit.burst(like.burst()) : limit;
    }

    @Test
    void aCallOfNoPermitsGoesThroughAClosedLimitAndBesideOtherLimits() throws Exception {
        RateLimiter closed =
                limiter(Limit.of("closed", Algorithm.TOKEN_BUCKET).rate("0/s").build());
        RateLimiter flights = limiter(
                Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(0).build());
        RateLimiter narrow =
                limiter(Limit.of("narrow", Algorithm.TOKEN_BUCKET).rate("1/h").build());
        assertThat(closed.reserve("k", 0, 0).isRefused()).isFalse();
        assertThat(flights.reserve("k", 0, 0).isRefused()).isFalse();
        List<Claim> claims =
                List.of(Claim.of(closed, "k", 0, 0), Claim.of(narrow, "k", 1, 0), Claim.of(flights, "k", 0, 0));
        Reservation call = AllOf.reserve(claims);
        assertThat(call.isRefused()).isFalse();
        assertThat(call.await()).isTrue();
        for (Reservation refused : reservedBothWays(claims)) {
            assertThat(refused.decision().limit()).isEqualTo("narrow");
            assertThat(AllOf.refusals(refused)[0]).isNull();
            assertThat(AllOf.refusals(refused)[2]).isNull();
        }
        call.cancel();
        awaitSettled();
        assertThat(narrow.peek("k", 1, 0).remaining()).isOne();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void resetForgetsTheKey(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        ticker.advance(Duration.ofSeconds(10));
        int fresh = algorithm == Algorithm.SMOOTH_BURSTY ? 6 : burst(algorithm);
        assertThat(exhaust(limiter, "k")).hasSize(fresh);
        limiter.reset("k");
        assertThat(exhaust(limiter, "k")).hasSize(fresh);
        exhaust(limiter, null);
        limiter.reset(null);
        assertThat(exhaust(limiter, null)).hasSize(fresh);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void cancelGivesBackTheLastReservation(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        List<Reservation> admitted = exhaust(limiter, "k");
        Reservation last = admitted.get(admitted.size() - 1);
        last.cancel();
        last.cancel();
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
    }

    /** Returns when what was settled so far counts, for a limiter that charges in the background. */
    protected void awaitSettled() {}

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void settlingChargesWhatTheCallHasCost(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        assertThat(remainingAfterSettling(limiter, "same", 3, 3)).isEqualTo(2);
        assertThat(remainingAfterSettling(limiter, "less", 3, 1)).isEqualTo(4);
        assertThat(remainingAfterSettling(limiter, "nothing", 3, 0)).isEqualTo(5);
        assertThat(remainingAfterSettling(limiter, "more", 2, 4)).isEqualTo(1);
        assertThat(remainingAfterSettling(limiter, "debt", 2, 9)).isZero();
        assertThat(remainingAfterSettling(limiter, null, 3, 1)).isEqualTo(4);
        assertThat(exhaust(limiter, "less")).hasSize(4);
        assertThat(exhaust(limiter, "more")).hasSize(1);
        assertThat(exhaust(limiter, "debt")).isEmpty();
    }

    private long remainingAfterSettling(RateLimiter limiter, Object key, long reserved, long cost) {
        limiter.reserve(key, reserved, 0).settle(cost);
        awaitSettled();
        return limiter.peek(key, 1, 0).remaining();
    }

    /** However far above the number the charges were, in one or in many calls. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void ofANumberThatIsRaisedAllThatWasChargedIsSpent(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        List<Reservation> calls = exhaust(limiter, "many");
        assertThat(limiter.tryAcquire("one", 3)).isTrue();
        limiter.reserve("one", 2, 0).settle(57);
        for (Reservation call : calls) {
            ticker.advance(Duration.ofMillis(10));
            call.settle(12);
        }
        awaitSettled();
        limiter.update(limit(algorithm).toBuilder().rate("100/s").build());
        for (String key : List.of("one", "many")) {
            assertThat(limiter.peek(key, 1, 0).remaining()).as(key).isEqualTo(40);
            assertThat(limiter.tryAcquire(key, 41)).as(key).isFalse();
            assertThat(limiter.tryAcquire(key, 40)).as(key).isTrue();
            assertThat(limiter.tryAcquire(key, 1)).as(key).isFalse();
        }
        ticker.advance(Duration.ofMillis(1_100));
        assertThat(limiter.tryAcquire("one", 100)).isTrue();
        assertThat(limiter.tryAcquire("many", 100)).isTrue();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void laterCallersWaitForWhatACallUsedBeyondItsReservation(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        limiter.reserve("k", 2, 0).settle(20);
        awaitSettled();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        Duration owed = Duration.ofMillis(
                switch (algorithm) {
                    case TOKEN_BUCKET, GCRA -> 1_600; // 5 less 20, and one more
                    case FIXED_WINDOW, SLIDING_LOG -> 1_000;
                    case SLIDING_WINDOW -> 1_100; // with the partly covered slot
                    default -> 2_000;
                });
        Duration retryAfter = limiter.peek("k", 1, 0).retryAfter();
        if (algorithm == Algorithm.WARM_UP) {
            assertThat(retryAfter).isGreaterThanOrEqualTo(owed);
        } else {
            assertThat(retryAfter).isEqualTo(owed);
        }
        ticker.advance(retryAfter);
        assertThat(limiter.tryAcquire("k", 1)).isTrue();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void onlyTheFirstOfSettleAndCancelCounts(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        Reservation settled = limiter.reserve("settled", 2, 0);
        settled.settle(2);
        Reservation cancelled = limiter.reserve("cancelled", 2, 0);
        cancelled.cancel();
        awaitSettled();
        Decision full = limiter.peek("settled", 1, 0);
        Decision empty = limiter.peek("cancelled", 1, 0);
        settled.cancel();
        settled.settle(9);
        settled.settle(0);
        settled.release();
        cancelled.settle(9);
        Reservation nothing = limiter.reserve("cancelled", 0, 0);
        nothing.cancel();
        nothing.settle(9);
        awaitSettled();
        assertThat(limiter.peek("settled", 1, 0)).isEqualTo(full);
        assertThat(limiter.peek("cancelled", 1, 0)).isEqualTo(empty);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aRefusedCallSettlesNothingAndANegativeCostIsAnError(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        List<Reservation> admitted = exhaust(limiter, "k");
        Reservation refused = limiter.reserve("k", 1, 0);
        Decision before = limiter.peek("k", 1, 0);
        refused.settle(20);
        awaitSettled();
        assertThatIllegalArgumentException().isThrownBy(() -> refused.settle(-1));
        assertThatIllegalArgumentException().isThrownBy(() -> admitted.get(0).settle(-1));
        assertThat(limiter.peek("k", 1, 0)).isEqualTo(before);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void whoWaitsGoesAtItsTimeWhateverAnotherHasCost(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm));
        List<Reservation> admitted = exhaust(limiter, "k");
        Reservation waiting = limiter.reserve("k", 1, Duration.ofSeconds(5).toNanos());
        CompletableFuture<Boolean> turn = waiting.awaitAsync();
        admitted.get(0).settle(50);
        awaitSettled();
        ticker.advanceNanos(waiting.waitNanos());
        assertThat(turn.get(PATIENCE, TimeUnit.SECONDS)).isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
    }

    /** The second call goes in 500 ms with 4 of its 5 permits; the first made no room for it. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void aCallThatIsSettledWhileItWaitsStillStandsInFrontOfOthers(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        Reservation first = limiter.reserve("k", 5, 0);
        Reservation waiting = limiter.reserve("k", 5, Duration.ofHours(1).toNanos());
        assertThat(waiting.waitNanos()).isEqualTo(500_000_000);
        waiting.settle(4);
        awaitSettled();
        ticker.advanceNanos(100_000_000);
        first.settle(0);
        awaitSettled();
        // The 4 that go in 400 ms leave one of the burst at that time; two more come 200 ms later.
        assertThat(limiter.reserve("k", 3, Duration.ofHours(1).toNanos()).waitNanos())
                .isEqualTo(600_000_000);
    }

    /** The second call goes in 300 ms and uses one permit then, so four are left, though nothing else was used. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void whatACallUsesThatHasWaitedCountsFromTheTimeAtWhichItGoes(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        Reservation first = limiter.reserve("k", 5, 0);
        Reservation second = limiter.reserve("k", 3, Duration.ofHours(1).toNanos());
        ticker.advanceNanos(second.waitNanos());
        second.settle(1);
        first.settle(0);
        awaitSettled();
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(4);
    }

    /** Calls that wait or not, settled for less at any time: what they use is within the limit in every period. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void callsThatAreSettledForLessNeverUseMoreThanTheLimit(Algorithm algorithm) {
        record Granted(Reservation reservation, long instant, long permits) {}
        for (int seed = 0; seed < schedules(); seed++) {
            Random random = new Random(seed);
            int burst = 1 + random.nextInt(12);
            String key = "k" + seed;
            RateLimiter limiter = limiter(Limit.of("law-" + burst, algorithm)
                    .rate("10/s")
                    .burst(burst)
                    .build());
            GrantLog used = new GrantLog();
            List<Granted> open = new ArrayList<>();
            long start = ticker.nanos();
            for (int step = 0; step < 60; step++) {
                if (random.nextInt(3) == 0) {
                    int most = random.nextInt(4) == 0 ? 2_000_000 : 200_000;
                    ticker.advanceNanos(1_000L * random.nextInt(most));
                }
                if (random.nextInt(5) < 3 || open.isEmpty()) {
                    long permits = 1L + random.nextInt(burst);
                    long maxWait = random.nextInt(3) == 0 ? 0 : 5_000_000_000L;
                    Reservation next = limiter.reserve(key, permits, maxWait);
                    if (!next.isRefused()) {
                        open.add(new Granted(next, ticker.nanos() - start + next.waitNanos(), permits));
                    }
                } else {
                    Granted ended = open.remove(random.nextInt(open.size()));
                    long cost = random.nextInt((int) ended.permits + 1);
                    ended.reservation.settle(cost);
                    used.add(ended.instant, cost);
                }
            }
            open.forEach(grant -> used.add(grant.instant, grant.permits));
            assertThat(used.worstExcess((double) burst, limiter.limit().rate()))
                    .as("seed " + seed)
                    .isLessThanOrEqualTo(1e-4);
            ticker.advance(Duration.ofHours(1));
        }
    }

    /**
     * 64 and 300 calls of one key at once, more than a state in Redis tells apart, that end in any order: what is left is the
     * burst less what was used.
     */
    @ParameterizedTest
    @ValueSource(ints = {64, 300})
    void callsInFlightGiveBackAllThatTheyHaveNotUsed(int calls) {
        RateLimiter limiter = limiter(Limit.of("in-flight", Algorithm.TOKEN_BUCKET)
                .rate("1/d")
                .burst(10L * calls)
                .build());
        for (int seed = 0; seed < 3; seed++) {
            Random random = new Random(seed);
            String key = "k" + seed;
            List<Reservation> open = new ArrayList<>();
            for (int call = 0; call < calls; call++) {
                open.add(limiter.reserve(key, 10, 0));
                ticker.advanceNanos(1_000L * random.nextInt(1_000));
            }
            Collections.shuffle(open, random);
            long left = 0;
            for (int ended = 0; ended < calls; ended++) {
                long used = random.nextInt(11);
                open.get(ended).settle(used);
                left += 10 - used;
                ticker.advanceNanos(1_000L * random.nextInt(1_000));
                if (ended % 100 == 0) {
                    // A limiter on Redis sends no more than some at once; whoever asks comes behind them.
                    limiter.peek(key, 1, 0);
                }
            }
            awaitSettled();
            assertThat(limiter.peek(key, 1, 0).remaining()).isBetween(left - 1, left);
        }
    }

    /** Had the first call not come, the bucket would hold 6 and what was refilled in three seconds. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void theRoomThatACallMadeIsGivenBackThoughAnotherCameBehindIt(Algorithm algorithm) {
        RateLimiter limiter =
                limiter(Limit.of("room", algorithm).rate("1/s").burst(12).build());
        Reservation first = limiter.reserve("k", 6, 0);
        assertThat(limiter.reserve("k", 6, 0).isRefused()).isFalse();
        ticker.advance(Duration.ofSeconds(3));
        first.settle(0);
        awaitSettled();
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(9);
    }

    @Test
    void theRoomThatACallMadeUnderSeveralLimitsIsGivenBack() {
        RateLimiter limiter = limiter(
                Limit.of("room", Algorithm.TOKEN_BUCKET).rate("1/s").burst(12).build());
        RateLimiter other = limiter(
                Limit.of("other", Algorithm.TOKEN_BUCKET).rate("1/s").burst(24).build());
        List<Claim> claims = List.of(Claim.of(limiter, "k", 6, 0), Claim.of(other, "k", 6, 0));
        Reservation first = AllOf.reserve(claims);
        assertThat(AllOf.reserve(claims).isRefused()).isFalse();
        ticker.advance(Duration.ofSeconds(3));
        first.settle(0);
        awaitSettled();
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(9);
    }

    @Test
    void callsInFlightAreNotSettled() {
        RateLimiter limiter = limiter(limit(Algorithm.CONCURRENCY));
        Reservation call = limiter.reserve("k", 1, 0);
        assertThatThrownBy(() -> call.settle(1)).isInstanceOf(UnsupportedOperationException.class);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void waitsExactlyAsLongAsPromised(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm));
        exhaust(limiter, "k");
        long needed = limiter.peek("k", 1, 0).retryAfter().toNanos();
        assertThat(limiter.reserve("k", 1, needed - 1000).isRefused()).isTrue();
        Reservation waiting = limiter.reserve("k", 1, needed);
        assertThat(waiting.isRefused()).isFalse();
        assertThat(waiting.waitNanos()).isEqualTo(needed);
        CompletableFuture<Boolean> turn = waiting.awaitAsync();
        assertThat(limiter.waiting()).isOne();
        ticker.advanceNanos(needed - 1000);
        assertThat(turn).isNotDone();
        ticker.advanceNanos(1000);
        assertThat(turn.get(PATIENCE, TimeUnit.SECONDS)).isTrue();
        assertThat(limiter.waiting()).isZero();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void interruptingASleeperGivesItsPermitsBack(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm));
        exhaust(limiter, "k");
        Decision before = limiter.peek("k", 1, 0);
        Reservation waiting = limiter.reserve("k", 1, Duration.ofSeconds(30).toNanos());
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread sleeper = new Thread(() -> {
            try {
                waiting.await();
            } catch (InterruptedException ex) {
                thrown.set(ex);
            }
        });
        sleeper.start();
        while (ticker.sleeping() == 0) {
            Thread.onSpinWait();
        }
        sleeper.interrupt();
        sleeper.join();
        assertThat(thrown.get()).isInstanceOf(InterruptedException.class);
        assertThat(limiter.waiting()).isZero();
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(before.retryAfter());
    }

    @Test
    void crowdsOutWhoWouldBeOneSleeperTooMany() {
        RateLimiter limiter =
                limiter(limit(Algorithm.TOKEN_BUCKET).toBuilder().maxWaiting(1).build());
        exhaust(limiter, "k");
        Reservation first = limiter.reserve("k", 1, Duration.ofSeconds(5).toNanos());
        Reservation second = limiter.reserve("k", 1, Duration.ofSeconds(5).toNanos());
        CompletableFuture<Boolean> sleeping = first.awaitAsync();
        assertThat(second.awaitAsync()).isCompletedWithValue(false);
        assertThat(second.isRefused()).isTrue();
        assertThat(limiter.reserve("k", 1, Duration.ofSeconds(5).toNanos()).isRefused())
                .isTrue();
        sleeping.cancel(false);
        assertThat(limiter.waiting()).isZero();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void aRejectionStaysWhatItIsWhenItsCallerGivesUp(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        exhaust(limiter, "k");
        for (long permits : new long[] {1, Long.MAX_VALUE}) {
            Reservation rejected = limiter.reserve("k", permits, 0);
            Decision decision = rejected.decision();
            assertThat(decision.admitted()).isFalse();
            rejected.cancel();
            rejected.release();
            assertThat(rejected.decision()).isEqualTo(decision);
        }
    }

    /** It needs no seat any more. */
    @Test
    void whoMayGoAfterAWaitMayGoStillWhenOthersWait() throws Exception {
        RateLimiter limiter =
                limiter(limit(Algorithm.TOKEN_BUCKET).toBuilder().maxWaiting(1).build());
        exhaust(limiter, "k");
        long longest = Duration.ofHours(1).toNanos();
        Reservation first = limiter.reserve("k", 1, longest);
        CompletableFuture<Boolean> turn = first.awaitAsync();
        ticker.advanceNanos(first.waitNanos());
        assertThat(turn.get(PATIENCE, TimeUnit.SECONDS)).isTrue();
        CompletableFuture<Boolean> next = limiter.reserve("k", 1, longest).awaitAsync();
        assertThat(limiter.waiting()).isOne();
        assertThat(first.awaitAsync()).isCompletedWithValue(true);
        assertThat(first.await()).isTrue();
        assertThat(first.isRefused()).isFalse();
        next.cancel(false);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void peekSeesThatNoSeatIsLeft(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm).toBuilder().maxWaiting(1).build());
        exhaust(limiter, "k");
        long longest = Duration.ofHours(1).toNanos();
        assertThat(limiter.peek("k", 1, longest).admitted()).isTrue();
        CompletableFuture<Boolean> sleeping = limiter.reserve("k", 1, longest).awaitAsync();
        assertThat(limiter.waiting()).isOne();
        Decision peeked = limiter.peek("k", 1, longest);
        assertThat(peeked.admitted()).isFalse();
        assertThat(limiter.peekAsync(Call.of("k", 1, longest))
                        .toCompletableFuture()
                        .get(PATIENCE, TimeUnit.SECONDS))
                .isEqualTo(peeked);
        Decision decided = limiter.reserve("k", 1, longest).decision();
        assertThat(decided.admitted()).isFalse();
        assertThat(decided.retryAfter()).isEqualTo(peeked.retryAfter());
        sleeping.cancel(false);
        awaitSettled();
        assertThat(limiter.waiting()).isZero();
        assertThat(limiter.peek("k", 1, longest).admitted()).isTrue();
    }

    /** Also for as long as what a caller does then takes: only those who wait count. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void whoMayGoAfterAWaitHasLeftItsSeat(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm).toBuilder().maxWaiting(1).build());
        List<Reservation> before = exhaust(limiter, "k");
        long longest = Duration.ofHours(1).toNanos();
        Reservation waiting = limiter.reserve("k", 1, longest);
        CompletableFuture<List<Object>> seen = waiting.awaitAsync()
                .thenApply(admitted -> List.of(
                        admitted,
                        limiter.waiting(),
                        limiter.reserve("k", 1, longest).isRefused()));
        before.get(0).release();
        ticker.advanceNanos(waiting.waitNanos());
        assertThat(seen.get(PATIENCE, TimeUnit.SECONDS)).containsExactly(true, 0, false);
    }

    @Test
    void whoMayGoAfterAWaitForSeveralLimitsHasLeftItsSeats() throws Exception {
        RateLimiter bucket =
                limiter(limit(Algorithm.TOKEN_BUCKET).toBuilder().maxWaiting(1).build());
        RateLimiter calls =
                limiter(limit(Algorithm.CONCURRENCY).toBuilder().maxWaiting(1).build());
        exhaust(bucket, "k");
        List<Reservation> before = exhaust(calls, "k");
        long longest = Duration.ofHours(1).toNanos();
        Reservation waiting =
                AllOf.reserve(List.of(Claim.of(bucket, "k", 1, longest), Claim.of(calls, "k", 1, longest)));
        CompletableFuture<List<Object>> seen = waiting.awaitAsync()
                .thenApply(admitted -> List.of(
                        admitted,
                        bucket.waiting() + calls.waiting(),
                        bucket.reserve("k", 1, longest).isRefused(),
                        calls.reserve("k", 1, longest).isRefused()));
        before.get(0).release();
        ticker.advanceNanos(waiting.waitNanos());
        assertThat(seen.get(PATIENCE, TimeUnit.SECONDS)).containsExactly(true, 0, false, false);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void oneKeyTakesAtMostHalfOfTheSeats(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm).toBuilder().maxWaiting(3).build());
        exhaust(limiter, "greedy");
        exhaust(limiter, "other");
        long longest = Duration.ofHours(1).toNanos();
        Reservation spare = limiter.reserve("greedy", 1, longest);
        List<CompletableFuture<Boolean>> sleeping = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            sleeping.add(limiter.reserve("greedy", 1, longest).awaitAsync());
        }
        assertThat(limiter.peek("greedy", 1, longest).admitted()).isFalse();
        assertThat(limiter.reserve("greedy", 1, longest).isRefused()).isTrue();
        assertThat(spare.awaitAsync().get(PATIENCE, TimeUnit.SECONDS)).isFalse();
        assertThat(limiter.waiting()).isEqualTo(2);
        assertThat(limiter.peek("other", 1, longest).admitted()).isTrue();
        sleeping.add(limiter.reserve("other", 1, longest).awaitAsync());
        assertThat(limiter.waiting()).isEqualTo(3);
        assertThat(limiter.peek("third", 1, longest).admitted()).isTrue();
        sleeping.forEach(sleeper -> sleeper.cancel(false));
        awaitSettled();
        assertThat(limiter.waiting()).isZero();
        assertThat(limiter.peek("greedy", 1, longest).admitted()).isTrue();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void closingEndsEveryWaitAndGivesItsPermitsBack(Algorithm algorithm) throws Exception {
        RateLimiter limiter =
                limiter(limit(algorithm).toBuilder().maxWaiting(10).build());
        exhaust(limiter, null);
        long longest = Duration.ofHours(1).toNanos();
        CompletableFuture<Boolean> waiting = limiter.reserve(null, 1, longest).awaitAsync();
        Reservation sleeping = limiter.reserve(null, 1, longest);
        FutureTask<Boolean> sleeper = new FutureTask<>(sleeping::await);
        Thread thread = new Thread(sleeper);
        thread.start();
        awaitWaiting(limiter, 2);
        Reservation late = limiter.reserve(null, 1, longest);

        limiter.close();

        assertThat(waiting)
                .failsWithin(Duration.ofSeconds(PATIENCE))
                .withThrowableThat()
                .withCauseInstanceOf(RateLimiterClosedException.class);
        assertThat(sleeper)
                .failsWithin(Duration.ofSeconds(PATIENCE))
                .withThrowableThat()
                .withCauseInstanceOf(RateLimiterClosedException.class);
        assertThatThrownBy(late::await).isInstanceOf(RateLimiterClosedException.class);
        awaitSettled();
        awaitWaiting(limiter, 0);
    }

    private static void awaitWaiting(RateLimiter limiter, int callers) throws InterruptedException {
        for (int i = 0; i < PATIENCE * 1_000 && limiter.waiting() != callers; i++) {
            Thread.sleep(1);
        }
        assertThat(limiter.waiting()).isEqualTo(callers);
    }

    /** A window that follows has been reserved, and nothing given back, if it was charged before the other was asked. */
    @Test
    void aCallThatMayWaitAndIsRefusedByAnotherLimitLeavesAWindowAsItWas() throws Exception {
        RateLimiter window =
                limiter(Limit.of("window", Algorithm.FIXED_WINDOW).rate("10/m").build());
        RateLimiter spent =
                limiter(Limit.of("spent", Algorithm.TOKEN_BUCKET).rate("1/h").build());
        RateLimiter full =
                limiter(Limit.of("full", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        RateLimiter elsewhere = new InMemoryRateLimiter(
                Limit.of("elsewhere", Algorithm.TOKEN_BUCKET).rate("1/h").build(), ticker, 10);
        List<RateLimiter> refusing = List.of(spent, full, elsewhere);
        refusing.forEach(
                limiter -> assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse());
        assertThat(window.tryAcquire("k", 7)).isTrue();
        for (RateLimiter limiter : refusing) {
            List<Claim> claims =
                    List.of(Claim.of(window, "k", 5, Duration.ofHours(1).toNanos()), Claim.of(limiter, "k", 1, 0));
            Reservation refused = AllOf.reserve(claims);
            assertThat(refused.isRefused()).isTrue();
            assertThat(AllOf.decisive(AllOf.refusals(refused))).isOne();
            refused = AllOf.reserveAsync(claims).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS);
            assertThat(refused.isRefused()).isTrue();
            assertThat(AllOf.decisive(AllOf.refusals(refused))).isOne();
            assertThat(refused.decision().limit()).isEqualTo(limiter.limit().name());
        }
        awaitSettled();
        assertThat(window.tryAcquire("k", 3)).isTrue();
        assertThat(window.tryAcquire("k", 1)).isFalse();
    }

    /** As a transfer from an account to itself, whose both keys are one. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG", "CONCURRENCY"})
    void claimsOnOneBudgetAreAskedForTogether(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm));
        long longest = Duration.ofHours(1).toNanos();
        for (long maxWait : new long[] {0, longest}) {
            List<Claim> tooMany = List.of(Claim.of(limiter, "k", 3, maxWait), Claim.of(limiter, "k", 3, maxWait));
            for (Reservation refused : List.of(
                    AllOf.reserve(tooMany),
                    AllOf.reserveAsync(tooMany).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS))) {
                assertThat(refused.isRefused()).isTrue();
                assertThat(refused.decision().never()).isTrue();
                assertThat(refused.decision().retryAfter()).isNull();
                assertThat(AllOf.refusals(refused)).hasSize(2).doesNotContainNull();
            }
        }
        assertThat(AllOf.reserve(List.of(Claim.of(limiter, "k", 3, 0), Claim.of(limiter, "other", 3, 0)))
                        .isRefused())
                .isFalse();
        List<Claim> some = List.of(Claim.of(limiter, "k", 1, 0), Claim.of(limiter, "k", 2, 0));
        Reservation refused = AllOf.reserve(some);
        assertThat(refused.isRefused()).isTrue();
        assertThat(refused.decision().never()).isFalse();
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(2);
        if (algorithm != Algorithm.CONCURRENCY) {
            Duration retryAfter = refused.decision().retryAfter();
            assertThat(retryAfter).isNotNull();
            ticker.advance(retryAfter);
            Reservation retry = AllOf.reserve(some);
            assertThat(retry.isRefused()).isFalse();
            AllOf.member(retry, 1).settle(1);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void eachClaimOnOneBudgetHasItsOwnCost(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        assertUsed(limiter, 1, call -> {
            AllOf.member(call, 1).settle(1);
            AllOf.member(call, 0).settle(0);
        });
        assertUsed(limiter, 3, call -> {
            AllOf.member(call, 0).settle(2);
            AllOf.member(call, 0).settle(3);
            AllOf.member(call, 1).settle(1);
        });
        assertUsed(limiter, 3, call -> {
            AllOf.member(call, 0).cancel();
            AllOf.member(call, 1).release();
        });
        assertUsed(limiter, 3, call -> {
            AllOf.member(call, 1).settle(2);
            call.release();
        });
        assertUsed(limiter, 2, call -> {
            AllOf.member(call, 1).settle(2);
            call.cancel();
        });
        assertUsed(limiter, 0, call -> {
            AllOf.member(call, 1).cancel();
            AllOf.member(call, 0).cancel();
        });
        assertUsed(limiter, 4, call -> {
            AllOf.member(call, 1).release();
            AllOf.member(call, 0).release();
        });
        assertUsed(limiter, 4, Reservation::release);
        assertUsed(limiter, 0, Reservation::cancel);
        assertUsed(limiter, 4, call -> {
            call.release();
            call.settle(2);
        });
    }

    private void assertUsed(RateLimiter limiter, long permits, Consumer<Reservation> end) {
        ticker.advance(Duration.ofMinutes(1));
        Reservation call = AllOf.reserve(List.of(Claim.of(limiter, "k", 1, 0), Claim.of(limiter, "k", 3, 0)));
        assertThat(AllOf.member(call, 0).decision().remaining()).isEqualTo(1);
        end.accept(call);
        awaitSettled();
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(5 - permits);
    }

    /** The next caller pays for both claims: the second one does not wait for the first. */
    @ParameterizedTest
    @EnumSource(names = {"SMOOTH_BURSTY", "LEAKY_BUCKET", "WARM_UP"})
    void claimsOnOneBudgetDoNotWaitForEachOtherWhereTheNextCallerPays(Algorithm algorithm) throws Exception {
        RateLimiter window =
                limiter(Limit.of("beside", Algorithm.FIXED_WINDOW).rate("99/d").build());
        for (Limit limit : pacedLimits(algorithm)) {
            RateLimiter limiter = limiter(limit);
            List<List<Claim>> calls = List.of(
                    List.of(Claim.of(limiter, "k", 1, 0), Claim.of(limiter, "k", 2, 0)),
                    List.of(Claim.of(limiter, "k", 0, 0), Claim.of(limiter, "k", 2, 0), Claim.of(limiter, "k", 1, 0)),
                    List.of(Claim.of(limiter, "k", 2, 0), Claim.of(window, "k", 1, 0), Claim.of(limiter, "k", 1, 0)));
            for (List<Claim> call : calls) {
                for (boolean blocking : new boolean[] {true, false}) {
                    while (limiter.peek("k", 1, 0).admitted()) {
                        limiter.reserve("k", 1, 0);
                    }
                    ticker.advance(limiter.peek("k", 1, 0).retryAfter());
                    Reservation admitted = blocking
                            ? AllOf.reserve(call)
                            : AllOf.reserveAsync(call).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS);
                    assertThat(admitted.isRefused()).as("%s", limit).isFalse();
                    assertThat(admitted.waitNanos()).isZero();
                    assertThat(admitted.mayWait()).isFalse();
                    assertThat(admitted.await()).isTrue();
                    assertThat(limiter.waiting()).isZero();
                    assertThat(limiter.peek("k", 1, 0).retryAfter())
                            .isBetween(Duration.ofMillis(300), Duration.ofMillis(900));
                    assertThat(limiter.blockedKeys()).isEmpty();
                }
            }
            if (algorithm == Algorithm.LEAKY_BUCKET) {
                List<Claim> tooMany = List.of(Claim.of(limiter, "k", 3, 0), Claim.of(limiter, "k", 3, 0));
                assertThat(AllOf.reserve(tooMany).decision().never()).isTrue();
            }
        }
    }

    /** Also where calls are charged, or keys blocked. */
    private static List<Limit> pacedLimits(Algorithm algorithm) {
        return List.of(
                paced("plain", algorithm).build(),
                paced("charged", algorithm).charged(true).build(),
                paced("blocks", algorithm).block(Duration.ofMinutes(1)).build());
    }

    private static Limit.Builder paced(String name, Algorithm algorithm) {
        Limit.Builder limit = Limit.of(name + "-" + algorithm, algorithm).rate("10/s");
        return algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofSeconds(1)) : limit.burst(5);
    }

    /** The limit that a rejection has found free is used up by a call under it alone, or of others. */
    @Test
    void aRejectionNamesTheLimitThatHasBeenUsedUpSinceTheRejectionBefore() throws Exception {
        RateLimiter pace =
                limiter(Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/s").build());
        RateLimiter day =
                limiter(Limit.of("day", Algorithm.TOKEN_BUCKET).rate("1/d").build());
        RateLimiter other =
                limiter(Limit.of("other", Algorithm.TOKEN_BUCKET).rate("9/d").build());
        for (String kind : new String[] {"alone", "beside another", "charged"}) {
            List<Claim> claims = List.of(Claim.of(pace, kind, 1, 0), Claim.of(day, kind, 1, 0));
            assertThat(pace.tryAcquire(kind, 1)).isTrue();
            for (Reservation rejected : reservedBothWays(claims)) {
                assertThat(AllOf.refusals(rejected)[0]).isNotNull();
                assertThat(AllOf.refusals(rejected)[1]).isNull();
            }
            boolean taken = switch (kind) {
                case "alone" -> day.tryAcquire(kind, 1);
                case "charged" -> {
                    day.reserve(kind, 0, 0).settle(1);
                    yield true;
                }
                default ->
                    !AllOf.reserve(List.of(Claim.of(other, kind, 1, 0), Claim.of(day, kind, 1, 0)))
                            .isRefused();
            };
            assertThat(taken).isTrue();
            awaitSettled();
            for (Reservation rejected : reservedBothWays(claims)) {
                assertThat(AllOf.refusals(rejected)).doesNotContainNull();
                assertThat(rejected.decision().limit()).isEqualTo("day");
                assertThat(rejected.decision().retryAfter()).isEqualTo(Duration.ofDays(1));
            }
        }
    }

    @Test
    void aRejectionNamesThePlacesThatHaveBeenTakenSinceTheRejectionBefore() throws Exception {
        RateLimiter pace =
                limiter(Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/s").build());
        RateLimiter places = limiter(
                Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        List<Claim> claims = List.of(Claim.of(places, "k", 1, 0), Claim.of(pace, "k", 1, 0));
        assertThat(pace.tryAcquire("k", 1)).isTrue();
        for (int call = 0; call < 2; call++) {
            for (Reservation rejected : reservedBothWays(claims)) {
                assertThat(AllOf.refusals(rejected)[0]).isNull();
            }
            Reservation place = places.reserve("k", 1, 0);
            for (Reservation rejected : reservedBothWays(claims)) {
                assertThat(AllOf.refusals(rejected)).doesNotContainNull();
            }
            place.release();
            awaitSettled();
        }
    }

    /** Where calls are charged, a claim of no permits is asked as one of a single permit: before the others take theirs. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aClaimOfNoPermitsDoesNotWaitForAnotherOfItsCall(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm).toBuilder().charged(true).build());
        long permits = hasCapacity(algorithm) ? 5 : 1;
        for (boolean blocking : new boolean[] {true, false}) {
            ticker.advance(Duration.ofSeconds(9));
            exhaust(limiter, "k");
            do {
                ticker.advance(Duration.ofMillis(100));
            } while (!limiter.peek("k", permits, 0).admitted());
            for (long maxWait : new long[] {0, Duration.ofHours(1).toNanos()}) {
                List<Claim> call =
                        List.of(Claim.of(limiter, "k", permits, maxWait), Claim.of(limiter, "k", 0, maxWait));
                Reservation admitted = blocking
                        ? AllOf.reserve(call)
                        : AllOf.reserveAsync(call).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS);
                assertThat(admitted.isRefused()).isFalse();
                assertThat(admitted.waitNanos()).isZero();
                admitted.cancel();
                awaitSettled();
            }
        }
    }

    /** A call that waits goes when its first claim may go. */
    @Test
    void claimsOnOneBudgetWaitOnce() throws Exception {
        for (Limit limit : pacedLimits(Algorithm.LEAKY_BUCKET)) {
            RateLimiter limiter = limiter(limit);
            long longest = Duration.ofMillis(limit.maxWaiting() == 0 ? 0 : 250).toNanos();
            List<Claim> call = List.of(Claim.of(limiter, "k", 2, longest), Claim.of(limiter, "k", 1, longest));
            assertThat(AllOf.reserve(call).waitNanos()).as("%s", limit).isZero();
            ticker.advance(Duration.ofMillis(100));
            Reservation second = AllOf.reserve(call);
            assertThat(second.isRefused()).isEqualTo(longest == 0);
            if (longest > 0) {
                assertThat(second.waitNanos()).isEqualTo(Duration.ofMillis(200).toNanos());
                CompletableFuture<Boolean> waiting = second.awaitAsync();
                assertThat(limiter.waiting()).isOne();
                ticker.advance(Duration.ofMillis(200));
                assertThat(waiting.get(PATIENCE, TimeUnit.SECONDS)).isTrue();
                assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(300));
            }
        }
    }

    /** Each claim costs what it is charged, and gives nothing back of the other one. */
    @Test
    void claimsOnOneBudgetAreSettledApart() {
        for (Limit limit : pacedLimits(Algorithm.LEAKY_BUCKET)) {
            RateLimiter limiter = limiter(limit);
            for (int charged : new int[] {1, 0}) {
                Reservation call = AllOf.reserve(List.of(
                        Claim.of(limiter, "k", charged == 0 ? 1 : 2, 0),
                        Claim.of(limiter, "k", charged == 0 ? 2 : 1, 0)));
                assertThat(call.isRefused()).as("%s", limit).isFalse();
                AllOf.member(call, charged).settle(0);
                call.release();
                awaitSettled();
                assertThat(limiter.peek("k", 1, 0).retryAfter()).as("%s", limit).isEqualTo(Duration.ofMillis(200));
                ticker.advance(Duration.ofSeconds(9));
                Reservation both = AllOf.reserve(List.of(Claim.of(limiter, "k", 2, 0), Claim.of(limiter, "k", 2, 0)));
                assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(400));
                if (charged == 0) {
                    both.cancel();
                } else {
                    both.settle(0);
                }
                awaitSettled();
                assertThat(limiter.tryAcquire("k", 1)).isTrue();
                ticker.advance(Duration.ofSeconds(9));
            }
        }
    }

    /** The next window would have been reserved for the first claim, and the present one closed. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW"})
    void claimsOnOneWindowThatAreRefusedLeaveItOpen(Algorithm algorithm) throws Exception {
        RateLimiter window = limiter(Limit.of("window", algorithm).rate("10/m").build());
        assertThat(window.tryAcquire("k", 7)).isTrue();
        long longest = Duration.ofSeconds(70).toNanos();
        for (long second : new long[] {3, 8}) {
            List<Claim> claims = List.of(
                    Claim.of(window, "k", 5, longest), Claim.of(window, "k", second, second == 3 ? 0 : longest));
            assertThat(AllOf.reserve(claims).isRefused()).isTrue();
            assertThat(AllOf.reserveAsync(claims)
                            .toCompletableFuture()
                            .get(PATIENCE, TimeUnit.SECONDS)
                            .isRefused())
                    .isTrue();
        }
        awaitSettled();
        assertThat(window.tryAcquire("k", 3)).isTrue();
        assertThat(window.tryAcquire("k", 1)).isFalse();
    }

    @Test
    void aCallThatSleepsForAnotherLimitTakesItsPlaceWhenThatLetsItGo() throws Exception {
        RateLimiter pace = limiter(
                Limit.of("pace", Algorithm.LEAKY_BUCKET).rate("1/5s").burst(9).build());
        RateLimiter places = limiter(
                Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        RateLimiter near = new InMemoryRateLimiter(
                Limit.of("near", Algorithm.LEAKY_BUCKET).rate("1/5s").burst(9).build(), ticker, 10);
        for (RateLimiter pacing : List.of(pace, near)) {
            pacing.tryAcquire("k", 1);
            List<Claim> claims = List.of(
                    Claim.of(places, "k", 1, Duration.ofSeconds(9).toNanos()),
                    Claim.of(pacing, "k", 1, Duration.ofMinutes(1).toNanos()));
            Reservation call = AllOf.reserveAsync(claims).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS);
            assertThat(call.isRefused()).isFalse();
            CompletableFuture<Boolean> turn = call.awaitAsync();
            assertThat(places.peek("k", 1, 0).admitted())
                    .as("nobody holds the place asleep")
                    .isTrue();
            ticker.advance(Duration.ofMillis(5_001));
            assertThat(turn.get(PATIENCE, TimeUnit.SECONDS)).isTrue();
            assertThat(places.peek("k", 1, 0).admitted()).isFalse();
            call.release();
            awaitSettled();
            assertThat(places.peek("k", 1, 0).admitted()).isTrue();
        }
    }

    @Test
    void aWaitThatOneLimitGivesUpEndsTheCallAtOnce() throws Exception {
        RateLimiter pace = limiter(
                Limit.of("pace", Algorithm.LEAKY_BUCKET).rate("1/m").burst(9).build());
        RateLimiter places = limiter(
                Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        Reservation flight = places.reserve("k", 1, 0);
        pace.tryAcquire("k", 1);
        List<Claim> claims = List.of(
                Claim.of(pace, "k", 1, Duration.ofHours(1).toNanos()),
                Claim.of(places, "k", 1, Duration.ofSeconds(1).toNanos()));
        Reservation call = AllOf.reserveAsync(claims).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS);
        CompletableFuture<Boolean> turn = call.awaitAsync();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(turn.get(PATIENCE, TimeUnit.SECONDS)).isFalse();
        assertThat(call.isRefused()).isTrue();
        assertThat(call.decision().limit()).isEqualTo("places");
        assertThat(pace.waiting() + places.waiting()).isZero();
        flight.release();
        awaitSettled();
        assertThat(places.peek("k", 1, 0).admitted()).isTrue();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void acquireThrowsARefusalThatNamesTheLimitAndNotTheKey(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        exhaust(limiter, "secret");
        assertThatThrownBy(() -> limiter.acquire("secret", 1, 0))
                .isInstanceOf(RateLimitExceededException.class)
                .hasMessageContaining("contract-" + algorithm)
                .hasMessageNotContaining("secret");
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void decidesWithoutAThreadAsWithOne(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm));
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            calls.add(limiter.reserveAsync("k", 1, 0).toCompletableFuture());
        }
        int admitted = 0;
        for (CompletableFuture<Reservation> call : calls) {
            admitted += call.get(PATIENCE, TimeUnit.SECONDS).isRefused() ? 0 : 1;
        }
        assertThat(admitted).isEqualTo(burst(algorithm));
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void admitsTheExactTotalUnderThreads(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(limit(algorithm));
        int threads = 8;
        CountDownLatch gate = new CountDownLatch(1);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<Integer>> totals = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                totals.add(pool.submit(() -> {
                    gate.await();
                    int admitted = 0;
                    for (int call = 0; call < 25; call++) {
                        admitted += limiter.reserve("k", 1, 0).isRefused() ? 0 : 1;
                    }
                    return admitted;
                }));
            }
            gate.countDown();
            int total = 0;
            for (Future<Integer> part : totals) {
                total += part.get(PATIENCE, TimeUnit.SECONDS);
            }
            assertThat(total).isEqualTo(burst(algorithm));
        } finally {
            pool.shutdownNow();
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void aChangeOfTheBurstKeepsWhatIsLeftOrTheShareOfIt(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        Limit ten = limit(algorithm).toBuilder().burst(10).build();
        limiter.reserve("more", 1, 0);
        limiter.update(ten);
        assertThat(limiter.limit()).isEqualTo(ten);
        assertThat(limiter.peek("more", 1, 0).remaining()).isEqualTo(4);
        assertThat(exhaust(limiter, "more")).hasSize(4);
        limiter.reserve("less", 6, 0);
        limiter.update(limit(algorithm));
        assertThat(limiter.peek("less", 1, 0).remaining()).isEqualTo(2);
        assertThat(exhaust(limiter, "less")).hasSize(2);
    }

    private static Limit window(Algorithm algorithm, long permits) {
        return limit(algorithm).toBuilder().rate(permits + "/s").build();
    }

    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aWindowKeepsWhatIsSpentThroughChangesOfItsNumber(Algorithm algorithm) {
        RateLimiter limiter = limiter(window(algorithm, 5));
        assertThat(exhaust(limiter, "k")).hasSize(5);
        limiter.update(window(algorithm, 8));
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(3);
        assertThat(limiter.tryAcquire("k", 2)).isTrue();
        limiter.update(window(algorithm, 6));
        assertThat(limiter.peek("k", 1, 0).remaining()).isZero();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        limiter.update(window(algorithm, 10));
        assertThat(limiter.tryAcquire("k", 4)).isFalse();
        assertThat(exhaust(limiter, "k")).hasSize(3);
    }

    /** The twin is a list of the times of all permits. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aWindowThatIsChangedAgainAndAgainIsAsItsTwin(Algorithm algorithm) {
        Random random = new Random(11);
        int permits = 20;
        RateLimiter limiter = limiter(window(algorithm, permits));
        List<Long> spent = new ArrayList<>();
        for (int step = 0; step < 400; step++) {
            if (random.nextInt(3) == 0) {
                ticker.advanceNanos(1_000L * random.nextInt(300_000));
            }
            if (random.nextInt(6) == 0) {
                permits = 1 + random.nextInt(40);
                limiter.update(window(algorithm, permits));
            }
            long micros = ticker.nanos() / 1_000;
            long first = switch (algorithm) {
                case FIXED_WINDOW -> micros - micros % 1_000_000;
                case SLIDING_WINDOW -> micros - micros % 100_000 - 1_000_000;
                default -> micros - 999_999;
            };
            int left = Math.max(
                    0,
                    permits - (int) spent.stream().filter(time -> time >= first).count());
            int asked = 1 + random.nextInt(5);
            String where = algorithm + " step " + step + " of " + permits;
            assertThat(limiter.peek("k", 1, 0).remaining()).as(where).isEqualTo(left);
            assertThat(limiter.tryAcquire("k", asked)).as(where).isEqualTo(asked <= left);
            if (asked <= left) {
                spent.addAll(Collections.nCopies(asked, micros));
            }
        }
        assertThat(spent).hasSizeGreaterThan(300);
    }

    @Test
    void aChangeKeepsDebtInPermits() {
        RateLimiter limiter = limiter(
                Limit.of("debt", Algorithm.TOKEN_BUCKET).rate("1/s").burst(1).build());
        limiter.reserve("k", 1, 0);
        assertThat(limiter.reserve("k", 1, Duration.ofSeconds(1).toNanos()).waitNanos())
                .isEqualTo(1_000_000_000);
        limiter.update(limiter.limit().toBuilder().rate("10/s").build());
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(200));
    }

    /** Another algorithm, period, number of slots or zone. */
    @Test
    void whatCountsInAnotherWayBeginsAnewAndGetsNothingBack() {
        RateLimiter limiter =
                limiter(Limit.of("anew", Algorithm.TOKEN_BUCKET).rate("5/s").build());
        List<Limit> limits = new ArrayList<>();
        for (Algorithm algorithm :
                List.of(Algorithm.SLIDING_LOG, Algorithm.GCRA, Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW)) {
            limits.add(Limit.of("anew", algorithm).rate("5/s").build());
        }
        limits.add(limits.get(3).toBuilder().rate("5/m").build());
        limits.add(limits.get(3).toBuilder().slots(4).build());
        limits.add(limits.get(2).toBuilder().rate("5/d").build());
        limits.add(limits.get(2).toBuilder()
                .rate("5/12h")
                .zone(ZoneId.of("Asia/Kathmandu"))
                .build());
        limits.add(limits.get(0).toBuilder().rate("5/m").build());
        for (Limit next : limits) {
            List<Reservation> before = exhaust(limiter, "k");
            assertThat(before).as("before " + next).hasSize(5);
            limiter.update(next);
            assertThat(limiter.tryAcquire("k", 1)).as(next.toString()).isTrue();
            before.get(0).cancel();
            before.get(1).settle(0);
            assertThat(limiter.peek("k", 1, 0).remaining()).as(next.toString()).isEqualTo(4);
            limiter.reset("k");
        }
    }

    /** Also without a call between the change and the give-back, and where the number of permits shrinks. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aChangeEndsWhatCanBeGivenBack(Algorithm algorithm) {
        if (!changesBeforeACall()) {
            return;
        }
        boolean window = algorithm.family() == Algorithm.Family.WINDOW;
        for (String rate : List.of(window ? "6/s" : "11/s", window ? "4/s" : "9/s")) {
            RateLimiter limiter = limiter(limit(algorithm));
            List<Reservation> taken = exhaust(limiter, "seen " + rate);
            taken.addAll(exhaust(limiter, "unseen " + rate));
            limiter.update(limit(algorithm).toBuilder().rate(rate).build());
            Decision before = limiter.peek("seen " + rate, 1, 0);
            for (Reservation call : taken) {
                call.settle(0);
            }
            for (String key : List.of("seen " + rate, "unseen " + rate)) {
                assertThat(limiter.peek(key, 1, 0).remaining()).as(key).isEqualTo(before.remaining());
                assertThat(limiter.peek(key, 1, 0).retryAfter()).as(key).isEqualTo(before.retryAfter());
            }
        }
    }

    /** What a call has cost beyond its permits is charged to the budget of today. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void anExcessIsChargedWhateverTheLimitHasBecome(Algorithm algorithm) {
        for (Algorithm next : List.of(algorithm, Algorithm.FIXED_WINDOW, Algorithm.GCRA)) {
            RateLimiter limiter = limiter(limit(algorithm));
            Object key = next;
            Reservation call = limiter.reserve(key, 1, 0);
            limiter.update(renamed(limit(next), limiter.limit()));
            call.settle(1_000);
            assertThat(limiter.tryAcquire(key, 1)).as("to " + next).isFalse();
        }
    }

    /** The limit under the name of the other one. */
    private static Limit renamed(Limit limit, Limit named) {
        return limit.algorithm() == named.algorithm()
                ? named
                : Limit.of(named.name(), limit.algorithm()).rate(limit.rate()).build();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aLimitThatWasClosedOrUnlimitedGoesOnWithItsBudget(Algorithm algorithm) {
        for (String between : List.of("0/s", "unlimited")) {
            RateLimiter limiter = limiter(limit(algorithm));
            limiter.reset("k");
            exhaust(limiter, "k");
            Decision spent = limiter.peek("k", 1, 0);
            limiter.update(limit(algorithm).toBuilder().rate(between).build());
            assertThat(limiter.tryAcquire("k", 1)).isEqualTo(between.equals("unlimited"));
            limiter.update(limit(algorithm));
            assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(spent.remaining());
            assertThat(limiter.tryAcquire("k", 1)).isFalse();
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aResetWhileALimitIsClosedForgetsTheBudgetThatItKeeps(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        exhaust(limiter, "k");
        limiter.update(limit(algorithm).toBuilder().rate("0/s").build());
        limiter.reset("k");
        limiter.update(limit(algorithm));
        assertThat(exhaust(limiter, "k")).hasSize(burst(algorithm));
    }

    @Test
    void refusesAChangeItCannotMake() {
        RateLimiter limiter = limiter(limit(Algorithm.GCRA));
        Limit renamed = Limit.of("other", Algorithm.GCRA).rate("1/s").build();
        Limit inFlight = Limit.of(limiter.limit().name(), Algorithm.CONCURRENCY)
                .maxConcurrent(1)
                .build();
        assertThatIllegalArgumentException().isThrownBy(() -> limiter.update(renamed));
        assertThatIllegalArgumentException().isThrownBy(() -> limiter.update(inFlight));
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aClosedLimitAdmitsNobodyAndAnUnlimitedOneEverybody(Algorithm algorithm) {
        RateLimiter closed = limiter(limit(algorithm).toBuilder().rate("0/s").build());
        assertThat(closed.tryAcquire("k", 1)).isFalse();
        assertThat(closed.reserve("k", 1, Long.MAX_VALUE).decision().never()).isTrue();
        assertThat(closed.peek("k", 1, 0).never()).isTrue();
        RateLimiter open =
                limiter(limit(algorithm).toBuilder().rate(Rate.UNLIMITED).build());
        assertThat(open.tryAcquire("k", 1_000_000)).isTrue();
        assertThat(open.reserve("k", 1, 0).waitNanos()).isZero();
        assertThat(open.peek("k", 1, 0).admitted()).isTrue();
    }

    @Test
    void aFixedWindowBeginsWithTheDayOfItsZone() {
        RateLimiter limiter = limiter(Limit.of("daily", Algorithm.FIXED_WINDOW)
                .rate("5/d")
                .zone(java.time.ZoneId.of("Europe/Berlin"))
                .build());
        exhaust(limiter, "k");
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofHours(23));
        // From 2026-01-01T00:00Z to the day of 23 hours, 2026-03-29.
        ticker.advance(Duration.ofDays(87));
        exhaust(limiter, "k");
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofHours(22));
    }

    /** In New York summer time has ended at 6:00Z: a window of one and a half hours that began at 5:30Z goes on. */
    @Test
    void aFixedWindowThatTheClocksShowTwiceIsOne() {
        ticker.setWallClock(Instant.parse("2026-11-01T06:10:00Z"));
        RateLimiter limiter = limiter(Limit.of("twice", Algorithm.FIXED_WINDOW)
                .rate("5/90m")
                .zone(ZoneId.of("America/New_York"))
                .build());
        assertThat(exhaust(limiter, "k")).hasSize(5);
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofMinutes(110));
    }

    /** What was counted there stays counted: the window that the clock shows again has what is left. */
    @ParameterizedTest
    @ValueSource(strings = {"5/m", "5/d", "5/month"})
    void oneWrongReadingOfTheWallClockClosesNoWindow(String rate) {
        Instant right = Instant.parse("2026-03-03T10:00:10Z");
        ticker.setWallClock(right);
        RateLimiter limiter =
                limiter(Limit.of("calendar", Algorithm.FIXED_WINDOW).rate(rate).build());
        ticker.setWallClock(Instant.parse("2036-07-01T12:00:00Z"));
        assertThat(limiter.tryAcquire("ahead", 2)).isTrue();
        ticker.setWallClock(right.plusSeconds(1));
        assertThat(exhaust(limiter, "ahead")).hasSize(3);
        assertThat(exhaust(limiter, "other")).hasSize(5);
        assertThat(limiter.peek("ahead", 1, 0).retryAfter()).isLessThan(Duration.ofDays(31));
        ticker.advance(limiter.peek("ahead", 1, 0).retryAfter());
        assertThat(exhaust(limiter, "ahead")).hasSize(5);
    }

    /** Nobody is behind a waiter who gives up, and so the present window has what is left of it. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG", "TOKEN_BUCKET"})
    void aWaiterWhoGivesUpLeavesWhatTheWindowHas(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(Limit.of("gives-up-" + algorithm, algorithm)
                .rate("100/m")
                .charged(true)
                .build());
        ticker.advance(Duration.ofSeconds(15));
        Reservation running = limiter.reserve("k", 60, 0);
        long longest = Duration.ofMinutes(5).toNanos();
        for (int round = 0; round < 2; round++) {
            CompletableFuture<Boolean> first = limiter.reserve("k", 50, longest).awaitAsync();
            CompletableFuture<Boolean> second =
                    limiter.reserve("k", 80, longest).awaitAsync();
            second.cancel(false);
            first.cancel(false);
            awaitSettled();
            assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(40);
        }
        running.settle(10);
        awaitSettled();
        assertThat(limiter.tryAcquire("k", 90)).isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
    }

    /** The window in which the key has used its permits stays the present one, and ends when the clock shows that. */
    @ParameterizedTest
    @CsvSource({
        "2026-01-01T23:00:00Z, 2026-01-01T20:00:00Z, PT4H",
        "2026-01-02T00:30:00Z, 2026-01-01T23:30:00Z, PT24H30M",
    })
    void aCallerWhoObeysIsAdmittedAfterASmallStepBack(Instant before, Instant after, Duration shown) throws Exception {
        Instant end = before.truncatedTo(ChronoUnit.DAYS).plus(1, ChronoUnit.DAYS);
        Duration left = seesStepsAtOnce() ? shown : Duration.between(before, end);
        ticker.setWallClock(before);
        RateLimiter limiter = limiter(
                Limit.of("steps-back", Algorithm.FIXED_WINDOW).rate("5/d").build());
        for (String key : List.of("k", "waits", "impatient")) {
            assertThat(limiter.tryAcquire(key, 5)).isTrue();
        }
        ticker.setWallClock(after);
        Decision told = limiter.reserve("k", 1, 0).decision();
        assertThat(told.retryAfter()).isEqualTo(left);
        assertThat(told.reset()).isEqualTo(left);
        assertThat(limiter.peek("k", 1, 0)).isEqualTo(told);
        Reservation waits = limiter.reserve("waits", 5, left.toNanos());
        assertThat(Duration.ofNanos(waits.waitNanos())).isEqualTo(left);
        Decision tooLong =
                limiter.reserve("impatient", 1, left.toNanos() - 1_000).decision();
        assertThat(tooLong.retryAfter()).isEqualTo(Duration.ofNanos(1_000));
        RateLimiter other =
                limiter(Limit.of("other", Algorithm.TOKEN_BUCKET).rate("5/d").build());
        List<Claim> both =
                List.of(Claim.of(limiter, "impatient", 1, left.toNanos()), Claim.of(other, "impatient", 1, 0));
        Reservation together = AllOf.reserve(both);
        assertThat(Duration.ofNanos(together.waitNanos())).isEqualTo(left);
        together.cancel();
        ticker.advance(left.minusNanos(1_000));
        assertThat(limiter.reserve("k", 1, 0).decision().retryAfter()).isEqualTo(Duration.ofNanos(1_000));
        ticker.advance(Duration.ofNanos(1_000));
        assertThat(exhaust(limiter, "k")).hasSize(5);
    }

    @Test
    void aShortFixedWindowDoesNotFollowANewStandardTime() {
        ticker.setWallClock(Instant.parse("2019-01-01T00:59:59.999Z"));
        RateLimiter limiter = limiter(Limit.of("standard", Algorithm.FIXED_WINDOW)
                .rate("5/s")
                .zone(ZoneId.of("Africa/Sao_Tome"))
                .build());
        assertThat(exhaust(limiter, "k")).hasSize(5);
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(1));
        ticker.advance(Duration.ofMillis(1));
        assertThat(exhaust(limiter, "k")).hasSize(5);
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofSeconds(1));
    }

    @Test
    void aQuotaOfAMonthEndsWithTheMonthOfItsZone() {
        Limit limit = Limit.of("monthly", Algorithm.FIXED_WINDOW)
                .rate("5/month")
                .startsOn("31")
                .zone(java.time.ZoneId.of("Europe/Berlin"))
                .build();
        RateLimiter limiter = limiter(limit);
        exhaust(limiter, "k");
        // It is one o'clock of January 1, in the window that began on December 31.
        assertThat(limiter.peek("k", 1, 0).retryAfter())
                .isEqualTo(Duration.ofDays(30).minusHours(1));
        limiter.update(limit.toBuilder().rate("7/month").build());
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(2);
        ticker.advance(Duration.ofDays(30).minusHours(1).minusNanos(1_000));
        assertThat(limiter.tryAcquire("k", 3)).isFalse();
        ticker.advance(Duration.ofNanos(1_000));
        assertThat(limiter.tryAcquire("k", 7)).isTrue();
        // Until February 28, and then until March 31, when it is summer time already.
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofDays(28));
        Reservation waits = limiter.reserve("k", 3, Duration.ofDays(28).toNanos());
        assertThat(waits.waitNanos()).isEqualTo(Duration.ofDays(28).toNanos());
        assertThat(limiter.peek("k", 5, 0).retryAfter())
                .isEqualTo(Duration.ofDays(59).minusHours(1));
        waits.settle(1);
        ticker.advance(Duration.ofDays(28));
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(6);
        assertThat(limiter.peek("k", 1, 0).reset())
                .isEqualTo(Duration.ofDays(31).minusHours(1));
        limiter.update(limit.toBuilder().startsOn("15").build());
        assertThat(limiter.peek("k", 1, 0).remaining()).as("begins anew").isEqualTo(5);
        limiter.update(limit.toBuilder().rate("5/year").startsOn("02-29").build());
        exhaust(limiter, "k");
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofDays(365));
        limiter.update(limit.toBuilder().rate("5/week").startsOn("SUNDAY").build());
        exhaust(limiter, "k");
        // February 28 of 2026 is a Saturday.
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(Duration.ofDays(1));
    }

    @Test
    void endedCallsMakeRoom() {
        RateLimiter limiter = limiter(limit(Algorithm.CONCURRENCY));
        List<Reservation> calls = exhaust(limiter, "k");
        assertThat(limiter.reserve("k", 1, 0).decision().retryAfter()).isNull();
        calls.get(0).release();
        calls.get(0).release();
        calls.get(0).cancel();
        assertThat(exhaust(limiter, "k")).hasSize(1);
        limiter.reset("k");
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
    }

    @Test
    void callsWaitForOthersToEndInOrder() throws Exception {
        RateLimiter limiter = limiter(limit(Algorithm.CONCURRENCY));
        List<Reservation> calls = exhaust(limiter, "k");
        long patience = Duration.ofSeconds(10).toNanos();
        Reservation first = limiter.reserve("k", 1, patience);
        Reservation second = limiter.reserve("k", 1, patience);
        assertThat(first.isRefused()).isFalse();
        CompletableFuture<Boolean> firstTurn = first.awaitAsync();
        CompletableFuture<Boolean> secondTurn = second.awaitAsync();
        assertThat(limiter.waiting()).isEqualTo(2);
        calls.get(0).release();
        assertThat(firstTurn.get(PATIENCE, TimeUnit.SECONDS)).isTrue();
        assertThat(first.mayWait()).as("reported as delayed").isTrue();
        assertThat(calls.get(0).mayWait()).isFalse();
        assertThat(secondTurn).isNotDone();
        first.release();
        assertThat(secondTurn.get(PATIENCE, TimeUnit.SECONDS)).isTrue();
        Reservation third = limiter.reserve("k", 1, patience);
        CompletableFuture<Boolean> thirdTurn = third.awaitAsync();
        ticker.advance(Duration.ofSeconds(10));
        assertThat(thirdTurn.get(PATIENCE, TimeUnit.SECONDS)).isFalse();
        assertThat(third.isRefused()).isTrue();
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void aWaiterWhoAsksForMoreThanAChangeLeavesIsRefusedAndBlocksNobody() throws Exception {
        RateLimiter limiter = limiter(limit(Algorithm.CONCURRENCY));
        Reservation running = limiter.reserve("k", 5, 0);
        Reservation heavy = limiter.reserve("k", 4, Duration.ofSeconds(10).toNanos());
        CompletableFuture<Boolean> heavyTurn = heavy.awaitAsync();
        Reservation light = limiter.reserve("k", 1, Duration.ofSeconds(10).toNanos());
        CompletableFuture<Boolean> lightTurn = light.awaitAsync();
        limiter.update(limiter.limit().toBuilder().maxConcurrent(2).build());
        assertThat(heavyTurn.get(PATIENCE, TimeUnit.SECONDS)).isFalse();
        assertThat(heavy.decision().never()).isTrue();
        heavy.cancel();
        heavy.release();
        assertThat(lightTurn).isNotDone();
        running.release();
        assertThat(lightTurn.get(PATIENCE, TimeUnit.SECONDS)).isTrue();
        assertThat(limiter.peek("k", 1, 0).remaining()).isOne();
        light.release();
    }

    private static Limit leased(Duration lease) {
        return ONE_CALL.toBuilder().lease(lease).build();
    }

    @Test
    void aCallNoLongerCountsWhenItsLeaseHasPassed() {
        RateLimiter limiter = limiter(leased(Duration.ofSeconds(5)));
        Reservation lost = limiter.reserve("k", 1, 0);
        ticker.advance(Duration.ofSeconds(5).minusNanos(1000));
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        ticker.advance(Duration.ofNanos(1000));
        Reservation next = limiter.reserve("k", 1, 0);
        assertThat(next.isRefused()).isFalse();
        lost.release();
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(longs = {2, 5, 20})
    void aChangedLeaseHoldsForCallsInFlightFromTheirAdmissionOn(long seconds) {
        RateLimiter limiter = limiter(leased(Duration.ofSeconds(10)));
        limiter.reserve("k", 1, 0);
        ticker.advance(Duration.ofSeconds(3));
        limiter.update(leased(Duration.ofSeconds(seconds)));
        // A caller with its own numbers gets new ones with a call.
        limiter.peek("k", 1, 0);
        if (seconds > 3) {
            ticker.advance(Duration.ofSeconds(seconds - 3).minusNanos(1000));
            assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
            ticker.advance(Duration.ofNanos(1000));
        }
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
    }

    @Test
    void aCallWhoseLeaseIsRemovedCountsUntilItEnds() {
        RateLimiter limiter = limiter(leased(Duration.ofSeconds(10)));
        Reservation call = limiter.reserve("k", 1, 0);
        limiter.update(ONE_CALL);
        limiter.peek("k", 1, 0);
        ticker.advance(Duration.ofSeconds(20));
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        call.release();
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
    }

    @Test
    void aCallThatWasAdmittedWithoutALeaseCountsUntilItEnds() {
        RateLimiter limiter = limiter(ONE_CALL);
        Reservation call = limiter.reserve("k", 1, 0);
        limiter.update(leased(Duration.ofSeconds(10)));
        limiter.peek("k", 1, 0);
        ticker.advance(Duration.ofSeconds(20));
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        call.release();
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
    }

    @Test
    void severalLimitsAreTakenTogetherOrNotAtAll() throws Exception {
        RateLimiter wide =
                limiter(Limit.of("wide", Algorithm.SLIDING_LOG).rate("10/s").build());
        RateLimiter narrow = limiter(
                Limit.of("narrow", Algorithm.TOKEN_BUCKET).rate("1/s").burst(3).build());
        List<Claim> claims = List.of(Claim.of(wide, "k", 1, 0), Claim.of(narrow, "k", 1, 0));
        for (int i = 0; i < 3; i++) {
            assertThat(AllOf.reserve(claims).isRefused()).isFalse();
        }
        Reservation refused = AllOf.reserve(claims);
        assertThat(refused.isRefused()).isTrue();
        assertThat(refused.decision().limit()).isEqualTo("narrow");
        assertThat(wide.peek("k", 1, 0).remaining()).isEqualTo(7);
        assertThat(AllOf.reserve(List.of(claims.get(1), claims.get(0)))
                        .decision()
                        .limit())
                .isEqualTo("narrow");
        assertThat(AllOf.reserveAsync(claims)
                        .toCompletableFuture()
                        .get(PATIENCE, TimeUnit.SECONDS)
                        .isRefused())
                .isTrue();
        assertThat(wide.peek("k", 1, 0).remaining()).isEqualTo(7);
        narrow.reset("k");
        Reservation both = AllOf.reserve(claims);
        both.cancel();
        assertThat(wide.peek("k", 1, 0).remaining()).isEqualTo(7);
        assertThat(narrow.peek("k", 1, 0).remaining()).isEqualTo(3);
    }

    @Test
    void refusalSaysWhichClaimWasRefusedWhereSeveralAreOnOneLimit() throws Exception {
        RateLimiter limiter =
                limiter(Limit.of("keys", Algorithm.TOKEN_BUCKET).rate("1/h").build());
        limiter.reserve("spent", 1, 0);
        List<Claim> claims = List.of(Claim.of(limiter, "free", 1, 0), Claim.of(limiter, "spent", 1, 0));
        for (int i = 0; i < 2; i++) {
            assertThat(AllOf.decisive(AllOf.refusals(AllOf.reserve(claims)))).isEqualTo(1);
        }
        assertThat(AllOf.decisive(AllOf.refusals(
                        AllOf.reserveAsync(claims).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS))))
                .isEqualTo(1);
        assertThat(limiter.peek("free", 1, 0).remaining()).isEqualTo(1);
    }

    @Test
    void theRefusalOfSeveralLimitsIsThatOfTheLongestTimeInAnyOrder() throws Exception {
        RateLimiter pace =
                limiter(Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/s").build());
        RateLimiter quota =
                limiter(Limit.of("quota", Algorithm.FIXED_WINDOW).rate("2/h").build());
        RateLimiter flights = limiter(
                Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        RateLimiter closed =
                limiter(Limit.of("closed", Algorithm.TOKEN_BUCKET).rate("0/s").build());
        quota.tryAcquire("k", 2);
        pace.tryAcquire("k", 1);
        Duration longest = quota.peek("k", 1, 0).retryAfter();
        assertThat(longest).isGreaterThan(Duration.ofSeconds(1));
        Claim first = Claim.of(pace, "k", 1, 0);
        Claim second = Claim.of(quota, "k", 1, 0);
        // Twice: the second answer may be remembered.
        for (int i = 0; i < 2; i++) {
            for (List<Claim> order : List.of(List.of(first, second), List.of(second, first))) {
                assertRefused(order, "quota", longest);
            }
        }
        flights.reserve("k", 1, 0);
        Claim place = Claim.of(flights, "k", 1, 0);
        assertRefused(List.of(place, first, second), "quota", longest);
        assertRefused(List.of(second, place, first), "quota", longest);
        Claim never = Claim.of(closed, "k", 1, 0);
        assertRefused(List.of(first, never, second), "closed", null);
        assertRefused(List.of(second, first, never), "closed", null);
        ticker.advance(longest);
        for (Reservation retry : reservedBothWays(List.of(first, second))) {
            assertThat(retry.isRefused()).isFalse();
            retry.cancel();
            awaitSettled();
        }
    }

    private static void assertRefused(List<Claim> claims, String limit, @Nullable Duration retryAfter)
            throws Exception {
        for (Reservation refused : reservedBothWays(claims)) {
            @Nullable Decision[] refusals = AllOf.refusals(refused);
            assertThat(refusals).doesNotContainNull().hasSize(claims.size());
            assertThat(refused.decision().limit()).isEqualTo(limit);
            assertThat(refused.decision().retryAfter()).isEqualTo(retryAfter);
            assertThat(refused.decision().never()).isEqualTo(retryAfter == null);
        }
    }

    /** Blocking first; each is cancelled before the next is asked, where it has to be. */
    private static List<Reservation> reservedBothWays(List<Claim> claims) throws Exception {
        Reservation blocking = AllOf.reserve(claims);
        if (!blocking.isRefused()) {
            return List.of(blocking);
        }
        return List.of(
                blocking, AllOf.reserveAsync(claims).toCompletableFuture().get(PATIENCE, TimeUnit.SECONDS));
    }
}
