package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.DelegatingTicker;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A limit elsewhere is told which calls other limits may still reject, and what becomes of them: so it can tell a rejection by
 * permits that come back from a violation.
 */
class UndecidedCallsTest {

    private static final Set<Thread.State> STOPPED = Set.of(Thread.State.BLOCKED, Thread.State.WAITING);

    private final List<String> told = new ArrayList<>();
    private final RateLimiter memory = limiter("memory");
    private final FarLimiter far = far("far");
    private final FarLimiter farther = far("farther");
    private Runnable whenCharged = () -> {};
    private @Nullable RuntimeException failure;

    private static RateLimiter limiter(String name) {
        return new InMemoryRateLimiter(
                Limit.of(name, Algorithm.TOKEN_BUCKET).rate("1/h").build(), new ManualTicker(), 10);
    }

    private FarLimiter far(String name) {
        return new FarLimiter(limiter(name), Runnable::run) {

            @Override
            public boolean decidesWith(RateLimiter other) {
                return this == other;
            }

            @Override
            public Reservation reserve(Call call) {
                told.add(name + (call.isUndecided() ? " undecided" : " taken"));
                Reservation taken = super.reserve(call);
                whenCharged.run();
                return (Reservation) Proxy.newProxyInstance(
                        getClass().getClassLoader(), new Class<?>[] {Reservation.class}, (proxy, method, arguments) -> {
                            if (List.of("keep", "cancel").contains(method.getName())) {
                                told.add(name + " " + method.getName());
                            }
                            if (method.getName().equals("keep") && failure != null) {
                                throw failure;
                            }
                            try {
                                return method.invoke(taken, arguments);
                            } catch (InvocationTargetException ex) {
                                throw ex.getCause();
                            }
                        });
            }
        };
    }

