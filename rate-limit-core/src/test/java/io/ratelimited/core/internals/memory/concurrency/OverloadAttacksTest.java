package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What callers cannot do to others through a limit that finds itself, in virtual time: with quick calls, slow ones, and rejected ones. */
@Tag("slow")
class OverloadAttacksTest {

    private static final long MILLI = 1_000_000;

    private final ManualTicker ticker = new ManualTicker();
    private final InMemoryRateLimiter limiter = new InMemoryRateLimiter(
            Limit.of("service", Algorithm.ADAPTIVE)
                    .lateAfter(Duration.ofMillis(500))
                    .build(),
            ticker,
            1);
    private final SplittableRandom random = new SplittableRandom(77);

    private FoundLimit found() {
        return Objects.requireNonNull(limiter.foundLimit());
    }

    /** A task of virtual time. */
    private record Event(long at, int number, Runnable task) {}

    private final PriorityQueue<Event> events =
            new PriorityQueue<>(Comparator.comparingLong(Event::at).thenComparingInt(Event::number));
    private int number;
    private int offered;
    private int rejected;

    private void after(long nanos, Runnable task) {
        events.add(new Event(ticker.nanos() + nanos, number++, task));
    }

    private void runUntil(long end) {
        while (!events.isEmpty() && events.peek().at - end <= 0) {
            Event next = events.remove();
            ticker.advanceNanos(next.at - ticker.nanos());
            next.task.run();
        }
    }

    private long drawn(double perSecond) {
        return (long) (-Math.log(1 - random.nextDouble()) / perSecond * 1e9);
    }

    /** Calls that take 50 ms of the service. */
    private void others(double perSecond) {
        others(perSecond, 50);
    }

    private void others(double perSecond, long millis) {
        after(drawn(perSecond), () -> {
            others(perSecond, millis);
            offered++;
            Reservation call = limiter.reserve(null, 1, 0);
            if (call.isRefused()) {
                rejected++;
            } else {
                after(millis * MILLI / 2 + random.nextLong(millis * MILLI), () -> call.release(End.ANSWERED));
            }
        });
    }

    /** Calls of an attacker that end at once. */
    private void quick(double perSecond, End end) {
        after(drawn(perSecond), () -> {
            quick(perSecond, end);
            Reservation call = limiter.reserve(null, 1, 0);
            after(MILLI + random.nextLong(MILLI), () -> call.release(end));
        });
    }

    private void assertNobodyIsHarmed() {
        assertThat(offered).isGreaterThan(1_000);
        assertThat(rejected).as("of %d: %s", offered, found()).isLessThanOrEqualTo(offered / 200);
    }

    /** From the begin, or beside calls that are known; as answers, or as errors and rejections by a quota, whatever their status. */
    @ParameterizedTest
    @CsvSource({
        "0, 45, 100, ANSWERED",
        "0, 1000, 100, ANSWERED",
        "20, 1000, 100, ANSWERED",
        "20, 5000, 400, ANSWERED",
        "0, 45, 100, FAILED",
        "0, 1000, 100, FAILED",
        "20, 1000, 100, FAILED",
        "20, 5000, 400, FAILED",
        "20, 1000, 100, CANCELLED"
    })
    void quickCallsPinNothing(int secondsBefore, double attack, long millis, End end) {
        if (secondsBefore > 0) {
            others(60, millis);
            runUntil(ticker.nanos() + secondsBefore * 1_000L * MILLI);
        }
        quick(attack, end);
        runUntil(ticker.nanos() + 20_000 * MILLI);
        if (secondsBefore == 0) {
            others(60, millis);
        }
        runUntil(ticker.nanos() + 60_000 * MILLI);
        assertNobodyIsHarmed();
    }

    /** After a second of quick calls come others that are slower; for minutes the limit rejects none of them. */
    @ParameterizedTest
    @CsvSource({"60, 100", "10, 1000", "4, 2000"})
    void aFewQuickCallsBeforeSlowerOnesPinNothing(double perSecond, long millis) {
        limiter.update(Limit.of("service", Algorithm.ADAPTIVE).build());
        for (int i = 0; i < 45; i++) {
            Reservation call = limiter.reserve(null, 1, 0);
            ticker.advanceNanos(5 * MILLI);
            call.release(End.ANSWERED);
        }
        others(perSecond, millis);
        runUntil(ticker.nanos() + 600_000 * MILLI);
        assertNobodyIsHarmed();
    }

    /** Makes one call after the other; after a rejection a second later. */
    private void worker(long millis) {
        offered++;
        Reservation call = limiter.reserve(null, 1, 0);
        if (call.isRefused()) {
            rejected++;
            after(1_000 * MILLI, () -> worker(millis));
        } else {
            after(millis * MILLI / 2 + random.nextLong(millis * MILLI), () -> {
                call.release(End.ANSWERED);
                worker(millis);
            });
        }
    }

    /** A fixed number of workers looks like the threads of a server, until fewer of them show that their calls are as slow. */
    @ParameterizedTest
    @CsvSource({"25, 2000", "40, 2000", "40, 5000", "80, 5000"})
    void slowCallsOfAFixedNumberOfWorkersAreLimitedOnce(int workers, long millis) {
        limiter.update(Limit.of("service", Algorithm.ADAPTIVE).build());
        for (int i = 0; i < 400; i++) {
            Reservation call = limiter.reserve(null, 1, 0);
            ticker.advanceNanos(20 * MILLI);
            call.release(End.ANSWERED);
        }
        for (int i = 0; i < workers; i++) {
            after(10 * MILLI * i, () -> worker(millis));
        }
        runUntil(ticker.nanos() + 60_000 * MILLI);
        assertThat(rejected).isPositive();
        offered = 0;
        rejected = 0;
        runUntil(ticker.nanos() + 300_000 * MILLI);
        assertThat(rejected).as("of %d: %s", offered, found()).isZero();
    }

