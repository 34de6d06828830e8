package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A call that fails halfway, at whichever step and for whichever reason, has given back all that it took. */
@Timeout(30)
class LostPermitsTest {

    private static final long SECOND = 1_000_000_000L;
    private static final long HOUR = 3_600 * SECOND;

    private final ManualTicker time = new ManualTicker();
    /** Its next call goes after 5 s. */
    private final RateLimiter rate =
            limiter(Limit.of("rate", Algorithm.TOKEN_BUCKET).rate("1/5s"));

    private final RateLimiter five =
            limiter(Limit.of("five", Algorithm.CONCURRENCY).maxConcurrent(5));
    private final RateLimiter one =
            limiter(Limit.of("one", Algorithm.CONCURRENCY).maxConcurrent(1));
    /** One place, and one seat for those that wait for it. */
    private final RateLimiter classes = limiter(Limit.of("classes", Algorithm.CONCURRENCY)
            .maxConcurrent(1)
            .maxWaiting(1)
            .priorities(List.of("high", "low")));

    LostPermitsTest() {
        rate.tryAcquire("key", 1);
    }

    private RateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), time, 10);
    }

    private static Claim claim(RateLimiter limiter, long maxWait) {
        return Claim.of(limiter, "key", 1, maxWait);
    }

    /** The permit of the rate is there when it is due, and all five places are free. */
    private void assertNothingIsHeld() {
        assertThat(rate.peek("key", 1, 0).admitted()).as("rate").isTrue();
        assertThat(five.peek("key", 1, 0).remaining()).as("five").isEqualTo(5);
        assertThat(five.keys() + five.waiting() + one.waiting() + rate.waiting())
                .as("waiting")
                .isZero();
    }

    /** Begins to wait with a thread or without one. The rate is due when this returns. */
    private Callable<Boolean> waitForTheRate(Reservation call, boolean blocking) throws InterruptedException {
        if (blocking) {
            FutureTask<Boolean> sleeper = Threads.start(call::await);
            time.awaitSleeping(1);
            time.advanceNanos(5 * SECOND);
            return () -> Threads.get(sleeper);
        }
        CompletableFuture<Boolean> turn = call.awaitAsync();
        time.advanceNanos(5 * SECOND);
        FutureTask<Boolean> task = new FutureTask<>(turn::get);
        return () -> {
            task.run();
            return Threads.get(task);
        };
    }

    @Test
    void whoIsInterruptedInTheSecondWaitGivesAllBack() throws Exception {
        Reservation taken = one.reserve("key", 1, 0);
        Reservation call = AllOf.reserve(List.of(claim(rate, HOUR), claim(five, HOUR), claim(one, HOUR)));
        FutureTask<Boolean> sleeper = new FutureTask<>(call::await);
        Thread thread = new Thread(sleeper);
        thread.start();
        time.awaitSleeping(1);
        time.advanceNanos(5 * SECOND);
        Threads.until(() -> one.waiting() == 1);
        thread.interrupt();
        assertThatThrownBy(() -> Threads.get(sleeper)).isInstanceOf(InterruptedException.class);
        assertNothingIsHeld();
        taken.release();
        assertThat(one.peek("key", 1, 0).admitted()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoWaitsForAPlaceOfALimitThatClosesGivesAllBack(boolean blocking) throws Exception {
        one.reserve("key", 1, 0);
        Reservation call = AllOf.reserve(List.of(claim(rate, HOUR), claim(five, HOUR), claim(one, HOUR)));
        Callable<Boolean> turn = waitForTheRate(call, blocking);
        Threads.until(() -> one.waiting() == 1);
        one.close();
        assertThatThrownBy(turn::call).hasStackTraceContaining(RateLimiterClosedException.class.getName());
        assertNothingIsHeld();
    }

    /** The limit decides elsewhere, and fails when the wait for the rate is over. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoseSecondStepFailsGivesAllBack(boolean blocking) throws Exception {
        RateLimiter failing = new FarLimiter(one, Runnable::run) {
            @Override
            @Nullable
            RuntimeException failure() {
                return time.nanos() > 0 ? new IllegalStateException("away") : null;
            }
        };
        Reservation call = AllOf.reserve(List.of(claim(rate, HOUR), claim(five, HOUR), claim(failing, HOUR)));
        Callable<Boolean> turn = waitForTheRate(call, blocking);
        assertThatThrownBy(turn::call).hasStackTraceContaining("away");
        assertNothingIsHeld();
        assertThat(one.peek("key", 1, 0).admitted()).isTrue();
    }

    /** As someone does who has waited without a thread, and then waits with one, to be sure. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoWaitsTwiceTakesItsPlacesOnce(boolean blocking) throws Exception {
        Reservation call = AllOf.reserve(List.of(claim(rate, HOUR), claim(five, HOUR), claim(one, HOUR)));
        assertThat(waitForTheRate(call, blocking).call()).isTrue();
        assertThat(call.await()).isTrue();
        assertThat(call.awaitAsync().get()).isTrue();
        assertThat(five.peek("key", 1, 0).remaining()).isEqualTo(4);
        call.release();
        call.await();
        assertThat(five.peek("key", 1, 0).remaining()).isEqualTo(5);
        assertThat(one.peek("key", 1, 0).admitted()).isTrue();
    }

    /** Does something when a place has been decided, under the lock of several limits. */
    private static RateLimiter watched(RateLimiter place, Runnable decided) {
        return (RateLimiter) Proxy.newProxyInstance(
                RateLimiter.class.getClassLoader(),
                new Class<?>[] {MemoryLimiter.class},
                (proxy, method, arguments) -> {
                    Object result = method.invoke(place, arguments);
                    if (method.getName().equals("reserveAsked")) {
                        decided.run();
                    }
                    return result;
                });
    }

    private final AtomicReference<CompletableFuture<Boolean>> seated = new AtomicReference<>();
    private final AtomicReference<Reservation> crowding = new AtomicReference<>();

    /** Calls of the higher class take the seat of a call that stands in the queue and does not sit yet. */
    private void crowdOut() {
        seated.set(classes.reserve(Call.of("key", 1, HOUR, 0)).awaitAsync());
        crowding.set(classes.reserve(Call.of("key", 1, HOUR, 0)));
    }

    private void endAll(Reservation place) {
        crowding.get().cancel();
        seated.get().cancel(false);
        place.release();
        assertThat(classes.keys()).isZero();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoIsCrowdedOutBetweenTheTwoStepsGivesAllBack(boolean blocking) throws Exception {
        Reservation place = classes.reserve(Call.of("key", 1, 0, 0));
        RateLimiter watched = watched(classes, this::crowdOut);
        Reservation call =
                AllOf.reserve(List.of(claim(rate, HOUR), Claim.of(watched, "key", 1, HOUR, 1), claim(five, HOUR)));
        assertThat(waitForTheRate(call, blocking).call()).isFalse();
        assertThat(call.isRefused()).isTrue();
        assertThat(AllOf.decisive(AllOf.refusals(call))).isOne();
        assertNothingIsHeld();
        endAll(place);
    }

    /** The same for places that are taken at once, beside a limit elsewhere. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoIsCrowdedOutBesideALimitElsewhereGivesAllBack(boolean blocking) throws Exception {
        Reservation place = classes.reserve(Call.of("key", 1, 0, 0));
        RateLimiter far =
                new FarLimiter(limiter(Limit.of("far", Algorithm.TOKEN_BUCKET).rate("1/h")), Runnable::run);
        RateLimiter watched = watched(classes, this::crowdOut);
        List<Claim> claims = List.of(Claim.of(watched, "key", 1, HOUR, 1), claim(five, HOUR), claim(far, HOUR));
        Reservation call = blocking
                ? AllOf.reserve(claims)
                : AllOf.reserveAsync(claims).toCompletableFuture().join();
        assertThat(call.isRefused()).isTrue();
        assertThat(AllOf.decisive(AllOf.refusals(call))).isZero();
        assertThat(far.peek("key", 1, 0).admitted()).isTrue();
        time.advanceNanos(5 * SECOND);
        assertNothingIsHeld();
        endAll(place);
    }

    /** The first backend has taken its permit when the second one fails. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatOneBackendHasTakenComesBackWhenAnotherFails(boolean blocking) {
        AtomicInteger asked = new AtomicInteger();
        RateLimiter taking = new FarLimiter(five, Runnable::run);
        RateLimiter failing = new FarLimiter(one, task -> task.run()) {
            @Override
            @Nullable
            RuntimeException failure() {
                return asked.getAndIncrement() == 1 ? new IllegalStateException("away") : null;
            }
        };
        List<Claim> claims = List.of(claim(taking, 0), claim(failing, 0));
        assertThatThrownBy(() -> {
                    if (blocking) {
                        AllOf.reserve(claims);
                    } else {
                        AllOf.reserveAsync(claims).toCompletableFuture().get();
                    }
                })
                .hasStackTraceContaining("away");
        assertThat(asked).as("asked, then charged").hasValue(2);
        assertThat(five.keys() + one.keys()).isZero();
    }

    /** A place that waits is refused before its caller looks: it holds no other one, and does not go. */
    @Test
    void whoIsCrowdedOutBeforeItWaitsIsNotAdmitted() throws Exception {
        Reservation place = classes.reserve(Call.of("key", 1, 0, 0));
        Reservation call = AllOf.reserve(List.of(Claim.of(classes, "key", 1, HOUR, 1), claim(five, HOUR)));
        crowdOut();
        assertThat(call.mayWait()).isTrue();
        assertThat(call.await()).isFalse();
        assertThat(call.isRefused()).isTrue();
        time.advanceNanos(5 * SECOND);
        assertNothingIsHeld();
        endAll(place);
    }
}