    private static Reservation reserve(boolean blocking, RateLimiter... limiters) {
        List<Claim> claims = Stream.of(limiters)
                .map(limiter -> Claim.of(limiter, "key", 1, 0))
                .toList();
        return blocking
                ? AllOf.reserve(claims)
                : AllOf.reserveAsync(claims).toCompletableFuture().join();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallThatAllLimitsAdmitIsKept(boolean blocking) {
        assertThat(reserve(blocking, far, memory).isRefused()).isFalse();
        assertThat(told).containsExactly("far undecided", "far keep");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallThatALaterLimitRejectsGivesBackAndIsNotKept(boolean blocking) {
        whenCharged = () -> assertThat(memory.tryAcquire("key", 1)).isTrue();
        assertThat(reserve(blocking, far, memory).isRefused()).isTrue();
        assertThat(told).containsExactly("far undecided", "far cancel");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallUnderOneLimitIsDecidedAtOnce(boolean blocking) {
        assertThat(reserve(blocking, far).isRefused()).isFalse();
        assertThat(told).containsExactly("far taken");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theLastOfSeveralLimitsElsewhereDecidesForGood(boolean blocking) {
        assertThat(reserve(blocking, far, farther).isRefused()).isFalse();
        assertThat(told).containsExactly("far undecided", "farther taken", "far keep", "farther keep");
    }

    /** None of them decides last. Whoever decides beside them keeps their permits, if others decide later. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void limitsOfOneBackendThatAreTakenAtTheSameTimeAreUndecidedUntilAllAreTaken(boolean othersDecideLater) {
        List<Claim> claims = Stream.of(far, farther)
                .map(limiter -> Claim.of(limiter, "key", 1, 0))
                .map(claim -> othersDecideLater ? StatedClaim.undecided(claim) : claim)
                .toList();
        List<Reservation> taken = AllOf.reserveEach(
                        claims,
                        0,
                        claim -> claim.limiter().peekAsync(claim).toCompletableFuture(),
                        claim -> CompletableFuture.completedFuture(claim.reserve()))
                .join();
        assertThat(taken).hasSize(2);
        assertThat(told)
                .containsExactlyElementsOf(
                        othersDecideLater
                                ? List.of("far undecided", "farther undecided")
                                : List.of("far undecided", "farther undecided", "far keep", "farther keep"));
    }

    /** The other one fails before the first has answered. */
    @Test
    void whatOneLimitOfABackendTakesIsGivenBackWhenAnotherFails() {
        CompletableFuture<Void> answer = new CompletableFuture<>();
        CompletableFuture<List<Reservation>> taken = AllOf.reserveEach(
                List.of(Claim.of(far, "key", 1, 0), Claim.of(farther, "key", 1, 0)),
                0,
                claim -> claim.limiter().peekAsync(claim).toCompletableFuture(),
                claim -> {
                    if (claim.limiter() == farther) {
                        throw new IllegalStateException("takes nothing");
                    }
                    return answer.thenApply(any -> claim.reserve());
                });
        answer.complete(null);
        assertThatThrownBy(taken::join).hasStackTraceContaining("takes nothing");
        assertThat(told).containsExactly("far undecided", "far cancel");
        assertThat(far.peek("key", 1, 0).admitted()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void permitsAreGivenBackIfABackendFailsToKeepThem(boolean blocking) {
        failure = new IllegalStateException("keeps nothing");
        assertThatThrownBy(() -> reserve(blocking, far, memory)).hasStackTraceContaining("keeps nothing");
        failure = null;
        assertThat(memory.peek("key", 1, 0).admitted()).isTrue();
        assertThat(far.peek("key", 1, 0).admitted()).isTrue();
    }

    private static RateLimiter guesses(Ticker ticker) {
        Limit limit = Limit.of("guesses", Algorithm.SLIDING_LOG)
                .rate("1/h")
                .block(Duration.ofMinutes(10))
                .build();
        return new InMemoryRateLimiter(limit, ticker, 10);
    }

    /** Interferes when a thread reads the time. */
    private static final class Stepped extends DelegatingTicker {

        private final Thread thread = Thread.currentThread();
        private Runnable step = () -> {};
        private int left;

        Stepped() {
            super(new ManualTicker());
        }

        void interfere(int reading, Runnable now) {
            left = reading;
            step = now;
        }

        @Override
        public long nanos() {
            if (Thread.currentThread() == thread && --left == 0) {
                step.run();
            }
            return super.nanos();
        }
    }

    /** Whenever the other call comes: it is admitted, or rejected because of permits that are given back. */
    @Test
    void permitsThatACallTakesBeforeItWaitsForAPlaceElsewhereBlockNobody() throws Exception {
        List<FutureTask<Reservation>> others = new ArrayList<>();
        int steps = 0;
        do {
            Stepped time = new Stepped();
            RateLimiter guesses = guesses(time);
            RateLimiter calls = new FarLimiter(
                    new InMemoryRateLimiter(
                            Limit.of("calls", Algorithm.CONCURRENCY)
                                    .maxConcurrent(1)
                                    .build(),
                            new ManualTicker(),
                            10),
                    Runnable::run);
            calls.reserve("key", 1, 0);
            time.interfere(++steps, () -> {
                AtomicReference<@Nullable Thread> other = new AtomicReference<>();
                FutureTask<Reservation> rejected = Threads.start(() -> {
                    other.set(Thread.currentThread());
                    return guesses.reserve("key", 1, 0);
                });
                others.add(rejected);
                Threads.until(() -> {
                    Thread started = other.get();
                    return rejected.isDone() || (started != null && STOPPED.contains(started.getState()));
                });
            });
            AllOf.reserve(List.of(Claim.of(calls, "key", 1, Long.MAX_VALUE), Claim.of(guesses, "key", 1, 0)))
                    .cancel();
        } while (others.size() == steps);
        assertThat(others).hasSizeGreaterThan(2);
        for (FutureTask<Reservation> other : others) {
            assertThat(Threads.get(other).decision().blocked()).isFalse();
        }
    }

    private static RateLimiter queue(ManualTicker time) {
        Limit limit = Limit.of("queue", Algorithm.LEAKY_BUCKET)
                .rate("1/s")
                .burst(3)
                .maxWaiting(1)
                .block(Duration.ofMinutes(10))
                .build();
        RateLimiter queue = new InMemoryRateLimiter(limit, time, 10);
        assertThat(queue.tryAcquire("key", 1)).isTrue();
        return queue;
    }

    /** Another call takes the only position between the decision and the wait. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void permitsThatComeBackBecauseTheQueueOfAnotherLimitIsFullBlockNobody(boolean full) throws Exception {
        ManualTicker time = new ManualTicker();
        RateLimiter guesses = guesses(time);
        RateLimiter queue = queue(time);
        Reservation both =
                AllOf.reserve(List.of(Claim.of(guesses, "key", 1, 0), Claim.of(queue, "key", 1, Long.MAX_VALUE)));
        CompletableFuture<Boolean> other =
                full ? queue.reserve("key", 1, Long.MAX_VALUE).awaitAsync() : CompletableFuture.completedFuture(true);
        assertThat(guesses.reserve("key", 1, 0).decision().blocked()).isFalse();
        CompletableFuture<Boolean> wait = both.awaitAsync();
        assertThat(guesses.peek("key", 1, 0).blocked()).isFalse();
        time.advance(Duration.ofSeconds(2));
        assertThat(wait.get()).isEqualTo(!full);
        assertThat(other.get()).isTrue();
        assertThat(guesses.peek("key", 1, 0).blocked()).isEqualTo(!full);
        assertThat(guesses.peek("key", 1, 0).admitted()).isEqualTo(full);
    }

    /** Only the limit itself may have them give their permits back: they need not wait for the other one. */
    @ParameterizedTest
    @ValueSource(longs = {0, Long.MAX_VALUE})
    void aRejectionByALimitIsJudgedWhileCallsWaitForThatAlone(long longestWaitForAnother) {
        RateLimiter queue = queue(new ManualTicker());
        Reservation waiting = AllOf.reserve(
                List.of(Claim.of(queue, "key", 1, Long.MAX_VALUE), Claim.of(memory, "key", 1, longestWaitForAnother)));
        assertThat(waiting.mayWait()).isTrue();
        assertThat(queue.reserve("key", 1, 0).decision().blocked()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallThatWaitsForOneOfItsLimitsIsKeptElsewhereWhenItProceeds(boolean blocking) throws Exception {
        ManualTicker time = new ManualTicker();
        List<Claim> claims = List.of(Claim.of(queue(time), "key", 1, Long.MAX_VALUE), Claim.of(far, "key", 1, 0));
        Reservation waiting = blocking
                ? AllOf.reserve(claims)
                : AllOf.reserveAsync(claims).toCompletableFuture().join();
        assertThat(told).containsExactly("far undecided");
        CompletableFuture<Boolean> wait = waiting.awaitAsync();
        time.advance(Duration.ofSeconds(1));
        assertThat(wait.get()).isTrue();
        assertThat(told).containsExactly("far undecided", "far keep");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theLastOfSeveralLimitsElsewhereIsUndecidedIfTheCallMayWaitForAnother(boolean isBlocking) {
        farther.update(farther.limit().toBuilder().block(Duration.ofMinutes(10)).build());
        List<Claim> claims = List.of(Claim.of(far, "key", 1, Long.MAX_VALUE), Claim.of(farther, "key", 1, 0));
        Reservation taken = isBlocking
                ? AllOf.reserve(claims)
                : AllOf.reserveAsync(claims).toCompletableFuture().join();
        assertThat(taken.mayWait()).isFalse();
        assertThat(told).containsExactly("far undecided", "farther undecided", "far keep", "farther keep");
    }
}
