package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.overload.FoundLimitChange;
import io.ratelimited.core.overload.FoundLimitChange.Reason;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AdaptiveTest {

    private static final long SECOND = 1_000_000_000L;
    private static final List<End> ENDS = List.of(End.values());

    private final ManualTicker ticker = new ManualTicker();

    private static Limit.Builder limit() {
        return Limit.of("reports", Algorithm.ADAPTIVE).lateAfter(Duration.ofMillis(500));
    }

    private RateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), ticker, 1);
    }

    private static FoundLimit found(RateLimiter limiter) {
        return Objects.requireNonNull(limiter.foundLimit());
    }

    /** As many calls one after the other, each of the time. */
    private void calls(RateLimiter limiter, int number, Duration time, End end) {
        for (int i = 0; i < number; i++) {
            Reservation call = limiter.reserve(null, 1, 0);
            ticker.advance(time);
            call.release(end);
        }
    }

    @Test
    void aNewLimiterAdmitsUpToItsUpperBound() {
        RateLimiter limiter = limiter(limit().maxConcurrent(7));
        assertThat(found(limiter))
                .isEqualTo(new FoundLimit(
                        7, null, 0, 0, List.of(0L), new FoundLimitChange(ticker.nanos(), 7, 7, Reason.START)));
        for (int i = 0; i < 7; i++) {
            assertThat(limiter.reserve(null, 1, 0).isRefused()).isFalse();
        }
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isTrue();
        assertThat(limiter.reserve(null, 8, SECOND).decision().never()).isTrue();
        assertThat(found(limiter).inFlight()).isEqualTo(7);
        assertThat(found(limiter).refused()).containsExactly(2L);
    }

    /** A limiter in whose service ten calls of 50 ms are usual. */
    private RateLimiter busy(java.util.ArrayDeque<Reservation> flying) {
        return busy(limiter(limit().maxConcurrent(1000)), flying);
    }

    private RateLimiter busy(RateLimiter limiter, java.util.ArrayDeque<Reservation> flying) {
        for (int i = 0; i < 2_000; i++) {
            ticker.advanceNanos(5_000_000);
            flying.add(limiter.reserve(null, 1, 0));
            if (flying.size() > 10) {
                flying.remove().release();
            }
        }
        assertThat(found(limiter).limit()).isEqualTo(1000);
        return limiter;
    }

    /** Calls arrive at twelve times the usual rate, and none ends. */
    private void storm(RateLimiter limiter, java.util.ArrayDeque<Reservation> flying, int most) {
        for (int i = 0; i < 900 && found(limiter).limit() > most; i++) {
            ticker.advanceNanos(5_000_000 / 12);
            Reservation call = limiter.reserve(null, 1, 0);
            if (!call.isRefused()) {
                flying.add(call);
            }
        }
        assertThat(found(limiter).limit()).isLessThanOrEqualTo(most);
    }

    @Test
    void whereNothingEndsAStormIsHeldAndThenAShortage() {
        java.util.ArrayDeque<Reservation> flying = new java.util.ArrayDeque<>();
        RateLimiter limiter = busy(flying);
        storm(limiter, flying, 999);
        assertThat(found(limiter).limit()).isBetween(80, 200);
        storm(limiter, flying, 30);
        assertThat(flying).hasSizeLessThanOrEqualTo(200);
        assertThat(found(limiter).lastChange().reason()).isEqualTo(Reason.SERVES_NO_MORE);
    }

    @Test
    void callsOfALowerClassFillAHeldStormNotAsFarAsThoseOfTheHighest() {
        java.util.ArrayDeque<Reservation> flying = new java.util.ArrayDeque<>();
        RateLimiter limiter =
                busy(limiter(limit().maxConcurrent(1000).priorities(List.of("critical", "batch"))), flying);
        storm(limiter, flying, 999);
        int held = found(limiter).limit();
        while (!limiter.reserve(Call.of(null, 1, 0, 1)).isRefused()) {
            flying.add(flying.peek());
        }
        // Three quarters of the places, and a tenth of these is left.
        assertThat(flying.size()).isBetween((int) (0.65 * held), (int) (0.7 * held));
        while (!limiter.reserve(Call.of(null, 1, 0, 0)).isRefused()) {
            flying.add(flying.peek());
        }
        assertThat(flying).hasSize((int) Math.round(1.3 * held));
    }

    @Test
    void whereTheCallsOfAStormEndAsUsualNothingIsHeldAnyMore() {
        java.util.ArrayDeque<Reservation> flying = new java.util.ArrayDeque<>();
        RateLimiter limiter = busy(flying);
        storm(limiter, flying, 999);
        for (int i = 0; i < 200 && found(limiter).limit() < 1000; i++) {
            ticker.advanceNanos(5_000_000 / 12);
            flying.remove().release();
            Reservation call = limiter.reserve(null, 1, 0);
            if (!call.isRefused()) {
                flying.add(call);
            }
        }
        assertThat(found(limiter).limit()).isEqualTo(1000);
        assertThat(found(limiter).lastChange().reason()).isEqualTo(Reason.ROOM);
    }

    @Test
    void quickCallsBeforeSlowerOnesLowerNoLimit() {
        RateLimiter limiter = limiter(Limit.of("reports", Algorithm.ADAPTIVE));
        for (int i = 0; i < 45; i++) {
            Reservation call = limiter.reserve(null, 1, 0);
            ticker.advanceNanos(5_000_000);
            call.release();
        }
        java.util.ArrayDeque<Reservation> flying = new java.util.ArrayDeque<>();
        for (int i = 0; i < 10_000; i++) {
            ticker.advanceNanos(SECOND / 60);
            if (flying.size() == 6) {
                flying.remove().release();
            }
            Reservation call = limiter.reserve(null, 1, 0);
            assertThat(call.isRefused()).as("%d: %s", i, found(limiter)).isFalse();
            flying.add(call);
        }
    }

    /** An observer may read and change the limiter, also beside the locks of other limits on the call. */
    @Test
    @org.junit.jupiter.api.Timeout(30) // an observer within a lock would wait for itself
    void observersRunOutsideOfEveryLockAndMayCallTheLimiter() {
        RateLimiter limiter = limiter(limit().maxConcurrent(100).minConcurrent(4));
        RateLimiter rate = new InMemoryRateLimiter(
                Limit.of("rate", Algorithm.GCRA).rate("1000/s").build(), ticker, 1);
        List<Reason> reasons = new ArrayList<>();
        limiter.onLimitChange(change -> {
            reasons.add(change.reason());
            limiter.peek(null, 1, 0);
            Reservation call = AllOf.reserve(List.of(Claim.of(rate, null, 1, 0), Claim.of(limiter, null, 1, 0)));
            call.cancel();
            if (change.reason() != Reason.BOUNDS) {
                limiter.update(limiter.limit().toBuilder()
                        .maxConcurrent(change.to() + 50)
                        .build());
            }
        });
        limiter.update(limiter.limit().toBuilder().maxConcurrent(90).build());
        assertThat(reasons).containsExactly(Reason.BOUNDS);
        List<Claim> claims = List.of(Claim.of(rate, null, 1, 0), Claim.of(limiter, null, 1, 0));
        java.util.ArrayDeque<Reservation> flying = new java.util.ArrayDeque<>();
        for (int i = 0; i < 3_000 && reasons.size() == 1; i++) {
            ticker.advanceNanos(2_000_000);
            Reservation call = AllOf.reserve(claims);
            if (!call.isRefused()) {
                flying.add(call);
            }
            if (i < 200 ? flying.size() > 10 : i % 20 == 0) {
                flying.remove().release(End.ANSWERED);
            }
        }
        assertThat(reasons).contains(Reason.SERVES_NO_MORE);
        assertThat(limiter.limit().maxConcurrent()).isLessThan(90);
    }

    @Test
    void theBaseTimeIsThatOfAnswersAlone() {
        RateLimiter limiter = limiter(limit());
        calls(limiter, 60, Duration.ofMillis(10), End.ANSWERED);
        assertThat(found(limiter).baseTime()).isEqualTo(Duration.ofMillis(10));
        for (End end : List.of(End.FAILED, End.CANCELLED)) {
            calls(limiter, 500, Duration.ofMillis(1), end);
            assertThat(found(limiter).baseTime()).as("%s", end).isEqualTo(Duration.ofMillis(10));
            assertThat(found(limiter).lastChange().reason()).as("%s", end).isEqualTo(Reason.START);
        }
        for (int i = 0; i < 500; i++) {
            limiter.reserve(null, 1, 0).cancel();
            ticker.advanceNanos(1_000_000);
        }
        assertThat(found(limiter).baseTime()).isEqualTo(Duration.ofMillis(10));
    }

    /** Calls that meet an overloaded service and take long lower the limit; quick failures lower nothing. */
    private void overload(RateLimiter limiter) {
        calls(limiter, 200, Duration.ofMillis(5), End.ANSWERED);
        for (int i = 0; i < 40; i++) {
            List<Reservation> calls = new ArrayList<>();
            for (int call = 0; call < 20; call++) {
                calls.add(limiter.reserve(null, 1, 0));
            }
            ticker.advance(Duration.ofMillis(100));
            calls.forEach(call -> call.release(End.of(new TimeoutException())));
        }
    }

    @Test
    void quickFailuresOfOthersLowerNoLimit() {
        RateLimiter limiter = limiter(limit().maxConcurrent(100));
        calls(limiter, 200, Duration.ofMillis(5), End.ANSWERED);
        calls(limiter, 1_000, Duration.ofMillis(1), End.OVERLOADED);
        assertThat(found(limiter).limit()).isEqualTo(100);
        assertThat(found(limiter).lastChange().reason()).isEqualTo(Reason.START);
    }

    @Test
    void timeoutsLowerTheLimitAndObserversAreToldWhy() {
        RateLimiter limiter = limiter(limit().maxConcurrent(100));
        List<FoundLimitChange> changes = new ArrayList<>();
        limiter.onLimitChange(change -> {
            throw new IllegalStateException("of an observer");
        });
        limiter.onLimitChange(changes::add);
        Thread.UncaughtExceptionHandler handler = Thread.currentThread().getUncaughtExceptionHandler();
        List<Throwable> errors = new ArrayList<>();
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> errors.add(error));
        try {
            overload(limiter);
        } finally {
            Thread.currentThread().setUncaughtExceptionHandler(handler);
        }
        assertThat(changes).isNotEmpty();
        assertThat(changes.get(0).reason()).isEqualTo(Reason.LATE);
        assertThat(changes.get(0).to()).isLessThan(changes.get(0).from());
        assertThat(changes.get(0).from()).isEqualTo(100);
        assertThat(errors).hasSameSizeAs(changes);
        assertThat(found(limiter).lastChange()).isEqualTo(changes.get(changes.size() - 1));
        assertThat(found(limiter).limit()).isEqualTo(found(limiter).lastChange().to());
    }

    @Test
    void withoutClassesAsManyCallsGoAsTheLimitThatWasFoundAllows() {
        RateLimiter limiter = limiter(limit().maxConcurrent(100));
        overload(limiter);
        int limit = found(limiter).limit();
        assertThat(limit).isBetween(2, 99);
        for (int i = 0; i < limit; i++) {
            // L4
            assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(limit - i);
            Reservation call = limiter.reserve(null, 1, 0);
            if (call.isRefused()) {
                // a step below the limit
                assertThat(i).isGreaterThanOrEqualTo((int) (0.84 * limit));
                break;
            }
        }
        for (int i = 0; i < limit; i++) {
            limiter.reserve(null, 1, 0);
        }
        assertThat(found(limiter).inFlight()).isLessThanOrEqualTo(limit + 1);
        assertThat(limiter.peek(null, 1, 0).remaining()).isZero();
    }

    /** After an overload nobody calls for a while; then a page loads eight things at once. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aBurstAfterAQuietTimeIsAdmittedAloneAndBesideAnotherLimit(boolean several) {
        RateLimiter limiter = limiter(limit().maxConcurrent(100));
        RateLimiter quota = limiter(Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("1000/s"));
        overload(limiter);
        assertThat(found(limiter).limit()).isLessThan(8);
        ticker.advance(Duration.ofSeconds(16));
        for (int i = 0; i < 8; i++) {
            Claim claim = Claim.of(limiter, null, 1, 0);
            Reservation call =
                    several ? AllOf.reserve(List.of(Claim.of(quota, null, 1, 0), claim)) : limiter.reserve(null, 1, 0);
            assertThat(call.isRefused()).as("call %d", i).isFalse();
        }
        assertThat(found(limiter).limit()).isEqualTo(100);
        assertThat(found(limiter).lastChange().reason()).isEqualTo(Reason.ROOM);
    }

    @Test
    void aLookAfterAQuietTimeFindsNoLimit() {
        RateLimiter limiter = limiter(limit().maxConcurrent(100));
        overload(limiter);
        for (int i = found(limiter).limit(); i > 0; i--) {
            limiter.reserve(null, 1, 0);
        }
        assertThat(limiter.peek(null, 1, 0).admitted()).isFalse();
        ticker.advance(Duration.ofSeconds(16));
        assertThat(limiter.peek(null, 1, 0).admitted()).isTrue();
    }

    @Test
    void callsAtOnceAfterAQuietTimeAreAllAdmitted() throws Exception {
        for (int round = 0; round < 50; round++) {
            RateLimiter limiter = limiter(limit().maxConcurrent(100));
            overload(limiter);
            ticker.advance(Duration.ofSeconds(16));
            assertThat(Threads.sum(8, thread -> limiter.reserve(null, 1, 0).isRefused() ? 1L : 0L))
                    .isZero();
        }
    }

    @Test
    void withoutARejectionForAWhileNothingIsLimited() {
        RateLimiter limiter = limiter(limit().maxConcurrent(100));
        overload(limiter);
        calls(limiter, 14, Duration.ofSeconds(1), End.ANSWERED);
        assertThat(found(limiter).limit()).isLessThan(100);
        calls(limiter, 2, Duration.ofSeconds(1), End.ANSWERED);
        assertThat(found(limiter).limit()).isEqualTo(100);
    }

    /** A call that is rejected now and then shows that the limit still binds. */
    @Test
    void whileCallsAreRejectedTheLimitStays() {
        RateLimiter limiter = limiter(limit().maxConcurrent(100));
        overload(limiter);
        int limit = found(limiter).limit();
        for (int i = 0; i < limit; i++) {
            limiter.reserve(null, 1, 0);
        }
        for (int i = 0; i < 10; i++) {
            ticker.advance(Duration.ofSeconds(14));
            assertThat(limiter.reserve(null, 1, 0).isRefused()).isTrue();
        }
        assertThat(found(limiter).limit()).isLessThanOrEqualTo(limit);
    }

    /** A call that still waits shows it too, although nobody calls any more. */
    @Test
    void whileCallsWaitTheLimitStays() {
        RateLimiter limiter = limiter(limit().maxConcurrent(100));
        overload(limiter);
        int limit = found(limiter).limit();
        List<Reservation> calls = new ArrayList<>();
        for (int i = 0; i < 4 * limit; i++) {
            Reservation call = limiter.reserve(null, 1, Duration.ofMinutes(10).toNanos());
            assertThat(call.awaitAsync()).isNotCompletedExceptionally();
            calls.add(call);
        }
        for (int i = 0; i < 2; i++) {
            ticker.advance(Duration.ofSeconds(16));
            calls.get(i).release(End.ANSWERED);
            assertThat(limiter.waiting()).isPositive();
            assertThat(found(limiter).limit()).isLessThan(100);
        }
    }

    @Test
    void theEndOfACallIsSeenFromItsError() {
        assertThat(End.of(null)).isEqualTo(End.ANSWERED);
        assertThat(End.of(new IllegalStateException())).isEqualTo(End.FAILED);
        assertThat(End.of(new CompletionException(new TimeoutException()))).isEqualTo(End.OVERLOADED);
        assertThat(End.of(new CompletionException(null))).isEqualTo(End.FAILED);
        assertThat(End.of(new java.net.SocketTimeoutException())).isEqualTo(End.OVERLOADED);
        assertThat(End.of(new RateLimitExceededException(limiter(limit()).peek(null, 1, 0))))
                .isEqualTo(End.FAILED);
        assertThat(End.of(new CancellationException())).isEqualTo(End.CANCELLED);
        assertThat(End.of(new InterruptedException())).isEqualTo(End.CANCELLED);
    }

    @Test
    void aKeyHasNoMeaning() {
        RateLimiter limiter = limiter(limit());
        for (Runnable call : List.<Runnable>of(
                () -> limiter.reserve("ann", 1, 0),
                () -> limiter.peek("ann", 1, 0),
                () -> AllOf.reserve(List.of(Claim.of(limiter, "ann", 1, 0), Claim.of(limiter, null, 1, 0))))) {
            assertThatThrownBy(call::run)
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("limit 'reports' is ADAPTIVE")
                    .hasMessageNotContaining("ann");
        }
        assertThat(limiter.keys()).isZero();
    }

    @Test
    void otherBoundsHoldForTheNextCall() {
        RateLimiter limiter = limiter(limit().maxConcurrent(10));
        limiter.update(limit().maxConcurrent(2).build());
        assertThat(found(limiter).lastChange().reason()).isEqualTo(Reason.BOUNDS);
        List<Reservation> calls = List.of(limiter.reserve(null, 1, 0), limiter.reserve(null, 1, 0));
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isTrue();
        limiter.update(limit().maxConcurrent(0).build());
        calls.forEach(Reservation::release);
        assertThat(limiter.reserve(null, 1, 0).decision().never()).isTrue();
        limiter.update(limit().maxConcurrent(10).build());
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isFalse();
    }

    /** As CoDel: a queue that does not empty serves nobody more, it only makes everybody wait. */
    @Test
    void waitsShrinkWhileAQueueStands() {
        RateLimiter limiter = limiter(limit().maxConcurrent(1));
        limiter.reserve(null, 1, 0);
        CompletableFuture<Boolean> first = limiter.reserve(null, 1, 10 * SECOND).awaitAsync();
        ticker.advanceNanos(9 * SECOND);
        CompletableFuture<Boolean> second = limiter.reserve(null, 1, SECOND).awaitAsync();
        ticker.advanceNanos(SECOND / 10 - 1);
        assertThat(second).isNotDone();
        ticker.advanceNanos(1);
        assertThat(second).isCompletedWithValue(false);
        assertThat(first).isNotDone();
        ticker.advanceNanos(SECOND);
        assertThat(first).isCompletedWithValue(false);
        CompletableFuture<Boolean> third = limiter.reserve(null, 1, SECOND).awaitAsync();
        ticker.advanceNanos(SECOND - 1);
        assertThat(third).isNotDone();
    }

    @Test
    void aQueueOfAWorseClassShrinksNoWaitOfABetterOne() {
        RateLimiter limiter = limiter(limit().maxConcurrent(1).priorities(List.of("good", "fair", "bad")));
        limiter.reserve(null, 1, 0);
        reserve(limiter, 2, 10 * SECOND);
        ticker.advanceNanos(9 * SECOND);
        CompletableFuture<Boolean> good = reserve(limiter, 0, SECOND);
        CompletableFuture<Boolean> bad = reserve(limiter, 2, SECOND);
        ticker.advanceNanos(SECOND / 10);
        assertThat(bad).isCompletedWithValue(false);
        assertThat(good).isNotDone();
        CompletableFuture<Boolean> fair = reserve(limiter, 1, SECOND);
        ticker.advanceNanos(SECOND / 2);
        assertThat(good).isNotDone();
        ticker.advanceNanos(SECOND / 2 - SECOND / 10 - 1);
        assertThat(good).isNotDone();
        ticker.advanceNanos(1);
        assertThat(good).isCompletedWithValue(false);
        assertThat(fair).isNotDone();
        // It found the better queue standing for a tenth of its wait.
        ticker.advanceNanos(SECOND / 100);
        assertThat(fair).isCompletedWithValue(false);
    }

    private static CompletableFuture<Boolean> reserve(RateLimiter limiter, int rank, long maxWait) {
        return limiter.reserve(Call.of(null, 1, maxWait, rank)).awaitAsync();
    }

    @Test
    void theClassAndTheEndPassThroughSeveralLimits() {
        RateLimiter limiter = limiter(limit().maxConcurrent(10).priorities(List.of("good", "bad")));
        RateLimiter rate = new InMemoryRateLimiter(
                Limit.of("rate", Algorithm.GCRA).rate("10/s").build(), ticker, 1);
        for (int i = 0; i < 9; i++) {
            limiter.reserve(Call.of(null, 1, 0, 0));
        }
        assertThat(AllOf.reserve(List.of(Claim.of(rate, null, 1, 0), Claim.of(limiter, null, 1, 0, 1)))
                        .isRefused())
                .isTrue();
        Reservation good = AllOf.reserve(List.of(Claim.of(rate, null, 1, 0), Claim.of(limiter, null, 1, 0, 0)));
        assertThat(good.isRefused()).isFalse();
        assertThat(found(limiter).inFlight()).isEqualTo(10);
        good.release(End.FAILED);
        good.release(End.ANSWERED);
        assertThat(found(limiter).inFlight()).isEqualTo(9);
        assertThat(rate.peek(null, 1, 0).remaining()).isEqualTo(9);
    }

    @Test
    void aCallThatSleepsForAQuotaHoldsNoPlace() {
        RateLimiter quota =
                limiter(Limit.of("quota", Algorithm.GCRA).rate("1/s").burst(1));
        RateLimiter limiter = limiter(limit().maxConcurrent(1));
        List<Claim> claims = List.of(Claim.of(quota, null, 1, 2 * SECOND), Claim.of(limiter, null, 1, 0));
        AllOf.reserve(claims).release();
        Reservation sleeps = AllOf.reserve(claims);
        CompletableFuture<Boolean> slept = sleeps.awaitAsync();
        assertThat(sleeps.waitNanos()).isEqualTo(SECOND);
        Reservation running = limiter.reserve(null, 1, 0);
        assertThat(running.isRefused()).isFalse();

        ticker.advance(Duration.ofSeconds(1));
        assertThat(slept).isCompletedWithValue(false);
        assertThat(found(limiter).refused()).containsExactly(1L);
        running.release();
        // The quota has its permit back.
        Reservation next = AllOf.reserve(claims);
        assertThat(next.awaitAsync()).isCompletedWithValue(true);
        assertThat(found(limiter).inFlight()).isEqualTo(1);
    }

    @Test
    void refusalsCountByClassAloneAndBesideOtherLimits() {
        RateLimiter limiter = limiter(limit().maxConcurrent(2).priorities(List.of("good", "bad")));
        RateLimiter rate = new InMemoryRateLimiter(
                Limit.of("rate", Algorithm.GCRA).rate("10/s").build(), ticker, 1);
        limiter.reserve(Call.of(null, 1, 0, 1));
        List<Claim> bad = List.of(Claim.of(rate, null, 1, 0), Claim.of(limiter, null, 1, 0, 1));
        assertThat(limiter.reserve(Call.of(null, 1, 0, 1)).isRefused()).isTrue();
        assertThat(AllOf.reserve(bad).isRefused()).isTrue();
        assertThat(AllOf.reserveAsync(bad).toCompletableFuture().join().isRefused())
                .isTrue();
        assertThat(found(limiter).refused()).containsExactly(0L, 3L);
        limiter.peek(Call.of(null, 1, 0, 1));
        assertThat(found(limiter).refused()).containsExactly(0L, 3L);
    }

    @Test
    void callsThatHaveWaitedInVainCountAsRefused() {
        RateLimiter limiter = limiter(limit().maxConcurrent(1).maxWaiting(2).priorities(List.of("good", "bad")));
        limiter.reserve(Call.of(null, 1, 0, 0));
        CompletableFuture<Boolean> late =
                limiter.reserve(Call.of(null, 1, SECOND, 1)).awaitAsync();
        limiter.reserve(Call.of(null, 1, SECOND, 0)).awaitAsync().cancel(false);
        ticker.advanceNanos(SECOND);
        assertThat(late).isCompletedWithValue(false);
        assertThat(found(limiter).refused()).containsExactly(0L, 1L);
        Reservation first = limiter.reserve(Call.of(null, 1, SECOND, 0));
        Reservation second = limiter.reserve(Call.of(null, 1, SECOND, 0));
        Reservation tooMany = limiter.reserve(Call.of(null, 1, SECOND, 1));
        assertThat(first.awaitAsync()).isNotDone();
        assertThat(second.awaitAsync()).isNotDone();
        assertThat(tooMany.awaitAsync()).isCompletedWithValue(false);
        assertThat(found(limiter).refused()).containsExactly(0L, 2L);
        limiter.update(limiter.limit().toBuilder().maxConcurrent(0).build());
        assertThat(found(limiter).refused()).containsExactly(2L, 2L);
    }

    @Test
    void aClosedLimiterEndsThoseThatWaitAndKeepsNoPlace() {
        RateLimiter limiter = limiter(limit().maxConcurrent(1));
        Reservation call = limiter.reserve(null, 1, 0);
        CompletableFuture<Boolean> waiting = limiter.reserve(null, 1, SECOND).awaitAsync();
        limiter.close();
        assertThat(waiting).isCompletedExceptionally();
        assertThatThrownBy(waiting::join).hasCauseInstanceOf(RateLimiterClosedException.class);
        call.release();
        assertThat(found(limiter).inFlight()).isZero();
    }

    /** Whatever ends a call, and while the limit moves: never more in flight than the bound, and in the end no place is taken. */
    @Test
    void threadsNeverExceedTheBoundAndLoseNoPlace() throws Exception {
        RateLimiter limiter = limiter(limit().maxConcurrent(6)
                .minConcurrent(2)
                .priorities(List.of("a", "b", "c"))
                .shares(java.util.Map.of("c", 0.2)));
        java.util.concurrent.atomic.AtomicInteger inFlight = new java.util.concurrent.atomic.AtomicInteger();
        long most = Threads.run(4, thread -> {
                    Random random = new Random(thread);
                    long seen = 0;
                    for (int i = 0; i < 20_000; i++) {
                        Reservation call = limiter.reserve(
                                Call.of(null, 1, random.nextInt(3) == 0 ? SECOND : 0, random.nextInt(4) - 1));
                        CompletableFuture<Boolean> turn = call.awaitAsync();
                        if (turn.getNow(false)) {
                            seen = Math.max(seen, inFlight.incrementAndGet());
                            if (thread == 0) {
                                ticker.advanceNanos(random.nextInt(5_000_000));
                            }
                            inFlight.decrementAndGet();
                        }
                        switch (random.nextInt(3)) {
                            case 0 -> call.cancel();
                            case 1 -> turn.cancel(false);
                            default -> {}
                        }
                        call.cancel();
                        call.release(ENDS.get(random.nextInt(ENDS.size())));
                    }
                    return seen;
                })
                .stream()
                .mapToLong(Long::longValue)
                .max()
                .orElse(0);
        assertThat(most).isBetween(1L, 6L);
        assertThat(found(limiter).inFlight()).isZero();
        assertThat(found(limiter).waiting()).isZero();
        int free = 0;
        limiter.update(limiter.limit().toBuilder().minConcurrent(6).build());
        for (int i = 0; i < 6; i++) {
            free += limiter.reserve(Call.of(null, 1, 0, i == 0 ? 2 : 0)).isRefused() ? 0 : 1;
            free += i == 1 && !limiter.reserve(Call.of(null, 1, 0, 2)).isRefused() ? 1 : 0;
        }
        assertThat(free).isEqualTo(6);
    }
}