    /** Calls whose bodies arrive in six parts, within 600 ms, before the service works for 50 ms. */
    private void slow(double perSecond, boolean isTold) {
        after(drawn(perSecond), () -> {
            slow(perSecond, isTold);
            Reservation call = limiter.reserve(null, 1, 0);
            if (!call.isRefused()) {
                read(call, 6, isTold);
            }
        });
    }

    private void read(Reservation call, int parts, boolean isTold) {
        if (isTold) {
            call.awaitCaller();
        }
        long took = 50 * MILLI + random.nextLong(100 * MILLI);
        after(took, () -> {
            if (isTold) {
                call.callerCame(took);
            }
            if (parts > 1) {
                read(call, parts - 1, isTold);
            } else {
                after(50 * MILLI, () -> call.release(End.ANSWERED));
            }
        });
    }

    @ParameterizedTest
    @CsvSource({"50, 5", "100, 100", "100, 300", "100, 1000", "600, 1200"})
    void slowClientsTakeNothingFromOthers(double others, double slow) {
        others(others);
        runUntil(ticker.nanos() + 20_000 * MILLI);
        slow(slow, true);
        runUntil(ticker.nanos() + 60_000 * MILLI);
        assertNobodyIsHarmed();
    }

    @Test
    void theTimeOfTheCallerIsNoTimeOfTheService() {
        for (int i = 0; i < 100; i++) {
            Reservation call = limiter.reserve(null, 1, 0);
            ticker.advanceNanos(10 * MILLI);
            call.awaitCaller();
            ticker.advanceNanos(2_000 * MILLI);
            call.callerCame(2_000 * MILLI);
            ticker.advanceNanos(10 * MILLI);
            call.release(End.ANSWERED);
        }
        assertThat(found().baseTime()).isEqualTo(Duration.ofMillis(20));
        assertThat(found().limit()).isEqualTo(1000);
    }

    @Test
    void aCallThatWaitsForItsCallerKeepsItsPlaceAndEndsOnce() {
        limiter.update(Limit.of("service", Algorithm.ADAPTIVE)
                .minConcurrent(1)
                .maxConcurrent(1)
                .build());
        Reservation call = limiter.reserve(null, 1, 0);
        call.awaitCaller();
        call.awaitCaller();
        assertThat(call.decision().admitted()).isTrue();
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isTrue();
        call.release(End.CANCELLED);
        call.callerCame(1);
        call.release();
        assertThat(found().inFlight()).isZero();
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isFalse();
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isTrue();
    }

    /** The states of a call change in one thread while it ends in another. */
    @Test
    void aCallWhoseCallerComesWhileItEndsIsReleased() throws Exception {
        AtomicReference<Reservation> ends = new AtomicReference<>(limiter.reserve(null, 1, 0));
        AtomicReference<Reservation> comes = new AtomicReference<>();
        AtomicBoolean done = new AtomicBoolean();
        Threads.run(2, thread -> {
            if (thread == 0) {
                while (!done.get()) {
                    Reservation call = ends.get();
                    comes.set(call);
                    for (int i = 0; i < 100; i++) {
                        call.awaitCaller();
                        call.callerCame(0);
                    }
                    Thread.yield();
                }
            } else {
                for (int i = 0; i < 5_000; i++) {
                    while (comes.get() != ends.get()) {
                        Thread.yield();
                    }
                    ends.get().release();
                    ends.set(limiter.reserve(null, 1, 0));
                }
                done.set(true);
            }
            return null;
        });
        ends.get().release();
        assertThat(found().inFlight()).isZero();
    }

    @Test
    void besideAnotherLimitTheTimeOfTheCallerIsLeftOutToo() {
        InMemoryRateLimiter quota = new InMemoryRateLimiter(
                Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("unlimited").build(), ticker, 1);
        for (int i = 0; i < 100; i++) {
            Reservation call = AllOf.reserve(List.of(Claim.of(quota, null, 1, 0), Claim.of(limiter, null, 1, 0)));
            call.awaitCaller();
            ticker.advanceNanos(2_000 * MILLI);
            call.callerCame(2_000 * MILLI);
            ticker.advanceNanos(20 * MILLI);
            call.release(End.ANSWERED);
        }
        assertThat(found().baseTime()).isEqualTo(Duration.ofMillis(20));
    }

    @Test
    void aCallThatHasWaitedForItsPlaceMayWaitForItsCaller() throws InterruptedException {
        limiter.update(Limit.of("service", Algorithm.ADAPTIVE)
                .minConcurrent(1)
                .maxConcurrent(1)
                .build());
        Reservation first = limiter.reserve(null, 1, 0);
        for (int i = 0; i < 100; i++) {
            ticker.advanceNanos(20 * MILLI);
            Reservation call = limiter.reserve(null, 1, 10_000 * MILLI);
            first.release();
            assertThat(call.await()).isTrue();
            call.awaitCaller();
            ticker.advanceNanos(2_000 * MILLI);
            call.callerCame(2_000 * MILLI);
            first = call;
        }
        assertThat(found().baseTime()).isEqualTo(Duration.ofMillis(20));
    }
}
