package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A call under several limits waits for all of them together, and what one of them ends has ended for all. */
@Timeout(30)
class SeveralWaitsTest {

    private static final long SECOND = 1_000_000_000L;
    private static final long HOUR = 3_600 * SECOND;

    private final ManualTicker time = new ManualTicker();
    private final RateLimiter flights =
            limiter(Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(1));
    /** Its next call goes after 5 s. */
    private final RateLimiter soon = pace("soon", "1/5s");
    /** Its next call goes after 60 s. */
    private final RateLimiter late = pace("late", "1/m");

    private RateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), time, 10);
    }

    private RateLimiter pace(String name, String rate) {
        RateLimiter limiter =
                limiter(Limit.of(name, Algorithm.LEAKY_BUCKET).rate(rate).burst(100));
        limiter.tryAcquire("key", 1);
        return limiter;
    }

    private static Claim claim(RateLimiter limiter, long maxWait) {
        return Claim.of(limiter, "key", 1, maxWait);
    }

    private long nextOf(RateLimiter limiter) {
        return limiter.peek("key", 1, HOUR).waitTime().toSeconds();
    }

    private static Reservation reserveAsync(Claim... claims) {
        return AllOf.reserveAsync(List.of(claims)).toCompletableFuture().join();
    }

    private FutureTask<Boolean> sleeper(Reservation call, int sleeping) throws InterruptedException {
        FutureTask<Boolean> sleeper = Threads.start(call::await);
        time.awaitSleeping(sleeping);
        return sleeper;
    }

    @Test
    void whatAnotherLimitRefusesIsChargedToNoneWithoutAThreadEither() {
        RateLimiter window = limiter(Limit.of("window", Algorithm.FIXED_WINDOW).rate("10/m"));
        RateLimiter spent = limiter(Limit.of("spent", Algorithm.TOKEN_BUCKET).rate("1/h"));
        spent.tryAcquire("key", 1);
        window.tryAcquire("key", 7);
        Reservation refused = reserveAsync(Claim.of(window, "key", 5, HOUR), claim(spent, 0));
        assertThat(refused.isRefused()).isTrue();
        assertThat(refused.decision().limit()).isEqualTo("spent");
        assertThat(window.tryAcquire("key", 3)).isTrue();
    }

    /** The one that waits longest: with a position for each, the call would displace itself. */
    @ParameterizedTest
    @CsvSource({"key, false", "other, false", "key, true", "other, true"})
    void aCallHasOnePositionInTheQueueOfALimitForAllOfItsClaims(String second, boolean far) throws Exception {
        RateLimiter bucket =
                limiter(Limit.of("bucket", Algorithm.TOKEN_BUCKET).rate("2/2s").maxWaiting(1));
        RateLimiter asked = far ? new FarLimiter(bucket, Runnable::run) : bucket;
        for (boolean blocking : new boolean[] {true, false}) {
            bucket.tryAcquire("key", 2);
            bucket.tryAcquire("other", 2);
            Reservation call = reserveAsync(claim(asked, HOUR), Claim.of(asked, second, 1, HOUR));
            long wait = second.equals("key") ? 2 * SECOND : SECOND;
            assertThat(call.waitNanos()).isEqualTo(wait);
            assertThat(AllOf.member(call, 0).waitNanos()).isEqualTo(second.equals("key") ? wait : SECOND);
            assertThat(AllOf.member(call, 1).waitNanos()).isEqualTo(wait);
            Future<Boolean> waiting = blocking ? sleeper(call, 1) : call.awaitAsync();
            assertThat(bucket.waiting()).isOne();
            time.advance(Duration.ofNanos(wait - 1));
            assertThat(waiting.isDone()).isFalse();
            time.advance(Duration.ofNanos(1));
            assertThat(waiting.get()).isTrue();
            assertThat(bucket.waiting()).isZero();
            time.advance(Duration.ofSeconds(10));
        }
    }

    private static Claim waiting(RateLimiter limiter, long millis) {
        return claim(limiter, Duration.ofMillis(millis).toNanos());
    }

    /** So many calls of the day before are made after midnight: rate times the longest wait, or the capacity of the queue. */
    @ParameterizedTest
    @CsvSource({"20, 2000, 20", "9, 2000, 9", "20, 500, 5"})
    void aCallThatWaitsAcrossTheEdgeOfAWindowCountsInTheWindowOfItsDecision(int burst, long maxWait, int across) {
        RateLimiter quota = limiter(Limit.of("quota", Algorithm.FIXED_WINDOW).rate("50/d"));
        RateLimiter pace =
                limiter(Limit.of("pace", Algorithm.LEAKY_BUCKET).rate("10/s").burst(burst));
        time.setWallClock(Instant.parse("2026-01-01T23:59:59.950Z"));
        Claim[] claims = {claim(quota, 0), waiting(pace, maxWait)};
        assertThat(AllOf.reserve(claims).waitNanos()).isZero();
        time.advance(Duration.ofMillis(49));
        int waits = 0;
        for (Reservation call; !(call = AllOf.reserve(claims)).isRefused(); waits++) {
            assertThat(call.waitNanos()).isGreaterThan(Duration.ofMillis(1).toNanos());
        }
        assertThat(waits).isEqualTo(across);
        time.advance(Duration.ofMillis(1));
        assertThat(quota.peek("key", 1, 0).remaining()).isEqualTo(50);
        assertThat(quota.tryAcquire("key", 50)).isTrue();
    }

    @Test
    void callsThatWaitForAWindowAreMadeTogetherAtItsEdge() {
        RateLimiter window = limiter(Limit.of("window", Algorithm.FIXED_WINDOW).rate("3/s"));
        RateLimiter pace =
                limiter(Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("10/s").burst(1));
        time.setWallClock(Instant.parse("2026-01-01T00:00:00Z"));
        List<Long> made = new ArrayList<>();
        for (int call = 0; call < 6; call++) {
            made.add((time.nanos()
                            + AllOf.reserve(List.of(waiting(window, 1_000), claim(pace, 0)))
                                    .waitNanos())
                    / 1_000_000);
            time.advance(Duration.ofMillis(100));
        }
        assertThat(made).containsExactly(0L, 100L, 200L, 1_000L, 1_000L, 1_000L);
    }

    @Test
    void whenOneLimitGivesUpTheCallerHearsAtOnce() {
        Reservation flight = flights.reserve("key", 1, 0);
        Reservation call = reserveAsync(claim(late, HOUR), claim(flights, SECOND));
        CompletableFuture<Boolean> turn = call.awaitAsync();
        time.advanceNanos(SECOND - 1);
        assertThat(turn).isNotDone();
        time.advanceNanos(1);
        assertThat(turn).isCompletedWithValue(false);
        assertThat(call.isRefused()).isTrue();
        assertThat(call.decision().limit()).isEqualTo("flights");
        assertThat(AllOf.decisive(AllOf.refusals(call))).isEqualTo(1);
        assertThat(nextOf(late)).isEqualTo(59);
        assertThat(late.waiting() + flights.waiting() + time.sleeping()).isZero();
        flight.release();
        assertThat(flights.peek("key", 1, 0).admitted()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void aSleeperHearsAtOnceToo(int position) throws Exception {
        Reservation flight = flights.reserve("key", 1, 0);
        List<Claim> claims = new ArrayList<>(List.of(claim(soon, HOUR), claim(late, HOUR)));
        claims.add(position, claim(flights, SECOND));
        Reservation call = AllOf.reserve(claims);
        FutureTask<Boolean> sleeper = sleeper(call, 3);
        time.advanceNanos(SECOND);
        assertThat(Threads.get(sleeper)).isFalse();
        assertThat(call.decision().limit()).isEqualTo("flights");
        flight.release();
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        assertThat(nextOf(soon)).isEqualTo(4);
        assertThat(nextOf(late)).isEqualTo(59);
        assertThat(soon.waiting() + late.waiting() + flights.waiting() + time.sleeping())
                .isZero();
    }

    /** The place that is free after 5 s comes too late for a call that waits 1 s for it. */
    @Test
    void aPlaceIsNotTakenAfterItsLongestWait() throws Exception {
        Reservation flight = flights.reserve("key", 1, 0);
        FutureTask<Boolean> sleeper =
                sleeper(AllOf.reserve(List.of(claim(soon, HOUR), claim(flights, SECOND), claim(late, HOUR))), 3);
        time.advanceNanos(5 * SECOND);
        flight.release();
        assertThat(Threads.get(sleeper)).isFalse();
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
    }

    @Test
    void aCallThatMayWaitLongEnoughTakesItsPlaceWhenTheOthersLetItGo() throws Exception {
        for (boolean blocking : new boolean[] {true, false}) {
            long before = time.nanos();
            Reservation call = AllOf.reserve(List.of(claim(flights, 5 * SECOND), claim(soon, HOUR)));
            assertThat(call.isRefused()).isFalse();
            assertThat(call.mayWait()).isTrue();
            assertThat(call.decision().limit()).isEqualTo("soon");
            assertThat(AllOf.member(call, 0).decision().limit()).isEqualTo("flights");
            FutureTask<Boolean> sleeper = blocking ? sleeper(call, 1) : null;
            CompletableFuture<Boolean> turn = blocking ? null : call.awaitAsync();
            assertThat(flights.peek("key", 1, 0).remaining()).as("asleep").isOne();
            time.advanceNanos(5 * SECOND);
            assertThat(blocking ? Threads.get(sleeper) : turn.getNow(false)).isTrue();
            assertThat(time.nanos() - before).isEqualTo(5 * SECOND);
            assertThat(flights.peek("key", 1, 0).remaining()).isZero();
            call.release();
            assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        }
    }

    @Test
    void theLongestWaitForAPlaceCountsFromTheDecision() throws Exception {
        Reservation flight = flights.reserve("key", 1, 0);
        for (boolean blocking : new boolean[] {true, false}) {
            Reservation call = AllOf.reserve(List.of(claim(flights, 7 * SECOND), claim(soon, HOUR)));
            FutureTask<Boolean> sleeper = blocking ? sleeper(call, 1) : null;
            CompletableFuture<Boolean> turn = blocking ? null : call.awaitAsync();
            time.advanceNanos(5 * SECOND);
            Threads.until(() -> flights.waiting() == 1);
            time.advanceNanos(2 * SECOND - 1);
            assertThat(blocking ? sleeper.isDone() : turn.isDone()).isFalse();
            time.advanceNanos(1);
            assertThat(blocking ? Threads.get(sleeper) : turn.getNow(true)).isFalse();
            assertThat(call.decision().limit()).isEqualTo("flights");
            assertThat(AllOf.decisive(AllOf.refusals(call))).isZero();
            time.advanceNanos(60 * SECOND);
            soon.tryAcquire("key", 1);
        }
        flight.release();
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
    }

    @Test
    void theLongestWaitForASecondPlaceCountsFromTheDecisionToo() throws Exception {
        RateLimiter seats = limiter(Limit.of("seats", Algorithm.CONCURRENCY).maxConcurrent(1));
        seats.reserve("key", 1, 0);
        for (boolean blocking : new boolean[] {true, false}) {
            Reservation flight = flights.reserve("key", 1, 0);
            Reservation call =
                    AllOf.reserve(List.of(claim(flights, 7 * SECOND), claim(seats, 7 * SECOND), claim(soon, HOUR)));
            FutureTask<Boolean> sleeper = blocking ? sleeper(call, 1) : null;
            CompletableFuture<Boolean> turn = blocking ? null : call.awaitAsync();
            time.advanceNanos(5 * SECOND);
            Threads.until(() -> flights.waiting() == 1);
            time.advanceNanos(SECOND);
            assertThat(seats.waiting()).isZero();
            flight.release();
            Threads.until(() -> seats.waiting() == 1);
            time.advanceNanos(SECOND);
            assertThat(blocking ? Threads.get(sleeper) : turn.getNow(true)).isFalse();
            assertThat(AllOf.decisive(AllOf.refusals(call))).isOne();
            assertThat(flights.peek("key", 1, 0).remaining()).isOne();
            assertThat(seats.waiting() + flights.waiting() + time.sleeping()).isZero();
            time.advanceNanos(60 * SECOND);
            soon.tryAcquire("key", 1);
        }
    }

    /** Nobody promises a place later, so that a call which must not wait for one holds it from its decision. */
    @Test
    void aCallThatMayNotWaitLongEnoughHoldsItsPlaceWhileItSleeps() {
        for (long maxWait : new long[] {0, SECOND}) {
            Reservation call = AllOf.reserve(List.of(claim(flights, maxWait), claim(soon, HOUR)));
            assertThat(flights.peek("key", 1, 0).remaining()).isZero();
            call.cancel();
            assertThat(flights.peek("key", 1, 0).remaining()).isOne();
            assertThat(nextOf(soon)).isEqualTo(5);
        }
    }

    @Test
    void aCallThatIsGivenUpTakesNoPlaceLater() throws Exception {
        Reservation asleep = AllOf.reserve(List.of(claim(soon, HOUR), claim(flights, HOUR)));
        CompletableFuture<Boolean> turn = asleep.awaitAsync();
        assertThat(turn.cancel(false)).isTrue();
        assertThat(nextOf(soon)).isEqualTo(5);
        time.advanceNanos(5 * SECOND);
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();

        // The next one has the pacing behind it, and waits for the place.
        soon.tryAcquire("key", 1);
        Reservation flight = flights.reserve("key", 1, 0);
        Reservation queued = AllOf.reserve(List.of(claim(soon, HOUR), claim(flights, HOUR)));
        turn = queued.awaitAsync();
        time.advanceNanos(5 * SECOND);
        assertThat(flights.waiting()).isOne();
        assertThat(turn.cancel(false)).isTrue();
        assertThat(flights.waiting()).isZero();
        flight.release();
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
    }

    @Test
    void anInterruptedSleeperGivesEverythingBack() throws Exception {
        for (long maxWait : new long[] {SECOND, HOUR}) {
            Reservation flight = flights.reserve("key", 1, 0);
            Reservation call = AllOf.reserve(List.of(claim(soon, HOUR), claim(flights, maxWait), claim(late, HOUR)));
            FutureTask<Boolean> sleeper = new FutureTask<>(call::await);
            Thread thread = new Thread(sleeper);
            thread.start();
            time.awaitSleeping(2);
            thread.interrupt();
            assertThatThrownBy(() -> sleeper.get(1, TimeUnit.MINUTES))
                    .isInstanceOf(ExecutionException.class)
                    .hasCauseInstanceOf(InterruptedException.class);
            assertThat(soon.waiting() + late.waiting() + flights.waiting() + time.sleeping())
                    .isZero();
            assertThat(nextOf(soon)).isEqualTo(5);
            assertThat(nextOf(late)).isEqualTo(60);
            flight.release();
            assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        }
    }

    @Test
    void aSleeperWithoutASeatAtOneLimitHearsBeforeItSleepsForAnother() throws Exception {
        RateLimiter crowded = limiter(Limit.of("crowded", Algorithm.LEAKY_BUCKET)
                .rate("1/m")
                .burst(100)
                .maxWaiting(1));
        crowded.tryAcquire("key", 1);
        Reservation call = AllOf.reserve(List.of(claim(soon, HOUR), claim(crowded, HOUR)));
        CompletableFuture<Boolean> other = crowded.reserve("key", 1, HOUR).awaitAsync();
        assertThat(call.await()).isFalse();
        assertThat(call.decision().limit()).isEqualTo("crowded");
        assertThat(nextOf(soon)).isEqualTo(5);
        assertThat(time.nanos()).isZero();
        assertThat(other).isNotDone();
    }

    /** Time that moves itself passes the end of the shorter wait on its way to that of the longer one. */
    @Test
    void theShorterWaitEndsFirstWhereTheTimeMovesItself() throws InterruptedException {
        Reservation flight = flights.reserve("key", 1, 0);
        Reservation call = AllOf.reserve(List.of(claim(soon, HOUR), claim(flights, SECOND)));
        time.autoAdvance();
        assertThat(call.await()).isFalse();
        assertThat(call.decision().limit()).isEqualTo("flights");
        assertThat(time.elapsed()).isLessThanOrEqualTo(Duration.ofSeconds(5));
        flight.release();
    }

    /**
     * Callers who claim the same places in opposite orders take them in one order. So none holds a place that another one waits
     * for who holds its own.
     */
    @Test
    void placesThatAreClaimedCrosswiseAreNotWaitedForInACircle() throws Exception {
        RateLimiter rooms = limiter(Limit.of("rooms", Algorithm.CONCURRENCY).maxConcurrent(1));
        List<Claim> one = List.of(claim(flights, HOUR), claim(rooms, HOUR));
        List<Claim> other = List.of(claim(rooms, HOUR), claim(flights, HOUR));
        long gone = Threads.sum(4, thread -> {
            long went = 0;
            for (int i = 0; i < 500; i++) {
                Reservation call = AllOf.reserve(thread % 2 == 0 ? one : other);
                went += call.await() ? 1 : 0;
                call.release();
            }
            return went;
        });
        assertThat(gone).isEqualTo(2_000);
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        assertThat(rooms.peek("key", 1, 0).remaining()).isOne();
        assertThat(flights.waiting() + rooms.waiting() + time.sleeping()).isZero();
    }

    /** The same where both calls wait for another limit first, which lets them go at the same time. */
    @Test
    void laterPlacesThatAreClaimedCrosswiseAreNotWaitedForInACircle() throws Exception {
        RateLimiter rooms = limiter(Limit.of("rooms", Algorithm.CONCURRENCY).maxConcurrent(1));
        RateLimiter alsoSoon = pace("also-soon", "1/5s");
        for (int i = 0; i < 500; i++) {
            Reservation one = AllOf.reserve(List.of(claim(soon, HOUR), claim(flights, HOUR), claim(rooms, HOUR)));
            Reservation other = AllOf.reserve(List.of(claim(alsoSoon, HOUR), claim(rooms, HOUR), claim(flights, HOUR)));
            List<FutureTask<Boolean>> calls =
                    List.of(Threads.start(() -> goesAndEnds(one)), Threads.start(() -> goesAndEnds(other)));
            time.awaitSleeping(2);
            time.advanceNanos(5 * SECOND);
            for (FutureTask<Boolean> call : calls) {
                assertThat(Threads.get(call)).isTrue();
            }
        }
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        assertThat(rooms.peek("key", 1, 0).remaining()).isOne();
        assertThat(flights.waiting() + rooms.waiting() + time.sleeping()).isZero();
    }

    /** A call of a higher class passes one that waits, and does not get before it what that one holds. */
    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void aCallOfAHigherClassAndOneThatHoldsAPlaceDoNotWaitInACircle(Algorithm algorithm) {
        RateLimiter cars = limiter(classes("cars", algorithm).maxConcurrent(1));
        RateLimiter rooms = limiter(classes("rooms", Algorithm.CONCURRENCY).maxConcurrent(1));
        Reservation other = rooms.reserve(null, 1, 0);
        Reservation batch = reserveAsync(ranked(cars, 1, HOUR), ranked(rooms, 1, HOUR));
        CompletableFuture<Boolean> batchGoes = batch.awaitAsync();
        Reservation critical = reserveAsync(ranked(rooms, 0, HOUR), ranked(cars, 0, HOUR));
        CompletableFuture<Boolean> criticalGoes = critical.awaitAsync();
        other.release();
        boolean criticalFirst = criticalGoes.getNow(false);
        assertThat(criticalFirst).isNotEqualTo(batchGoes.getNow(false));
        (criticalFirst ? critical : batch).release();
        assertThat(criticalGoes.getNow(false)).isTrue();
        assertThat(batchGoes.getNow(false)).isTrue();
        (criticalFirst ? batch : critical).release();
        assertThat(rooms.peek(null, 1, 0).remaining()).isOne();
        assertThat(cars.peek(null, 1, 0).remaining()).isOne();
        assertThat(rooms.waiting() + cars.waiting()).isZero();
    }

    /** Shares let a class pass one that is full, and heavy calls do not fit where light ones do. */
    @Test
    void callsOfDrawnClassesAndWeightsDoNotWaitInACircle() {
        for (int seed = 0; seed < 200; seed++) {
            Random chance = new Random(seed);
            List<RateLimiter> places = List.of(
                    limiter(classes("cars", Algorithm.CONCURRENCY).maxConcurrent(3)),
                    limiter(classes("flights", Algorithm.CONCURRENCY)
                            .maxConcurrent(2)
                            .shares(Map.of("batch", 0.5))),
                    limiter(classes("rooms", chance.nextBoolean() ? Algorithm.CONCURRENCY : Algorithm.ADAPTIVE)
                            .maxConcurrent(3)));
            List<Reservation> calls = new ArrayList<>();
            List<CompletableFuture<Boolean>> turns = new ArrayList<>();
            for (int call = 0; call < 12; call++) {
                int rank = chance.nextInt(2);
                List<Claim> claims = new ArrayList<>();
                if (chance.nextInt(4) == 0) {
                    claims.add(claim(soon, HOUR));
                }
                for (RateLimiter place : places) {
                    if (chance.nextInt(3) > 0) {
                        long wait = chance.nextInt(5) == 0 ? 3 * SECOND : HOUR;
                        claims.add(Claim.of(place, null, 1 + chance.nextInt(10) / 9, wait, rank));
                    }
                }
                Collections.shuffle(claims, chance);
                Reservation reserved = claims.isEmpty() ? null : AllOf.reserve(claims);
                if (reserved != null && !reserved.isRefused()) {
                    calls.add(reserved);
                    turns.add(reserved.awaitAsync());
                }
                end(chance.nextInt(3), calls, turns);
            }
            while (!calls.isEmpty()) {
                int left = calls.size();
                end(left, calls, turns);
                if (calls.size() == left) {
                    time.advanceNanos(60 * SECOND);
                    assertThat(turns.stream().filter(CompletableFuture::isDone))
                            .as("goes with seed %s", seed)
                            .isNotEmpty();
                }
            }
            for (RateLimiter place : places) {
                assertThat(place.waiting())
                        .as("waits for %s", place.limit().name())
                        .isZero();
                assertThat(place.peek(null, 1, 0).remaining())
                        .as("%s with seed %s", place.limit().name(), seed)
                        .isEqualTo(place.limit().maxConcurrent());
            }
        }
    }

    /** Ends the first calls that may go. */
    private static void end(int most, List<Reservation> calls, List<CompletableFuture<Boolean>> turns) {
        for (int i = 0, ended = 0; i < calls.size() && ended < most; ) {
            if (turns.get(i).isDone()) {
                turns.remove(i);
                calls.remove(i).release();
                ended++;
            } else {
                i++;
            }
        }
    }

    private static Limit.Builder classes(String name, Algorithm algorithm) {
        return Limit.of(name, algorithm).priorities(List.of("critical", "batch"));
    }

    private static Claim ranked(RateLimiter limiter, int rank, long maxWait) {
        return Claim.of(limiter, null, 1, maxWait, rank);
    }

    /** Which sleeps with a place, since it may not wait for it for long. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallThatSleepsWithAPlaceTakesAllOfThemInTheirOrder(boolean elsewhere) {
        RateLimiter near = limiter(Limit.of("cars", Algorithm.CONCURRENCY).maxConcurrent(1));
        RateLimiter cars = elsewhere ? new FarLimiter(near, Runnable::run) : near;
        Reservation sleeper = reserveAsync(claim(soon, HOUR), claim(flights, 2 * SECOND), claim(cars, HOUR));
        CompletableFuture<Boolean> sleeperGoes = sleeper.awaitAsync();
        time.advanceNanos(4 * SECOND);
        Reservation other = reserveAsync(claim(flights, 2 * SECOND), claim(cars, HOUR));
        CompletableFuture<Boolean> otherGoes = other.awaitAsync();
        time.advanceNanos(SECOND);
        assertThat(sleeperGoes.getNow(false)).isTrue();
        sleeper.release();
        assertThat(otherGoes.getNow(false)).isTrue();
    }

    /** A backend that takes its claims together does not know of the places behind them. */
    @Test
    void noPlaceIsHeldBehindOneThatIsTakenLater() {
        Executor network = Runnable::run;
        RateLimiter late = new FarLimiter(pace("far-soon", "1/5s"), network);
        RateLimiter cars =
                new FarLimiter(limiter(Limit.of("cars", Algorithm.CONCURRENCY).maxConcurrent(1)), network);
        Reservation sleeper = reserveAsync(claim(late, HOUR), claim(cars, HOUR), claim(flights, 2 * SECOND));
        CompletableFuture<Boolean> sleeperGoes = sleeper.awaitAsync();
        time.advanceNanos(4 * SECOND);
        Reservation other = reserveAsync(claim(flights, 2 * SECOND), claim(cars, HOUR));
        assertThat(other.awaitAsync().getNow(false)).isTrue();
        other.release();
        time.advanceNanos(SECOND);
        assertThat(sleeperGoes.getNow(false)).isTrue();
        sleeper.release();
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        assertThat(cars.peek("key", 1, 0).remaining()).isOne();
    }

    /** As a transfer within one account claims it for both ends: neither holds one place and waits for the second. */
    @Test
    void placesOfOneLimitAreTakenTogether() {
        RateLimiter seats = limiter(Limit.of("seats", Algorithm.CONCURRENCY).maxConcurrent(2));
        Reservation full = seats.reserve("key", 2, 0);
        Reservation one = reserveAsync(claim(seats, HOUR), claim(flights, HOUR), claim(seats, HOUR));
        CompletableFuture<Boolean> oneGoes = one.awaitAsync();
        Reservation other = reserveAsync(claim(seats, HOUR), claim(seats, HOUR));
        CompletableFuture<Boolean> otherGoes = other.awaitAsync();
        full.release();
        assertThat(oneGoes.getNow(false)).isTrue();
        assertThat(otherGoes).isNotDone();
        assertThat(seats.peek("key", 1, 0).remaining()).isZero();
        one.release();
        assertThat(otherGoes.getNow(false)).isTrue();
        other.release();
        assertThat(seats.peek("key", 1, 0).remaining()).isEqualTo(2);
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
    }

    /** It would take the wait for the time of the call. */
    @Test
    void aPlaceOfAnAdaptiveLimitIsTakenAfterTheOthers() {
        RateLimiter adaptive = limiter(Limit.of("adaptive", Algorithm.ADAPTIVE).maxConcurrent(1));
        Reservation other = flights.reserve("key", 1, 0);
        Reservation call = reserveAsync(Claim.of(adaptive, null, 1, 0), claim(flights, HOUR));
        CompletableFuture<Boolean> goes = call.awaitAsync();
        assertThat(adaptive.peek(null, 1, 0).remaining()).isOne();
        other.release();
        assertThat(goes.getNow(false)).isTrue();
        assertThat(adaptive.peek(null, 1, 0).remaining()).isZero();
    }

    /** As a transfer claims both accounts, and another one the same in the other direction. */
    @Test
    void placesOfTwoKeysAreNotWaitedForInACircle() {
        Reservation full = flights.reserve("b", 1, 0);
        Reservation one = reserveAsync(Claim.of(flights, "b", 1, HOUR), Claim.of(flights, "a", 1, HOUR));
        CompletableFuture<Boolean> oneGoes = one.awaitAsync();
        Reservation other = reserveAsync(Claim.of(flights, "a", 1, HOUR), Claim.of(flights, "b", 1, HOUR));
        CompletableFuture<Boolean> otherGoes = other.awaitAsync();
        full.release();
        assertThat(oneGoes.getNow(false)).isTrue();
        one.release();
        assertThat(otherGoes.getNow(false)).isTrue();
    }

    /** Elsewhere comes before memory. */
    @Test
    void whoWaitsForAPlaceElsewhereHoldsNoneInMemory() {
        RateLimiter far =
                new FarLimiter(limiter(Limit.of("z-far", Algorithm.CONCURRENCY).maxConcurrent(1)), Runnable::run);
        Reservation other = far.reserve("key", 1, 0);
        Reservation call = reserveAsync(claim(flights, HOUR), claim(far, HOUR));
        CompletableFuture<Boolean> goes = call.awaitAsync();
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        other.release();
        assertThat(goes.getNow(false)).isTrue();
        assertThat(flights.peek("key", 1, 0).remaining()).isZero();
    }

    /** It announces no permits, and waits until its key owes none. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoWaitsForTheEndOfADebtElsewhereHoldsNoPlaceThere(boolean blocking) {
        Executor network = Runnable::run;
        RateLimiter charged = new FarLimiter(
                limiter(Limit.of("charged", Algorithm.TOKEN_BUCKET).rate("1/5s")), network);
        RateLimiter places =
                new FarLimiter(limiter(Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1)), network);
        charged.reserve("key", 1, 0).settle(2);
        Claim[] claims = {Claim.of(charged, "key", 0, HOUR), claim(places, HOUR)};
        Reservation call = blocking ? AllOf.reserve(List.of(claims)) : reserveAsync(claims);
        CompletableFuture<Boolean> goes = call.awaitAsync();
        assertThat(goes).isNotDone();
        assertThat(places.peek("key", 1, 0).remaining()).isOne();
        time.advanceNanos(5 * SECOND);
        assertThat(goes.getNow(false)).isTrue();
        assertThat(places.peek("key", 1, 0).remaining()).isZero();
    }

    @Test
    void aPlaceThatComesFromElsewhereAfterTheCallIsGivenUpIsGivenBack() {
        Queue<Runnable> network = new ArrayDeque<>();
        RateLimiter places =
                new FarLimiter(limiter(Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1)), network::add);
        CompletableFuture<Reservation> asked = AllOf.reserveAsync(List.of(claim(soon, HOUR), claim(places, HOUR)))
                .toCompletableFuture();
        network.remove().run();
        Reservation call = asked.join();
        call.awaitAsync();
        time.advanceNanos(5 * SECOND);
        assertThat(network).hasSize(1);
        call.cancel();
        network.remove().run();
        assertThat(places.peek("key", 1, 0).remaining()).isOne();
    }

    /** Each place of a call learns when its caller waits and comes, in whichever step it was taken. */
    @Test
    void placesOfBothStepsHearOfTheirCaller() throws InterruptedException {
        List<String> heard = new ArrayList<>();
        Reservation[] members = {hearing(heard), Later.of(claim(flights, 0), flights.peek("key", 1, 0))};
        Reservation call = TwoSteps.of(new Claim[0], members);
        assertThat(call.await()).isTrue();
        heard.clear();
        call.awaitCaller();
        call.callerCame(SECOND);
        assertThat(heard).containsExactly("awaitCaller", "callerCame");
    }

    /** A reservation that goes at once. */
    private static Reservation hearing(List<String> heard) {
        return (Reservation) Proxy.newProxyInstance(
                SeveralWaitsTest.class.getClassLoader(),
                new Class<?>[] {Reservation.class},
                (proxy, method, arguments) -> {
                    heard.add(method.getName());
                    Class<?> type = method.getReturnType();
                    return type == long.class
                            ? (Object) 0L
                            : type == boolean.class ? method.getName().equals("await") : null;
                });
    }

    /** The caller that gives up runs its own code when the locks of several limits are released. */
    @Test
    void aCallThatIsGivenUpUnderTheLocksOfSeveralLimitsContinuesOutside() {
        flights.reserve("key", 1, 0);
        Reservation call = flights.reserve("key", 1, HOUR);
        CompletableFuture<Boolean> turn = call.awaitAsync();
        boolean during = JointLocks.postponing(() -> {
            call.cancel();
            return turn.isDone();
        });
        assertThat(during).isFalse();
        assertThat(turn.getNow(true)).isFalse();
    }

    @Test
    void whatIsPostponedIsNotLostByLocksThatAreTakenMeanwhile() {
        List<Integer> ran = new ArrayList<>();
        boolean postponed = JointLocks.postponing(() -> {
            JointLocks.outside(() -> ran.add(1));
            boolean none = ran.isEmpty();
            JointLocks.lock(1, true);
            JointLocks.outside(() -> ran.add(2));
            JointLocks.unlock(1, true);
            JointLocks.outside(() -> ran.add(3));
            return none;
        });
        assertThat(postponed).isTrue();
        assertThat(ran).containsExactly(1, 2, 3);
    }

    private static boolean goesAndEnds(Reservation call) throws InterruptedException {
        boolean goes = call.await();
        call.release();
        return goes;
    }
}
