package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;

import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What every limiter does about blocks, wherever they live. Durations are whole microseconds. */
public abstract class BlockContract {

    private static final Duration BLOCK = Duration.ofSeconds(10);
    private static final Duration MAX = Duration.ofSeconds(60);

    protected final ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));

    /** A limiter on {@link #ticker} and nothing else of time. */
    protected abstract RateLimiter limiter(Limit limit);

    /** How many random timelines the twin is compared on. */
    protected int timelines() {
        return 30;
    }

    /** The limit of the contract of limiters, which is full again within a second, with blocks from 10 s to 60 s. */
    private static Limit limit(Algorithm algorithm) {
        return RateLimiterContract.limit(algorithm).toBuilder()
                .block(BLOCK)
                .blockMax(MAX)
                .build();
    }

    private static Limit limit() {
        return limit(Algorithm.TOKEN_BUCKET);
    }

    /** Ten permits a second. */
    private static Limit.Builder named(String name, int burst) {
        return Limit.of(name, Algorithm.TOKEN_BUCKET)
                .rate("10/s")
                .burst(burst)
                .block(BLOCK)
                .blockMax(MAX);
    }

    private static Limit byCharge() {
        return Limit.of("logins", Algorithm.TOKEN_BUCKET)
                .rate("3/s")
                .block(BLOCK)
                .blockMax(MAX)
                .charged(true)
                .build();
    }

    /** Asks until a call is refused; the refusal. */
    private static Decision offend(RateLimiter limiter, Object key) {
        Reservation next = limiter.reserve(key, 1, 0);
        while (!next.isRefused()) {
            next = limiter.reserve(key, 1, 0);
        }
        return next.decision();
    }

    private static void assertBlocked(Decision decision, Duration left) {
        assertThat(decision.blocked()).isTrue();
        assertThat(decision.admitted()).isFalse();
        assertThat(decision.never()).isFalse();
        assertThat(decision.retryAfter()).isEqualTo(left);
        assertThat(decision.remaining()).isZero();
        assertThat(decision.reset()).isGreaterThanOrEqualTo(left);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aRefusalBlocksItsKeyUntilTheBlockEndsAndNoOther(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        assertBlocked(offend(limiter, "a"), BLOCK);
        ticker.advance(BLOCK.minusNanos(1_000));
        assertBlocked(limiter.peek("a", 1, 0), Duration.ofNanos(1_000));
        assertThat(limiter.tryAcquire("a", 1)).isFalse();
        assertThat(limiter.tryAcquire("b", 1)).isTrue();
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        ticker.advance(Duration.ofNanos(1_000));
        Decision after = limiter.reserve("a", 1, 0).decision();
        assertThat(after.admitted()).isTrue();
        assertThat(after.blocked()).isFalse();
    }

    @Test
    void attemptsDuringABlockNeitherProlongItNorCountNorTakeBudget() {
        RateLimiter limiter = limiter(limit());
        offend(limiter, "a");
        for (int second = 1; second < 10; second++) {
            ticker.advance(Duration.ofSeconds(1));
            for (int i = 0; i < 20; i++) {
                assertBlocked(limiter.reserve("a", 1, 0).decision(), BLOCK.minusSeconds(second));
            }
        }
        ticker.advance(Duration.ofSeconds(1));
        assertThat(limiter.peek("a", 1, 0).remaining()).isEqualTo(5);
        assertThat(limiter.reserve("a", 5, 0).isRefused()).isFalse();
        assertBlocked(limiter.reserve("a", 1, 0).decision(), BLOCK.multipliedBy(2));
    }

    @Test
    void eachOffenceAfterABlockBeginsALongerOneUpToTheMaximum() {
        RateLimiter limiter = limiter(limit());
        for (int seconds : new int[] {10, 20, 40, 60, 60}) {
            assertBlocked(offend(limiter, "a"), Duration.ofSeconds(seconds));
            ticker.advance(Duration.ofSeconds(seconds + 1));
        }
    }

    @Test
    void aFactorThatIsNotWholeMultipliesToo() {
        RateLimiter limiter = limiter(limit().toBuilder().blockFactor(1.5).build());
        for (int millis : new int[] {10_000, 15_000, 22_500, 33_750, 50_625, 60_000}) {
            assertBlocked(offend(limiter, "a"), Duration.ofMillis(millis));
            ticker.advance(Duration.ofMillis(millis));
            ticker.advance(Duration.ofSeconds(1));
        }
        RateLimiter even = limiter(limit().toBuilder().blockFactor(1).build());
        for (int i = 0; i < 3; i++) {
            assertBlocked(offend(even, "b"), BLOCK);
            ticker.advance(BLOCK.plusSeconds(1));
        }
    }

    @Test
    void aQuietTimeOfTheMaximumAfterTheEndForgives() {
        RateLimiter limiter = limiter(limit());
        offend(limiter, "a");
        ticker.advance(BLOCK.plus(MAX).minusNanos(1_000));
        assertBlocked(offend(limiter, "a"), Duration.ofSeconds(20));
        ticker.advance(Duration.ofSeconds(20).plus(MAX));
        assertBlocked(offend(limiter, "a"), BLOCK);
    }

    @Test
    void aRefusalThatTheBudgetWouldRepeatForLongerSaysSo() {
        RateLimiter limiter = limiter(Limit.of("slow", Algorithm.TOKEN_BUCKET)
                .rate("1/m")
                .block(BLOCK)
                .build());
        Decision refused = offend(limiter, "a");
        assertThat(refused.blocked()).isTrue();
        assertThat(refused.retryAfter()).isEqualTo(Duration.ofMinutes(1));
        assertBlocked(limiter.peek("a", 0, 0), BLOCK);
        assertThat(limiter.reserve("a", 0, 0).decision().retryAfter()).isEqualTo(BLOCK);
        ticker.advance(Duration.ofMinutes(1));
        assertThat(limiter.tryAcquire("a", 1)).isTrue();
    }

    @Test
    void aCallThatCanNeverGoIsNoOffence() {
        RateLimiter limiter = limiter(limit());
        assertThat(limiter.reserve("a", 6, 0).decision().never()).isTrue();
        assertThat(limiter.tryAcquire("a", 6)).isFalse();
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        offend(limiter, "a");
        Decision never = limiter.reserve("a", 6, 0).decision();
        assertThat(never.never()).isTrue();
        assertThat(never.retryAfter()).isNull();
    }

    @Test
    void aQuestionAndACallThatOnlyTooManyWaitingCallersRefuseAreNoOffences() {
        RateLimiter limiter = limiter(limit().toBuilder().maxWaiting(0).build());
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        long second = Duration.ofSeconds(1).toNanos();
        assertThat(limiter.reserve("a", 1, second).decision().blocked()).isFalse();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        assertBlocked(offend(limiter, "a"), BLOCK);
    }

    @Test
    void aLimitThatIsClosedBlocksNobody() {
        RateLimiter limiter = limiter(limit());
        limiter.update(limit().toBuilder().rate("0/s").burst(1).build());
        assertThat(limiter.reserve("a", 1, 0).isRefused()).isTrue();
        limiter.update(limit());
        assertThat(limiter.tryAcquire("a", 1)).isTrue();
    }

    @Test
    void whileALimitIsClosedOrUnlimitedNobodyIsBlockedAndAfterwardsBlocksGoOn() {
        RateLimiter limiter = limiter(limit());
        offend(limiter, "a");
        for (String rate : new String[] {"unlimited", "0/s"}) {
            limiter.update(Limit.of(limit().name(), Algorithm.TOKEN_BUCKET)
                    .rate(rate)
                    .block(BLOCK)
                    .build());
            Decision decision = limiter.reserve("a", 1, 0).decision();
            assertThat(decision.blocked()).isFalse();
            assertThat(decision.never()).isEqualTo(!decision.admitted());
            assertThat(limiter.blockedKeys()).isEmpty();
        }
        limiter.update(limit());
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    @Test
    void aCallOfNothingIsRejectedDuringABlockAndTakesNothingOtherwise() {
        RateLimiter limiter = limiter(limit());
        offend(limiter, "a");
        assertBlocked(limiter.reserve("a", 0, 0).decision(), BLOCK);
        assertBlocked(limiter.peek("a", 0, 0), BLOCK);
        assertThat(limiter.tryAcquire("a", 0)).isFalse();
        Claim nothing = claim(limiter, "a", 0, 0);
        assertBlocked(
                all(nothing, claim(limiter(named("other", 5).build()), "a", 1, 0))
                        .decision(),
                BLOCK);
        ticker.advance(BLOCK);
        for (int i = 0; i < 20; i++) {
            assertThat(limiter.reserve("a", 0, 0).isRefused()).isFalse();
            assertThat(limiter.peek("a", 0, 0).admitted()).isTrue();
            assertThat(limiter.tryAcquire("a", 0)).isTrue();
        }
        assertThat(limiter.peek("a", 1, 0).remaining()).isEqualTo(5);
    }

    /** Nothing is blocked, charged or owed. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aCallOfNothingWaitsForNoOtherAndIsNotRejectedByAFullQueue(Algorithm algorithm) {
        RateLimiter limiter = limiter(limit(algorithm));
        Claim other = claim(limiter(named("other", 50).build()), "a", 1, 0);
        long hour = Duration.ofHours(1).toNanos();
        int queue = algorithm == Algorithm.LEAKY_BUCKET ? 5 : 6;
        for (int call = 0; call < queue; call++) {
            assertThat(limiter.reserve("a", 1, hour).isRefused()).isFalse();
        }
        assertThat(limiter.peek("a", 1, 0).admitted()).isFalse();
        for (long maxWait : new long[] {0, hour}) {
            for (Reservation nothing : List.of(
                    limiter.reserve("a", 0, maxWait),
                    all(claim(limiter, "a", 0, maxWait), other),
                    AllOf.reserveAsync(List.of(other, claim(limiter, "a", 0, maxWait)))
                            .toCompletableFuture()
                            .join())) {
                assertThat(nothing.isRefused()).isFalse();
                assertThat(nothing.waitNanos()).isZero();
                assertThat(nothing.mayWait()).isFalse();
            }
            assertThat(limiter.peek("a", 0, maxWait).admitted()).isTrue();
            assertThat(limiter.peek("a", 0, maxWait).waitTime()).isZero();
        }
        assertThat(limiter.tryAcquire("a", 0)).isTrue();
        assertThat(limiter.blockedKeys()).isEmpty();
    }

    @Test
    void aCallOfNothingIsRejectedWhileItsKeyOwesAndBeginsNoBlock() {
        RateLimiter limiter = limiter(limit());
        limiter.reserve("a", 0, 0).settle(15);
        for (int i = 0; i < 3; i++) {
            Decision decision = limiter.reserve("a", 0, 0).decision();
            assertThat(decision.admitted()).isFalse();
            assertThat(decision.blocked()).isFalse();
            assertThat(limiter.tryAcquire("a", 0)).isFalse();
        }
        assertThat(limiter.blockedKeys()).isEmpty();
    }

    @Test
    void aCallOfNothingIsRejectedWhileItsKeyOwesWhatCallsWereCharged() {
        RateLimiter limiter = limiter(Limit.of("tokens", Algorithm.TOKEN_BUCKET)
                .rate("10/s")
                .charged(true)
                .build());
        RateLimiter other = limiter(named("other", 5).build());
        assertThat(limiter.reserve("a", 0, 0).isRefused()).isFalse();
        limiter.reserve("a", 1, 0).settle(15);
        for (int i = 0; i < 3; i++) {
            Decision decision = limiter.reserve("a", 0, 0).decision();
            assertThat(decision.admitted()).isFalse();
            assertThat(decision.blocked()).isFalse();
            assertThat(decision.retryAfter()).isEqualTo(Duration.ofMillis(500));
            assertThat(limiter.peek("a", 0, 0).admitted()).isFalse();
            assertThat(limiter.tryAcquire("a", 0)).isFalse();
            assertThat(all(claim(limiter, "a", 0, 0), claim(other, "a", 1, 0)).isRefused())
                    .isTrue();
        }
        assertThat(other.peek("a", 1, 0).remaining()).isEqualTo(5);
        assertThat(limiter.reserve("b", 0, 0).isRefused()).isFalse();
        ticker.advance(Duration.ofMillis(500));
        assertThat(limiter.reserve("a", 0, 0).isRefused()).isFalse();
        assertThat(limiter.tryAcquire("a", 1)).isFalse();
    }

    @Test
    void aCallOfNothingIsRejectedWhileItsKeyOwesWhateverTheAlgorithm() {
        Algorithm.all().stream()
                .filter(algorithm -> !algorithm.countsCallsInFlight())
                .forEach(algorithm -> {
                    Limit.Builder limit = Limit.of("owing-" + algorithm, algorithm)
                            .rate("10/s")
                            .charged(true);
                    RateLimiter limiter = limiter(
                            (algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofSeconds(1)) : limit).build());
                    assertThat(limiter.reserve("a", 0, 0).isRefused())
                            .as("%s", algorithm)
                            .isFalse();
                    limiter.reserve("a", 1, 0).settle(1_000);
                    for (int i = 0; i < 3; i++) {
                        assertThat(limiter.reserve("a", 0, 0).isRefused())
                                .as("%s", algorithm)
                                .isTrue();
                        assertThat(limiter.tryAcquire("a", 0))
                                .as("%s", algorithm)
                                .isFalse();
                    }
                    assertThat(limiter.reserve("b", 0, 0).isRefused())
                            .as("%s", algorithm)
                            .isFalse();
                });
    }

    @Test
    void aCallThatMayWaitIsRefusedDuringABlockAndOneThatWaitedBeforeGoes() throws InterruptedException {
        RateLimiter limiter = limiter(limit());
        long second = Duration.ofSeconds(1).toNanos();
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        Reservation waiting = limiter.reserve("a", 1, second);
        assertThat(waiting.isRefused()).isFalse();
        assertBlocked(limiter.reserve("a", 1, 0).decision(), BLOCK);
        assertBlocked(limiter.reserve("a", 1, 60 * second).decision(), BLOCK);
        ticker.advance(Duration.ofMillis(100));
        assertThat(waiting.await()).isTrue();
    }

    @Test
    void aCallThatMayWaitForEverIsNotExemptFromBlocks() {
        RateLimiter limiter = limiter(limit());
        RateLimiter other = limiter(named("other", 50).build());
        offend(limiter, "a");
        Claim patient = claim(limiter, "a", 1, Long.MAX_VALUE);
        assertBlocked(limiter.reserve("a", 1, Long.MAX_VALUE).decision(), BLOCK);
        assertBlocked(limiter.reserve("a", 0, Long.MAX_VALUE).decision(), BLOCK);
        assertBlocked(patient.reserve().decision(), BLOCK);
        assertBlocked(limiter.peek("a", 1, Long.MAX_VALUE), BLOCK);
        assertBlocked(all(patient, claim(other, "a", 1, 0)).decision(), BLOCK);
        assertBlocked(all(claim(other, "a", 1, 0), patient).decision(), BLOCK);
    }

    /** A full queue rejects a call however long it may wait. */
    @Test
    void theRejectionOfACallThatMayWaitForEverIsAViolation() {
        RateLimiter queue = limiter(limit(Algorithm.LEAKY_BUCKET));
        RateLimiter other = limiter(named("other", 50).build());
        for (String key : new String[] {"alone", "claim", "both"}) {
            Claim patient = claim(queue, key, 1, Long.MAX_VALUE);
            for (int i = 0; i < 5; i++) {
                assertThat(queue.reserve(key, 1, Long.MAX_VALUE).isRefused()).isFalse();
            }
            Reservation rejected = switch (key) {
                case "alone" -> queue.reserve(key, 1, Long.MAX_VALUE);
                case "claim" -> patient.reserve();
                default -> all(patient, claim(other, key, 1, 0));
            };
            assertBlocked(rejected.decision(), BLOCK);
        }
    }

    @Test
    void aResetForgivesBlockAndLevel() {
        RateLimiter limiter = limiter(limit());
        offend(limiter, "a");
        limiter.reset("a");
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        assertBlocked(offend(limiter, "a"), BLOCK);
        limiter.reset("never seen");
    }

    @Test
    void aChangeOfTheLimitKeepsBlocks() {
        RateLimiter limiter = limiter(limit());
        offend(limiter, "a");
        limiter.update(limit().toBuilder()
                .rate("100/s")
                .burst(50)
                .block(Duration.ofSeconds(1))
                .blockMax(Duration.ofSeconds(5))
                .build());
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
        ticker.advance(BLOCK.plusSeconds(1));
        assertBlocked(offend(limiter, "a"), Duration.ofSeconds(2));
        limiter.update(RateLimiterContract.limit(Algorithm.TOKEN_BUCKET));
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
    }

    @Test
    void aLimitThatIsGivenBlocksLaterHasThem() {
        RateLimiter limiter = limiter(RateLimiterContract.limit(Algorithm.TOKEN_BUCKET));
        assertThat(offend(limiter, "a").blocked()).isFalse();
        limiter.update(limit());
        assertBlocked(offend(limiter, "a"), BLOCK);
    }

    @Test
    void blockedKeysAreListedUntilTheirBlocksEnd() {
        RateLimiter limiter = limiter(limit());
        assertThat(limiter.blockedKeys()).isEmpty();
        offend(limiter, "a");
        ticker.advance(Duration.ofSeconds(4));
        offend(limiter, "b");
        assertThat(limiter.blockedKeys())
                .containsExactlyInAnyOrder(
                        new BlockedKey("a", Duration.ofSeconds(6), 1), new BlockedKey("b", BLOCK, 1));
        ticker.advance(Duration.ofSeconds(6));
        assertThat(limiter.blockedKeys()).extracting(BlockedKey::key).containsExactly("b");
        limiter.reset("b");
        assertThat(limiter.blockedKeys()).isEmpty();
    }

    @Test
    void observersHearOfEachBlockOnceAndSurviveEachOther() {
        List<BlockedKey> begun = new CopyOnWriteArrayList<>();
        RateLimiter limiter = limiter(limit());
        limiter.onBlock(block -> {
            throw new IllegalStateException("an observer's own");
        });
        limiter.onBlock(begun::add);
        offend(limiter, "a");
        limiter.reserve("a", 1, 0);
        limiter.tryAcquire("a", 1);
        Threads.until(() -> !begun.isEmpty());
        assertThat(begun).containsExactly(new BlockedKey("a", BLOCK, 1));
        ticker.advance(BLOCK.plusSeconds(1));
        offend(limiter, "a");
        Threads.until(() -> begun.size() > 1);
        assertThat(begun)
                .endsWith(new BlockedKey("a", BLOCK.multipliedBy(2), 2))
                .hasSize(2);
    }

    @Test
    void whereCallsAreChargedARefusalBeginsNoBlock() {
        RateLimiter limiter = limiter(byCharge());
        Decision refused = offend(limiter, "a");
        assertThat(refused.blocked()).isFalse();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(limiter.tryAcquire("a", 3)).isTrue();
    }

    @Test
    void whereCallsAreChargedTheChargeThatLeavesNoPermitBeginsABlock() {
        RateLimiter limiter = limiter(byCharge());
        attempt(limiter, 1);
        attempt(limiter, 1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        attempt(limiter, 1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
        ticker.advance(BLOCK);
        attempt(limiter, 2);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        attempt(limiter, 2);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK.multipliedBy(2));
    }

    private void attempt(RateLimiter limiter, long cost) {
        Reservation attempt = limiter.reserve("a", 1, 0);
        assertThat(attempt.isRefused()).isFalse();
        attempt.settle(cost);
        attempt.settle(cost);
        attempt.release();
    }

    @Test
    void whereCallsAreChargedACallOffendsOnce() {
        RateLimiter limiter = limiter(byCharge());
        assertThat(limiter.tryAcquire("a", 2)).isTrue();
        Reservation last = limiter.reserve("a", 1, 0);
        last.settle(1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
        ticker.advance(BLOCK);
        assertThat(limiter.tryAcquire("a", 3)).isTrue();
        last.settle(1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
    }

    @Test
    void whereCallsAreChargedARightPasswordBlocksNobody() {
        RateLimiter limiter = limiter(byCharge());
        attempt(limiter, 1);
        attempt(limiter, 1);
        for (int i = 0; i < 20; i++) {
            attempt(limiter, 0);
        }
        Reservation given = limiter.reserve("a", 1, 0);
        given.cancel();
        assertThat(limiter.tryAcquire("a", 1)).isTrue();
        given.settle(1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
    }

    @Test
    void whereCallsAreChargedOneThatEndsDuringABlockProlongsNothing() {
        RateLimiter limiter = limiter(byCharge());
        Reservation first = limiter.reserve("a", 1, 0);
        Reservation second = limiter.reserve("a", 1, 0);
        Reservation third = limiter.reserve("a", 1, 0);
        first.settle(3);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
        ticker.advance(Duration.ofSeconds(4));
        second.settle(5);
        assertBlocked(limiter.peek("a", 1, 0), Duration.ofSeconds(6));
        ticker.advance(Duration.ofSeconds(6));
        third.settle(0);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
    }

    /** As {@link Claim#of}, of a limiter as calls have it. */
    private static Claim claim(RateLimiter limiter, Object key, long permits, long maxWaitNanos) {
        return Claim.of(CallersLimiter.asked(limiter), key, permits, maxWaitNanos);
    }

    /** A claim on one permit of "a", which cannot wait now. */
    private static Claim patient(RateLimiter limiter, Duration patience) {
        return Claim.of(CallersLimiter.asked(limiter), "a", 1, 0, RateLimiter.NO_RANK, patience.toNanos(), false);
    }

    private static Claim exempt(RateLimiter limiter) {
        return Claim.of(CallersLimiter.asked(limiter), "a", 1, 0, RateLimiter.NO_RANK, 0, true);
    }

    @Test
    void aRejectionForWantOfAThreadIsNoViolationWhileThePolicyWouldLetTheCallWait() {
        RateLimiter limiter = limiter(named("patient", 5).build());
        RateLimiter other = limiter(named("other", 50).build());
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        for (int i = 0; i < 3; i++) {
            Claim claim = patient(limiter, Duration.ofMillis(100));
            assertThat(claim.reserve().isRefused()).isTrue();
            assertThat(all(claim, claim(other, "a", 1, 0)).decision().blocked()).isFalse();
            assertThat(limiter.reserveAsync(claim, RateLimiter.Callbacks.MAY_BLOCK)
                            .toCompletableFuture()
                            .join()
                            .decision()
                            .blocked())
                    .isFalse();
        }
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        assertBlocked(patient(limiter, Duration.ofMillis(99)).reserve().decision(), BLOCK);
    }

    @Test
    void amongSeveralLimitsARejectionThatThePolicyWouldNotLetWaitIsAViolation() {
        RateLimiter limiter = limiter(named("patient", 5).build());
        RateLimiter other = limiter(named("other", 50).build());
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        assertBlocked(
                all(patient(limiter, Duration.ofMillis(99)), claim(other, "a", 1, 0))
                        .decision(),
                BLOCK);
        assertThat(other.peek("a", 1, 0).blocked()).isFalse();
    }

    @Test
    void aRejectionForWantOfASeatIsAViolationIfThePolicyWouldNotLetTheCallWaitEither() {
        RateLimiter limiter = limiter(named("seats", 5).maxWaiting(0).build());
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        Duration enough = Duration.ofMillis(100);
        assertThat(limiter.reserve("a", 1, enough.toNanos()).decision().blocked())
                .isFalse();
        assertBlocked(limiter.reserve("a", 1, enough.toNanos() - 1_000).decision(), BLOCK);
    }

    @Test
    void aCallThatIsExemptIsNotRejectedByABlockAndBeginsNone() {
        RateLimiter limiter = limiter(limit());
        RateLimiter other = limiter(named("other", 50).build());
        offend(limiter, "a");
        assertThat(exempt(limiter).reserve().decision().blocked()).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        for (int i = 0; i < 4; i++) {
            assertThat(exempt(limiter).reserve().isRefused()).isFalse();
        }
        assertThat(limiter.peek(exempt(limiter)).admitted()).isTrue();
        assertThat(all(exempt(limiter), claim(other, "a", 1, 0)).isRefused()).isFalse();
        Decision rejected = exempt(limiter).reserve().decision();
        assertThat(rejected.admitted()).isFalse();
        assertThat(rejected.blocked()).isFalse();
        assertBlocked(limiter.peek("a", 1, 0), BLOCK.minusSeconds(1));
        ticker.advance(BLOCK.minusSeconds(1));
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        assertThat(exempt(limiter).reserve().isRefused()).isTrue();
        assertThat(all(exempt(limiter), claim(other, "a", 1, 0)).isRefused()).isTrue();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        assertBlocked(offend(limiter, "a"), BLOCK.multipliedBy(2));
    }

    @Test
    void whereCallsAreChargedAnExemptCallIsChargedAndBeginsNoBlock() {
        RateLimiter limiter = limiter(byCharge());
        for (int i = 0; i < 3; i++) {
            Reservation call = exempt(limiter).reserve();
            assertThat(call.isRefused()).isFalse();
            call.settle(1);
        }
        assertThat(limiter.peek("a", 1, 0).admitted()).isFalse();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
    }

    @Test
    void aBlockedCallIsToldTheTimeOfItsOwnPermits() {
        RateLimiter limiter = limiter(Limit.of("weights", Algorithm.TOKEN_BUCKET)
                .rate("1/m")
                .burst(15)
                .block(BLOCK)
                .build());
        assertThat(limiter.tryAcquire("a", 15)).isTrue();
        assertThat(limiter.reserve("a", 15, 0).decision().retryAfter()).isEqualTo(Duration.ofMinutes(15));
        assertThat(limiter.reserve("a", 1, 0).decision().retryAfter()).isEqualTo(Duration.ofMinutes(1));
        assertThat(limiter.reserve("a", 1, 0).decision().blocked()).isTrue();
        assertThat(limiter.peek("a", 15, 0).retryAfter()).isEqualTo(Duration.ofMinutes(15));
    }

    @Test
    void aLimitWithoutBlocksEndsAndForgivesAllForGood() {
        RateLimiter limiter = limiter(limit());
        offend(limiter, "a");
        limiter.update(RateLimiterContract.limit(Algorithm.TOKEN_BUCKET));
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        limiter.update(limit());
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        assertThat(limiter.blockedKeys()).isEmpty();
        ticker.advance(Duration.ofSeconds(1));
        assertBlocked(offend(limiter, "a"), BLOCK);
    }

    @Test
    void aResetWhileALimitHasNoBlocksForgives() {
        RateLimiter limiter = limiter(limit());
        offend(limiter, "a");
        limiter.update(RateLimiterContract.limit(Algorithm.TOKEN_BUCKET));
        limiter.reset("a");
        limiter.update(limit());
        assertThat(limiter.tryAcquire("a", 5)).isTrue();
        assertBlocked(offend(limiter, "a"), BLOCK);
    }

    @Test
    void whereCallsAreChargedPermitsThatCallsInFlightHoldBeginNoBlock() {
        RateLimiter limiter = limiter(byCharge());
        Reservation wrong = limiter.reserve("a", 1, 0);
        Reservation right = limiter.reserve("a", 1, 0);
        Reservation late = limiter.reserve("a", 1, 0);
        assertThat(limiter.reserve("a", 1, 0).isRefused()).isTrue();
        wrong.settle(1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        right.settle(0);
        late.settle(0);
        assertThat(limiter.peek("a", 1, 0).remaining()).isEqualTo(2);
        attempt(limiter, 1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        attempt(limiter, 1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    /** Three permits a second, of an algorithm that can block by charge. */
    private static Limit byCharge(Algorithm algorithm) {
        return Limit.of("logins", algorithm)
                .rate("3/s")
                .block(BLOCK)
                .blockMax(MAX)
                .charged(true)
                .build();
    }

    /** Longer than any of the limits remembers a permit. */
    private static final Duration PERIOD = Duration.ofMillis(1_300);

    /** All but one permit of "a" are charged, and an innocent call holds that one. */
    private Reservation oneLeftAndHeld(RateLimiter limiter) {
        attempt(limiter, 1);
        attempt(limiter, 1);
        Reservation innocent = limiter.reserve("a", 1, 0);
        assertThat(innocent.isRefused()).isFalse();
        assertThat(limiter.peek("a", 1, 0).admitted()).isFalse();
        return innocent;
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whereCallsAreChargedACallCountsWhenItWasGrantedAndNotWhenItEnds(Algorithm algorithm) {
        RateLimiter limiter = limiter(byCharge(algorithm));
        List<Reservation> slow =
                List.of(limiter.reserve("a", 1, 0), limiter.reserve("a", 1, 0), limiter.reserve("a", 1, 0));
        ticker.advance(PERIOD);
        Reservation innocent = oneLeftAndHeld(limiter);
        slow.get(0).settle(1);
        slow.get(1).release();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        slow.get(2).settle(2);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
        assertThat(innocent.isRefused()).isFalse();
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whereCallsAreChargedNothingThatWasReservedBeforeAResetCountsAgainstTheStateAfterIt(Algorithm algorithm) {
        RateLimiter limiter = limiter(byCharge(algorithm));
        Reservation slow = limiter.reserve("a", 1, 0);
        Reservation released = limiter.reserve("a", 1, 0);
        ticker.advance(Duration.ofMillis(1));
        limiter.reset("a");
        Reservation innocent = oneLeftAndHeld(limiter);
        slow.settle(1);
        released.release();
        released.settle(1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        innocent.settle(1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whereCallsAreChargedOneThatHasEndedAndGivesBackCountsAsMuchAsItCost(Algorithm algorithm) {
        RateLimiter limiter = limiter(byCharge(algorithm));
        Reservation less = limiter.reserve("a", 2, 0);
        less.release();
        less.settle(1);
        Reservation given = limiter.reserve("a", 1, 0);
        given.release();
        given.cancel();
        given.cancel();
        Reservation innocent = limiter.reserve("a", 1, 0);
        attempt(limiter, 1);
        assertThat(limiter.peek("a", 1, 0).admitted()).isFalse();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        less.settle(2);
        innocent.settle(1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whereCallsAreChargedOneThatHasWaitedCountsFromWhenItCouldGo(Algorithm algorithm) {
        RateLimiter limiter = limiter(byCharge(algorithm));
        for (int i = 0; i < 3; i++) {
            limiter.reserve("a", 1, 0);
        }
        Reservation waits = limiter.reserve("a", 1, Duration.ofSeconds(2).toNanos());
        assertThat(waits.waitNanos()).isPositive();
        ticker.advance(Duration.ofNanos(waits.waitNanos()));
        attempt(limiter, 1);
        Reservation innocent = limiter.reserve("a", 1, 0);
        assertThat(innocent.isRefused()).isFalse();
        waits.settle(1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        innocent.settle(1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    /** What calls of a key were charged, as plainly as possible: each at the instant of its grant. In microseconds. */
    private record Charged(Algorithm algorithm, long permits, long period, List<long[]> all) {

        private static final long SLOTS = 10;

        void add(long instant, long cost) {
            if (cost > 0) {
                all.add(new long[] {instant, cost});
            }
        }

        boolean leavesNothing(long now) {
            if (algorithm.family() == Algorithm.Family.BUCKET) {
                long cost = period / permits;
                long free = permits * cost;
                long last = Long.MIN_VALUE / 2;
                for (long[] each :
                        all.stream().sorted((a, b) -> Long.compare(a[0], b[0])).toList()) {
                    free = Math.min(permits * cost, free + each[0] - last) - each[1] * cost;
                    last = each[0];
                }
                return Math.min(permits * cost, free + now - last) < cost;
            }
            long counting = all.stream()
                    .filter(each -> switch (algorithm) {
                        case FIXED_WINDOW -> each[0] / period == now / period;
                        case SLIDING_WINDOW -> each[0] / (period / SLOTS) + SLOTS >= now / (period / SLOTS);
                        default -> each[0] + period > now;
                    })
                    .mapToLong(each -> each[1])
                    .sum();
            return counting >= permits;
        }
    }

    /** Calls in flight at any time, whose ends come in any order, and long after their grants. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whereCallsAreChargedRandomOnesBeginTheBlocksOfThePlainModel(Algorithm algorithm) {
        int begun = 0;
        for (int seed = 0; seed < timelines(); seed++) {
            begun += random(algorithm, seed);
        }
        assertThat(begun).isPositive();
    }

    private int random(Algorithm algorithm, int seed) {
        // Slots begin with the limiter, or are those of the wall clock.
        ticker.advance(Duration.ofMillis(600 - Math.floorMod(ticker.epochNanos() / 1_000_000, 600L)));
        SplittableRandom random = new SplittableRandom(seed);
        long permits = 2L + random.nextInt(4);
        Limit.Builder builder =
                Limit.of("plain " + seed, algorithm).rate(permits + "/600ms").charged(true);
        RateLimiter budget = limiter(builder.build());
        RateLimiter limiter = limiter(Limit.of("blocks " + seed, algorithm)
                .rate(permits + "/600ms")
                .charged(true)
                .block(Duration.ofMillis(1))
                .blockMax(Duration.ofMillis(1))
                .build());
        List<long[]> grants = new ArrayList<>();
        List<Reservation[]> calls = new ArrayList<>();
        Charged charged = new Charged(algorithm, permits, 600_000, new ArrayList<>());
        long blockedUntil = 0;
        int begun = 0;
        for (int step = 0; step < 60; step++) {
            String at = algorithm + ", seed " + seed + ", step " + step;
            ticker.advance(Duration.ofMillis(random.nextInt(3) > 0 ? 0 : 1 + random.nextInt(150)));
            long now = ticker.epochNanos() / 1_000;
            boolean blocked = now < blockedUntil;
            if (random.nextInt(30) == 0) {
                ticker.advance(Duration.ofMillis(1));
                budget.reset("a");
                limiter.reset("a");
                charged.all().clear();
                grants.forEach(grant -> grant[0] = -1);
                blockedUntil = 0;
            } else if (calls.isEmpty() || random.nextInt(2) == 0) {
                long asked = 1L + random.nextInt(2);
                Reservation[] both = {blocked ? null : budget.reserve("a", asked, 0), limiter.reserve("a", asked, 0)};
                assertThat(both[1].isRefused()).as(at).isEqualTo(blocked || both[0].isRefused());
                if (!both[1].isRefused()) {
                    calls.add(both);
                    grants.add(new long[] {now, asked});
                }
            } else {
                int ending = random.nextInt(calls.size());
                Reservation[] both = calls.remove(ending);
                long[] grant = grants.remove(ending);
                long cost = random.nextInt(4);
                boolean released = random.nextInt(4) == 0;
                for (Reservation one : both) {
                    if (released) {
                        one.release();
                    }
                    one.settle(cost);
                }
                if (grant[0] >= 0) {
                    charged.add(grant[0], Math.min(cost, grant[1]));
                }
                charged.add(now, cost - grant[1]);
                if (cost > 0 && !blocked && !budget.peek("a", 1, 0).admitted() && charged.leavesNothing(now)) {
                    blockedUntil = now + 1_000;
                    begun++;
                }
            }
            assertThat(limiter.peek("a", 1, 0).blocked()).as(at).isEqualTo(ticker.epochNanos() / 1_000 < blockedUntil);
        }
        return begun;
    }

    @Test
    void whereCallsAreChargedTheLastOfThoseInFlightThatUseUpAllBeginsABlock() {
        RateLimiter limiter = limiter(byCharge());
        List<Reservation> guesses =
                List.of(limiter.reserve("a", 1, 0), limiter.reserve("a", 1, 0), limiter.reserve("a", 1, 0));
        guesses.get(0).settle(1);
        guesses.get(2).settle(1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        guesses.get(1).settle(1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    @Test
    void whereCallsAreChargedOneThatEndsWithoutASettlementIsChargedAndBeginsNoBlock() {
        RateLimiter limiter = limiter(byCharge());
        for (int i = 0; i < 3; i++) {
            limiter.reserve("a", 1, 0).release();
        }
        assertThat(limiter.peek("a", 1, 0).admitted()).isFalse();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        ticker.advance(Duration.ofMillis(334));
        attempt(limiter, 1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    @Test
    void whereCallsAreChargedASettlementThatSaysNothingBeginsNoBlock() {
        RateLimiter limiter = limiter(byCharge());
        for (int i = 0; i < 3; i++) {
            limiter.reserve("a", 1, 0).settle(1, false);
        }
        assertThat(limiter.peek("a", 1, 0).admitted()).isFalse();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        ticker.advance(Duration.ofMillis(334));
        attempt(limiter, 1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    @Test
    void whereCallsAreChargedAReservationThatNeverEndsDisablesNoBlocks() {
        RateLimiter limiter = limiter(byCharge());
        Reservation leaked = limiter.reserve("a", 1, 0);
        attempt(limiter, 1);
        attempt(limiter, 1);
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        attempt(limiter, 1);
        attempt(limiter, 1);
        attempt(limiter, 1);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
        assertThat(leaked.isRefused()).isFalse();
    }

    @Test
    void whereCallsAreChargedASettlementAfterWhichTheNextCallCouldWaitBeginsNoBlock() {
        RateLimiter limiter = limiter(byCharge());
        for (int i = 0; i < 3; i++) {
            patient(limiter, Duration.ofMillis(334)).reserve().settle(1);
        }
        assertThat(limiter.peek("a", 1, 0).admitted()).isFalse();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        patient(limiter, Duration.ofMillis(334)).reserve().settle(4);
        assertBlocked(limiter.peek("a", 1, 0), BLOCK);
    }

    private static Reservation all(Claim... claims) {
        return AllOf.reserve(claims);
    }

    @Test
    void amongSeveralLimitsOnlyThoseThatRefuseBeginABlock() {
        RateLimiter small = limiter(limit());
        RateLimiter large = limiter(named("large", 50).build());
        Claim one = claim(small, "a", 1, 0);
        Claim other = claim(large, "a", 1, 0);
        for (int i = 0; i < 5; i++) {
            assertThat(all(one, other).isRefused()).isFalse();
        }
        Decision refused = all(one, other).decision();
        assertBlocked(refused, BLOCK);
        assertThat(refused.limit()).isEqualTo(small.limit().name());
        assertBlocked(all(other, one).decision(), BLOCK);
        assertThat(large.peek("a", 1, 0).remaining()).isEqualTo(45);
        assertThat(large.peek("a", 1, 0).blocked()).isFalse();
        assertThat(large.tryAcquire("a", 45)).isTrue();
        ticker.advance(BLOCK.plusSeconds(1));
        assertThat(all(one, other).isRefused()).isFalse();
    }

    /** Also beside claims by which nothing is taken: of no permits, or of a limit that admits all calls. */
    @ParameterizedTest
    @ValueSource(strings = {"one permit", "no permits", "no permits of a limit without blocks", "unlimited"})
    void theCallThatBeginsABlockIsToldItsTimeWhateverElseItAsks(String kind) {
        RateLimiter narrow = limiter(named("narrow", 1).build());
        RateLimiter other = limiter(
                switch (kind) {
                    case "unlimited" ->
                        Limit.of("open", Algorithm.TOKEN_BUCKET)
                                .rate("unlimited")
                                .build();
                    case "no permits of a limit without blocks" ->
                        Limit.of("plain", Algorithm.TOKEN_BUCKET).rate("100/s").build();
                    default -> named("wide", 50).build();
                });
        for (String key : new String[] {"first", "last", "async", "third"}) {
            Claim beside = claim(other, key, kind.startsWith("no permits") ? 0 : 1, 0);
            Claim limited = claim(narrow, key, 1, 0);
            Claim third = claim(limiter(named("third", 50).build()), key, 1, 0);
            assertThat(all(beside, limited).isRefused()).isFalse();
            Decision told = (switch (key) {
                        case "first" -> all(limited, beside);
                        case "last" -> all(beside, limited);
                        case "third" -> all(third, beside, limited);
                        default ->
                            AllOf.reserveAsync(List.of(beside, limited))
                                    .toCompletableFuture()
                                    .join();
                    })
                    .decision();
            assertThat(told.limit()).isEqualTo("narrow");
            assertBlocked(told, BLOCK);
            assertBlocked(narrow.peek(key, 1, 0), BLOCK);
        }
    }

    /** The call that took them waits for a place, and so does not know yet whether it will be made. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void permitsThatTheirCallGivesBackAfterItsWaitForAnotherLimitHaveBlockedNobody(boolean rejected) throws Exception {
        Duration longest = Duration.ofSeconds(2);
        RateLimiter guesses = limiter(Limit.of("guesses", Algorithm.SLIDING_LOG)
                .rate("1/h")
                .block(BLOCK)
                .build());
        RateLimiter places = limiter(
                Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        Reservation full = places.reserve(null, 1, 0);
        Reservation waiting = all(claim(guesses, "a", 1, 0), claim(places, null, 1, longest.toNanos()));
        CompletableFuture<Boolean> wait = waiting.awaitAsync();
        for (int i = 0; i < 3; i++) {
            Decision decision = guesses.reserve("a", 1, 0).decision();
            assertThat(decision.admitted()).isFalse();
            assertThat(decision.blocked()).isFalse();
        }
        if (rejected) {
            ticker.advance(longest);
        } else {
            full.release();
        }
        assertThat(wait.get(30, TimeUnit.SECONDS)).isEqualTo(!rejected);
        if (rejected) {
            assertThat(guesses.reserve("a", 1, 0).isRefused()).isFalse();
            assertThat(guesses.peek("a", 1, 0).blocked()).isFalse();
        } else {
            awaitBlocked(guesses);
        }
        assertThat(guesses.blockedKeys().count()).isEqualTo(rejected ? 0 : 1);
    }

    /** A backend elsewhere learns a moment later that a call is made. */
    private static void awaitBlocked(RateLimiter limiter) {
        long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!limiter.peek("a", 1, 0).blocked()) {
            assertThat(System.nanoTime() - deadline).isNegative();
        }
    }

    /** A caller that goes on while it waits again and again is blocked as soon as one of these calls is made. */
    @Test
    void whatIsTakenAfterARejectionDoesNotDelayItsBlock() throws Exception {
        RateLimiter guesses = limiter(limit());
        RateLimiter places = limiter(
                Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        Reservation full = places.reserve(null, 1, 0);
        long longest = Duration.ofSeconds(9).toNanos();
        assertThat(guesses.tryAcquire("a", 4)).isTrue();
        CompletableFuture<Boolean> first =
                all(claim(guesses, "a", 1, 0), claim(places, null, 1, longest)).awaitAsync();
        assertThat(guesses.reserve("a", 1, 0).decision().blocked()).isFalse();
        ticker.advance(Duration.ofMillis(100));
        Reservation second = all(claim(guesses, "a", 1, 0), claim(places, null, 1, longest));
        assertThat(second.isRefused()).isFalse();
        CompletableFuture<Boolean> later = second.awaitAsync();
        full.release();
        assertThat(first.get(30, TimeUnit.SECONDS)).isTrue();
        awaitBlocked(guesses);
        assertThat(later.isDone()).isFalse();
        later.cancel(false);
    }

    /** As that of an instance that has ended. */
    @Test
    void aCallThatWaitsForEverDelaysABlockForTenSeconds() {
        RateLimiter guesses = limiter(Limit.of("guesses", Algorithm.SLIDING_LOG)
                .rate("1/h")
                .block(BLOCK)
                .build());
        RateLimiter places = limiter(
                Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        assertThat(places.reserve(null, 1, 0).isRefused()).isFalse();
        Reservation leaked = all(
                claim(guesses, "a", 1, 0),
                claim(places, null, 1, Duration.ofMinutes(1).toNanos()));
        assertThat(leaked.isRefused()).isFalse();
        assertThat(guesses.reserve("a", 1, 0).decision().blocked()).isFalse();
        ticker.advance(Duration.ofSeconds(10));
        assertThat(guesses.reserve("a", 1, 0).decision().blocked()).isFalse();
        ticker.advance(Duration.ofSeconds(1).plusMillis(1));
        assertThat(guesses.reserve("a", 1, 0).decision().blocked()).isTrue();
    }

    /** A rejection from before the reset is judged no more. */
    @Test
    void aResetExcusesWhoWasRejectedByACallThatWaits() throws Exception {
        RateLimiter guesses = limiter(Limit.of("guesses", Algorithm.SLIDING_LOG)
                .rate("1/h")
                .block(BLOCK)
                .build());
        RateLimiter places = limiter(
                Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        Reservation before = places.reserve(null, 1, 0);
        CompletableFuture<Boolean> proceeds = all(
                        claim(guesses, "a", 1, 0),
                        claim(places, null, 1, Duration.ofMinutes(1).toNanos()))
                .awaitAsync();
        assertThat(guesses.reserve("a", 1, 0).isRefused()).isTrue();
        guesses.reset("a");
        before.release();
        assertThat(proceeds.get(30, TimeUnit.SECONDS)).isTrue();
        assertThat(guesses.peek("a", 1, 0).blocked()).isFalse();
        assertThat(guesses.tryAcquire("a", 1)).isTrue();
    }

    @Test
    void amongSeveralLimitsEachThatRefusesBeginsABlock() {
        RateLimiter one = limiter(limit());
        RateLimiter other = limiter(named("other", 5).build());
        assertThat(one.tryAcquire("a", 5)).isTrue();
        assertThat(other.tryAcquire("b", 5)).isTrue();
        assertThat(all(claim(one, "a", 1, 0), claim(other, "b", 1, 0)).isRefused())
                .isTrue();
        assertBlocked(one.peek("a", 1, 0), BLOCK);
        assertBlocked(other.peek("b", 1, 0), BLOCK);
    }

    @Test
    void amongSeveralLimitsAChargeBeginsABlock() {
        RateLimiter passwords = limiter(byCharge());
        RateLimiter addresses = limiter(limit());
        for (int i = 0; i < 3; i++) {
            Reservation both = all(claim(passwords, "a", 1, 0), claim(addresses, "x", 1, 0));
            AllOf.member(both, 0).settle(1);
            AllOf.member(both, 1).settle(1);
            both.release();
        }
        assertBlocked(passwords.peek("a", 1, 0), BLOCK);
        assertThat(addresses.peek("x", 1, 0).blocked()).isFalse();
    }

    /** One key of the twin: written as plainly as possible, in microseconds. */
    private static final class Twin {

        private final long first;
        private final double factor;
        private final long max;
        private boolean offended;
        private long end;
        private double length;
        private int level;

        Twin(Limit limit) {
            first = micros(limit.block());
            factor = limit.blockFactor();
            max = micros(limit.blockMax());
        }

        boolean isBlocked(long now) {
            return offended && now < end;
        }

        void offend(long now) {
            if (isBlocked(now)) {
                return;
            }
            boolean anew = !offended || now - end >= max;
            level = anew ? 1 : level + 1;
            length = anew ? first : Math.min((double) max, Math.ceil(length * factor));
            offended = true;
            end = now + (long) length;
        }
    }

    private static long micros(@Nullable Duration duration) {
        return duration == null ? 0 : duration.toNanos() / 1_000;
    }

    /** Laws B1 to B3 of {@code BlockRule} against the twin, which is told only whether the budget alone refuses. */
    @Test
    void randomTimelinesGoAsATwinSays() {
        for (int seed = 0; seed < timelines(); seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            boolean charges = random.nextBoolean();
            Limit limit = Limit.of("twin" + seed, Algorithm.TOKEN_BUCKET)
                    .rate("4/s")
                    .burst(1 + random.nextInt(4))
                    .block(Duration.ofMillis(1 + random.nextInt(3_000)))
                    .blockFactor(1 + random.nextInt(40) / 10.0)
                    .blockMax(Duration.ofMillis(3_000 + random.nextInt(20_000)))
                    .charged(charges)
                    .build();
            timeline("seed " + seed, random, limit, limiter(limit));
        }
    }

    private void timeline(String name, SplittableRandom random, Limit limit, RateLimiter limiter) {
        RateLimiter budget = limiter(Limit.of("budget of " + name, Algorithm.TOKEN_BUCKET)
                .rate(limit.rate())
                .burst(limit.burst())
                .build());
        Map<String, Twin> twins = new HashMap<>();
        List<String> keys = List.of("a", "b", "c");
        keys.forEach(key -> twins.put(key, new Twin(limit)));
        for (int step = 0; step < 60; step++) {
            ticker.advance(Duration.ofMillis(
                    random.nextInt(10) == 0
                            ? random.nextInt(30_000)
                            : random.nextInt(8) == 0 ? random.nextInt(2_000) : 0));
            long now = ticker.nanos() / 1_000;
            String key = keys.get(random.nextInt(keys.size()));
            Twin twin = twins.get(key);
            String at = name + ", step " + step + ", " + key + " at " + now;
            if (random.nextInt(40) == 0) {
                limiter.reset(key);
                budget.reset(key);
                twins.put(key, new Twin(limit));
                continue;
            }
            boolean blocked = twin.isBlocked(now);
            Reservation shadow = blocked ? null : budget.reserve(key, 1, 0);
            Reservation call = limiter.reserve(key, 1, 0);
            assertThat(call.isRefused()).as(at).isEqualTo(shadow == null || shadow.isRefused());
            if (shadow == null || shadow.isRefused()) {
                if (!limit.blocksByCharge()) {
                    twin.offend(now);
                }
                assertThat(call.decision().blocked()).as(at).isEqualTo(twin.isBlocked(now));
            } else if (limit.blocksByCharge()) {
                long cost = random.nextInt(3);
                shadow.settle(cost);
                call.settle(cost);
                if (cost > 0 && !budget.peek(key, 1, 0).admitted()) {
                    twin.offend(now);
                }
            }
            if (twin.isBlocked(now)) {
                Decision decision = limiter.peek(key, 1, 0);
                Duration left = Duration.ofNanos((twin.end - now) * 1_000);
                Duration own = budget.peek(key, 1, 0).retryAfter();
                assertBlocked(decision, own == null || own.compareTo(left) < 0 ? left : own);
                BlockedKey known = limiter.blockedKeys()
                        .filter(each -> each.key().equals(key))
                        .findFirst()
                        .orElseThrow();
                assertThat(known).as(at).isEqualTo(new BlockedKey(key, left, twin.level));
            }
            List<String> others = new ArrayList<>();
            twins.forEach((other, state) -> {
                if (limiter.peek(other, 1, 0).blocked() != state.isBlocked(now)) {
                    others.add(other);
                }
            });
            assertThat(others).as(at).isEmpty();
        }
    }
}
