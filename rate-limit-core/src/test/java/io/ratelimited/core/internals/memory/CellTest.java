package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.internals.memory.Cell.Grant;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a cell hands on: to its twin, to a shared cell, to a cell of other parameters. */
class CellTest {

    private static final long SECOND = 1_000_000_000L;
    private static final long DAY = 86_400 * SECOND;

    private final ManualTicker ticker = new ManualTicker();

    static Stream<Limit> limits() {
        return Stream.of(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate("7/s").burst(9).build(),
                Limit.of("a", Algorithm.GCRA).rate("10/s").build(),
                Limit.of("a", Algorithm.LEAKY_BUCKET).rate("10/s").burst(50).build(),
                Limit.of("a", Algorithm.SMOOTH_BURSTY).rate("10/s").build(),
                Limit.of("a", Algorithm.WARM_UP)
                        .rate("10/s")
                        .warmup(Duration.ofSeconds(3))
                        .build(),
                Limit.of("a", Algorithm.FIXED_WINDOW).rate("10/s").build(),
                Limit.of("a", Algorithm.SLIDING_WINDOW).rate("10/s").slots(4).build(),
                Limit.of("a", Algorithm.SLIDING_LOG).rate("10/s").build());
    }

    /** Where the clock starts: monotonic time may be negative and may wrap within seconds, the calendar does neither. */
    private static long base(Limit limit, int round) {
        return limit.algorithm() == Algorithm.FIXED_WINDOW || round % 2 == 0 ? 0 : Long.MAX_VALUE - SECOND;
    }

    /** The cell after random calls, of which some wait. */
    private static Cell used(CellParameters parameters, long base, Random random) {
        long now = base;
        Cell cell = parameters.initial(now);
        for (int calls = random.nextInt(12); calls > 0; calls--) {
            now += random.nextInt(400) * 1_000_000L;
            cell.reserve(1 + random.nextInt(5), now, random.nextInt(3) * SECOND / 2, null);
        }
        return cell;
    }

    private static long wait(Cell cell, long permits, long now) {
        return cell.peek(permits, now, 100 * SECOND);
    }

    /** The wait of the call behind a call, which may depend on what the first had to pay. */
    private static long waitBehind(Cell cell, long permits, long now) {
        Cell copy = cell.copy();
        assertThat(copy.reserve(permits, now, 100 * SECOND, null)).isNotNegative();
        return wait(copy, 1, now);
    }

    /** An entry is a call, so a log is as large as its calls are many. */
    @Test
    void aLogCountsPermitsWithoutNumberInAnEntryACall() {
        CellParameters parameters = CellFactory.parameters(
                Limit.of("a", Algorithm.SLIDING_LOG).rate("1000000000000000/7d").build(), 0, 0);
        Cell log = parameters.initial(0);
        assertThat(log.reserve(400_000_000_000_000L, 0, 0, null)).isZero();
        assertThat(log.reserve(400_000_000_000_000L, SECOND, 0, null)).isZero();
        assertThat(log.remaining(SECOND)).isEqualTo(200_000_000_000_000L);
        assertThat(log.reserve(200_000_000_000_001L, SECOND, 0, null)).isNegative();
        assertThat(log.reserve(600_000_000_000_000L, 7 * 86_400 * SECOND, 0, null))
                .isZero();
    }

    @Test
    void chargesOfALogOfManyPermitsCountInFull() {
        CellParameters parameters = CellFactory.parameters(
                Limit.of("a", Algorithm.SLIDING_LOG).rate("1000000000000000/7d").build(), 0, 0);
        Cell log = parameters.initial(0);
        log.charge(400_000_000_000_000L, 0);
        assertThat(log.remaining(0)).isEqualTo(600_000_000_000_000L);
        log.charge(500_000_000_000_000L, 0);
        assertThat(log.remaining(0)).isEqualTo(100_000_000_000_000L);
        for (int i = 1; i <= 10_000; i++) {
            log.charge(Long.MAX_VALUE, i);
            assertThat(log.remaining(i)).isZero();
        }
        assertThat(log.reserve(1, 7 * 86_400 * SECOND + 9_999, 0, null)).isNegative();
        assertThat(log.reserve(1, 7 * 86_400 * SECOND + 10_000, 0, null)).isZero();
    }

    @ParameterizedTest
    @MethodSource("limits")
    void anAbsorbingCellIsAtLeastAsSpentAsBoth(Limit limit) {
        Random random = new Random(1);
        // The larger wait of the two is enough where state is ordered.
        boolean exact = limit.algorithm() != Algorithm.SLIDING_WINDOW && limit.algorithm() != Algorithm.WARM_UP;
        for (int round = 0; round < 500; round++) {
            long base = base(limit, round);
            CellParameters parameters = CellFactory.parameters(limit, base, base);
            Cell one = used(parameters, base, random);
            Cell two = used(parameters, base, random);
            Cell both = one.copy();
            both.absorb(two);
            for (long passed = 0; passed < 6 * SECOND; passed += SECOND / 4 + 1) {
                long now = base + passed;
                for (int permits = 1; permits <= 7; permits += 2) {
                    long least = Math.max(wait(one, permits, now), wait(two, permits, now));
                    if (exact) {
                        assertThat(wait(both, permits, now)).isEqualTo(least);
                    } else {
                        assertThat(wait(both, permits, now)).isGreaterThanOrEqualTo(least);
                    }
                    long behind = Math.max(waitBehind(one, permits, now), waitBehind(two, permits, now));
                    assertThat(waitBehind(both, permits, now)).isGreaterThanOrEqualTo(behind - 2);
                }
            }
            Cell same = one.copy();
            same.absorb(one);
            assertTwins(same, one, base);
            if (limit.algorithm() == Algorithm.WARM_UP) {
                continue; // a fresh one is colder, and stays so
            }
            Cell fresh = parameters.initial(base);
            fresh.absorb(one);
            assertTwins(fresh, one, base);
        }
    }

    /** What charges have put beyond the number, which shows when it is raised. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void anAbsorbingCellIsAsChargedAsBoth(Algorithm algorithm) {
        Random random = new Random(5);
        CellParameters parameters =
                CellFactory.parameters(Limit.of("a", algorithm).rate("10/s").build(), 0, 0);
        CellParameters raised =
                CellFactory.parameters(Limit.of("a", algorithm).rate("1000/s").build(), 0, 0);
        int covering = 0;
        for (int round = 0; round < 500; round++) {
            Cell one = charged(parameters, random);
            Cell two = charged(parameters, random);
            Cell both = one.copy();
            both.absorb(two);
            assertThat(both.covers(one) && both.covers(two)).isTrue();
            boolean covers = one.covers(two);
            covering += covers ? 1 : 0;
            for (long now = 0; now < 8 * SECOND; now += SECOND / 8 + 1) {
                long left = raised.follow(two.copy(), 0).remaining(now);
                long own = raised.follow(one.copy(), 0).remaining(now);
                assertThat(raised.follow(both.copy(), 0).remaining(now)).isLessThanOrEqualTo(Math.min(own, left));
                assertThat(own).isLessThanOrEqualTo(covers ? left : own);
            }
        }
        assertThat(covering).isBetween(50, 450);
    }

    private static Cell charged(CellParameters parameters, Random random) {
        Cell cell = used(parameters, 0, random);
        long now = 0;
        for (int charges = random.nextInt(6); charges > 0; charges--) {
            now += random.nextInt(400) * 1_000_000L;
            assertThat(cell.charge(1 + random.nextInt(30), now)).isTrue();
        }
        return cell;
    }

    private static void assertTwins(Cell cell, Cell twin, long base) {
        for (long passed = 0; passed < 5 * SECOND; passed += SECOND / 3) {
            long now = base + passed;
            assertThat(cell.remaining(now)).isEqualTo(twin.remaining(now));
            assertThat(cell.nanosToInitial(now)).isEqualTo(twin.nanosToInitial(now));
            assertThat(wait(cell, 3, now)).isEqualTo(wait(twin, 3, now));
        }
    }

    @ParameterizedTest
    @MethodSource("limits")
    void anAbsorbingCellIsFreshAboutWhenBothAre(Limit limit) {
        Random random = new Random(2);
        for (int round = 0; round < 500; round++) {
            CellParameters parameters = CellFactory.parameters(limit, 0, 0);
            Cell one = used(parameters, 0, random);
            Cell two = used(parameters, 0, random);
            Cell both = one.copy();
            both.absorb(two);
            long fresh = Math.max(one.nanosToInitial(0), two.nanosToInitial(0));
            assertThat(both.nanosToInitial(0))
                    .isBetween(limit.algorithm() == Algorithm.WARM_UP ? 0 : fresh, fresh + 3 * SECOND);
            assertThat(both.remaining(fresh + 3 * SECOND))
                    .isEqualTo(parameters.initial(fresh + 3 * SECOND).remaining(fresh + 3 * SECOND));
        }
    }

    @ParameterizedTest
    @MethodSource("limits")
    void whatWasSpentLongAgoMakesAnAbsorbingCellNoMoreSpent(Limit limit) {
        if (limit.algorithm() == Algorithm.WARM_UP) {
            return; // one that has been idle is cold
        }
        CellParameters parameters = CellFactory.parameters(limit, 0, 0);
        for (long slot = 0; slot < 10; slot++) {
            Cell longAgo = parameters.initial(0);
            longAgo.reserve(5, slot * SECOND / 4, 0, null);
            Cell recent = parameters.initial(100 * SECOND);
            recent.reserve(1, 100 * SECOND, 0, null);
            Cell both = recent.copy();
            both.absorb(longAgo);
            assertTwins(both, recent, 100 * SECOND);
            longAgo.absorb(recent);
            assertTwins(longAgo, recent, 100 * SECOND);
        }
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aRetiredCellAnswersThatItHasMovedAndItsTwinGoesOn(Limit limit) {
        Random random = new Random(3);
        for (int round = 0; round < 100; round++) {
            Cell cell = used(CellFactory.parameters(limit, 0, 0), 0, random);
            Cell before = cell.copy();
            Grant call = new Grant(1);
            cell.reserve(1, 5 * SECOND, 100 * SECOND, call);
            before.reserve(1, 5 * SECOND, 100 * SECOND, null);
            Cell twin = cell.retire();
            assertThat(cell.reserve(1, 5 * SECOND, 0, null)).isEqualTo(Cell.MOVED);
            assertThat(cell.peek(1, 5 * SECOND, 0)).isEqualTo(Cell.MOVED);
            cell.giveBack(call, 1, 5 * SECOND);
            assertThat(cell.charge(1, 5 * SECOND)).isFalse();
            assertTwins(twin, before, 0);
            assertThat(cell.peek(1, 5 * SECOND, 0)).isEqualTo(Cell.MOVED);
        }
    }

    /** A twin remembers no refusal and works it out anew. */
    @ParameterizedTest
    @MethodSource("limits")
    void whatACellRemembersOfARefusalIsTrueUntilSomethingChanges(Limit limit) {
        Random random = new Random(4);
        for (int round = 0; round < 200; round++) {
            long now = base(limit, round);
            CellParameters parameters = CellFactory.parameters(limit, now, now);
            Cell cell = used(parameters, now, random);
            List<Grant> granted = new ArrayList<>();
            for (int step = 0; step < 60; step++) {
                now += random.nextInt(-5, 60) * 1_000_000L;
                int act = random.nextInt(20);
                if (act == 0) {
                    cell.absorb(used(parameters, now - SECOND / 2, random));
                } else if (act == 1 && !granted.isEmpty()) {
                    cell = RandomCalls.cancel(cell, granted.remove(random.nextInt(granted.size())), now);
                } else {
                    long permits = act < 5 ? 2 : 1;
                    long maxWait = act < 8 ? random.nextLong(SECOND) : 0;
                    Grant call = new Grant(permits);
                    long anew = cell.copy().reserve(permits, now, maxWait, null);
                    assertThat(cell.reserve(permits, now, maxWait, call)).isEqualTo(anew);
                    if (anew >= 0) {
                        granted.add(call);
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aRefusalAfterAnotherTakesNoLock(Limit limit) throws Exception {
        Cell cell = CellFactory.parameters(limit, 0, 0).initial(0);
        long first = 0;
        while (first >= 0) {
            first = cell.reserve(1, 0, 0, null);
        }
        synchronized (cell) {
            long next = CompletableFuture.supplyAsync(() -> cell.reserve(1, 0, 0, null))
                    .get(10, TimeUnit.SECONDS);
            assertThat(next).isEqualTo(first);
        }
    }

    @Test
    void aCellMayBeForgottenAfterTheTimeInWhichItBecomesFresh() {
        assertThat(limits().map(limit -> CellFactory.parameters(limit, 0, 0).idleNanos())
                        .toList())
                .containsExactly(
                        9 * SECOND / 7 + 1, // 9 permits at 7/s, rounded up
                        SECOND,
                        SECOND / 10,
                        SECOND,
                        3 * SECOND,
                        SECOND,
                        5 * SECOND / 4,
                        SECOND);
        assertThat(CellFactory.parameters(
                                Limit.of("a", Algorithm.TOKEN_BUCKET)
                                        .rate("0/s")
                                        .build(),
                                0,
                                0)
                        .idleNanos())
                .isPositive();
    }

    @Test
    void callsInFlightAreCountedByNoCellThatCountsOverTime() {
        Limit limit = Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(1).build();
        assertThatThrownBy(() -> CellFactory.parameters(limit, 0, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(limit.toString());
    }

    /** 15 permits below the threshold, 15 above it, which cost up to three times as much; one is stored in 0.1 s. */
    @Test
    void aWarmUpTellsTheOneCallThatMayGoAndKeepsTheShareOfWhatIsStored() {
        Limit limit = Limit.of("a", Algorithm.WARM_UP)
                .rate("10/s")
                .warmup(Duration.ofSeconds(3))
                .build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 1);
        assertThat(limiter.peek(null, 1, 0).remaining()).isOne();
        assertThat(limiter.peek(null, 1, 0).reset()).isZero();
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        // The uppermost permit costs the mean of 0.3 s and 0.28666… s.
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofNanos(293_333_334));
        assertThat(limiter.peek(null, 1, 0).reset()).isEqualTo(Duration.ofNanos(293_333_334));
        assertThat(limiter.peek(null, 1, 0).remaining()).isZero();
        assertThat(limiter.reserve(null, 14, DAY).waitNanos()).isEqualTo(293_333_334);
        ticker.advanceNanos(3 * SECOND + 1); // the whole warm-up: the 15 permits above the threshold are used
        // 15 more in 1.5 s would be 30. After half of them 22.5 of 30 are stored; at twice the rate 45 of 60.
        ticker.advanceNanos(3 * SECOND / 4);
        limiter.update(limit.toBuilder().rate("20/s").build());
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        // Half way up, a permit costs twice as much as a fresh one: the mean of 0.1 s and 0.09666… s.
        assertThat(limiter.peek(null, 1, 0).reset())
                .isBetween(Duration.ofNanos(98_333_330), Duration.ofNanos(98_333_340));
        ticker.advance(limiter.peek(null, 1, 0).reset());
        // Without a warm-up nothing is stored, and when it comes back all of it is cold.
        limiter.update(limit.toBuilder().warmup(Duration.ZERO).build());
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        assertThat(limiter.peek(null, 1, 0).reset()).isEqualTo(Duration.ofMillis(100));
        ticker.advance(Duration.ofMillis(100));
        limiter.update(limit);
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        assertThat(limiter.peek(null, 1, 0).reset()).isEqualTo(Duration.ofNanos(293_333_334));
    }

    /** A third of a second is no whole number of nanoseconds; what is left over counts even where the clock hides it. */
    @Test
    void aWarmUpCallAtTheVeryNanosecondInWhichTheNextMayGoLosesNoFraction() {
        Cell cell = CellFactory.parameters(
                        Limit.of("a", Algorithm.WARM_UP)
                                .rate("3/s")
                                .warmup(Duration.ZERO)
                                .build(),
                        0,
                        0)
                .initial(0);
        assertThat(cell.reserve(1, 0, 0, null)).isZero();
        for (long call = 0; call < 3; call++) {
            assertThat(cell.reserve(1, 333_333_333, SECOND, null)).isEqualTo(call * SECOND / 3 + 1);
        }
        assertThat(cell.nanosToFull(0)).isEqualTo(1_333_333_334);
    }

    /** The burst before of 100 permits would be full 100 s after the last call, whatever has been used meanwhile. */
    @ParameterizedTest
    @ValueSource(strings = {"1/s", "7/3s", "10000000000/s"})
    void aBucketWhoseNumbersHaveChangedIsInitialWhenTheLargerOneWouldBe(String rate) {
        CellParameters large = bucket("1/s", 100);
        CellParameters small = bucket(rate, 1);
        small.inheritOfOneCell(large, 0);
        CellParameters last = bucket(rate, 2);
        last.inheritOfOneCell(small, 0);
        for (CellParameters parameters : List.of(small, last)) {
            Cell cell = parameters.follow(large.initial(0), 0);
            long used = 1_000 * TimeUnit.SECONDS.toNanos(1);
            assertThat(cell.reserve(1, used, 0, null)).isZero();
            long full = used + cell.nanosToFull(used);
            long initial = full + TimeUnit.SECONDS.toNanos(100);
            assertThat(full + cell.nanosToInitial(full)).isBetween(initial, initial + 1);
            initial = full + cell.nanosToInitial(full);
            assertThat(cell.nanosToInitial(initial - 1)).isOne();
            assertThat(cell.retireIfInitial(initial - 1)).isFalse();
            assertThat(cell.nanosToInitial(initial)).isZero();
            assertThat(cell.retireIfInitial(initial)).isTrue();
        }
    }

    /** Decades count as nine years, so that no time overflows. */
    @Test
    void aBucketIsInitialAtSomeTimeAlsoWhenTheLargerOneNeedsDecades() {
        CellParameters large = bucket("1/366d", 35);
        CellParameters small = bucket("10000000000/s", 1);
        small.inheritOfOneCell(large, 0);
        Cell cell = small.follow(large.initial(0), 0);
        assertThat(cell.nanosToInitial(0)).isPositive();
        assertThat(cell.nanosToInitial(TimeUnit.DAYS.toNanos(9 * 366))).isPositive();
        assertThat(cell.nanosToInitial(TimeUnit.DAYS.toNanos(10 * 365))).isZero();
    }

    private static CellParameters bucket(String rate, long burst) {
        return CellFactory.parameters(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate(rate).burst(burst).build(), 0, 0);
    }

    /** One of 30 stored permits has been used; it is stored again in 0.1 s, after the time that it cost. */
    @Test
    void aWarmUpIsFreshWhenItIsAllColdAgain() {
        Cell cell = CellFactory.parameters(
                        Limit.of("a", Algorithm.WARM_UP)
                                .rate("10/s")
                                .warmup(Duration.ofSeconds(3))
                                .build(),
                        0,
                        0)
                .initial(0);
        assertThat(cell.nanosToInitial(0)).isZero();
        assertThat(cell.reserve(1, 0, 0, null)).isZero();
        assertThat(cell.nanosToInitial(0)).isBetween(393_333_333L, 393_333_336L);
    }

    @Test
    void aWarmUpTellsNoTimeThatIsDecadesAhead() {
        CellParameters parameters = CellFactory.parameters(
                Limit.of("a", Algorithm.WARM_UP)
                        .rate("1/s")
                        .warmup(Duration.ZERO)
                        .build(),
                0,
                0);
        Cell cell = parameters.initial(0);
        long most = PermitTime.FAR / (3 * SECOND);
        for (int call = 0; call < 4; call++) {
            assertThat(cell.reserve(most, 0, PermitTime.FAR, null)).isEqualTo(call * most * SECOND);
        }
        assertThat(cell.peek(1, 0, PermitTime.FAR)).isEqualTo(Cell.UNKNOWN);
        assertThat(cell.peek(PermitTime.FAR / SECOND + 1, 0, PermitTime.FAR)).isEqualTo(Cell.NEVER);
    }

    /** 10/s, 35 granted in advance: 10 in this window and in each of the next two, 5 in the third. */
    @Test
    void whatIsGrantedInLaterWindowsStaysThereThroughChanges() {
        ticker.advanceNanos(123 * SECOND);
        for (Algorithm window : List.of(Algorithm.FIXED_WINDOW, Algorithm.SLIDING_LOG, Algorithm.SLIDING_WINDOW)) {
            long slots = window == Algorithm.SLIDING_WINDOW ? SECOND * 11 / 10 : SECOND;
            Limit limit = Limit.of("a", window).rate("10/s").build();
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 1);
            for (int i = 0; i < 7; i++) {
                assertThat(limiter.reserve(null, 5, DAY).waitNanos()).isEqualTo(i / 2 * slots);
            }
            limiter.update(limit.toBuilder().rate("6/s").build());
            assertThat(limiter.peek(null, 1, 0).remaining()).isZero();
            assertThat(limiter.reserve(null, 1, DAY).waitNanos()).isEqualTo(3 * slots);
            assertThat(limiter.reserve(null, 1, DAY).waitNanos()).isEqualTo(4 * slots);
        }
    }

    /** While a limit is closed, its cells only keep what they were handed. */
    @ParameterizedTest
    @MethodSource("limits")
    void aClosedCellThatAbsorbsAnotherKeepsTheMoreSpentState(Limit limit) {
        CellParameters before = CellFactory.parameters(limit, 0, 0);
        CellParameters closed =
                CellFactory.parameters(limit.toBuilder().rate("0/s").build(), 0, 0);
        CellParameters again = CellFactory.parameters(limit, 0, 0);
        long half = 500_000_000;
        for (int[] calls : new int[][] {{0, 0}, {0, 1}, {3, 1}, {1, 3}, {12, 3}}) {
            Cell[] cells = new Cell[2];
            for (int i = 0; i < 2; i++) {
                Cell spent = before.initial(half);
                for (int call = 0; call < calls[i]; call++) {
                    spent.reserve(1, half, DAY, null);
                }
                cells[i] = spent;
            }
            Cell more = cells[calls[0] > calls[1] ? 0 : 1].copy();
            Cell cell = closed.follow(cells[0], half);
            assertThat(cell.nanosToInitial(half)).isEqualTo(cells[0].nanosToInitial(half));
            cell.absorb(closed.follow(cells[1], half));
            cell.absorb(closed.initial(half));
            Cell next = again.follow(cell.retire(), half);
            assertThat(next.peek(1, half, DAY)).isEqualTo(more.peek(1, half, DAY));
            assertThat(next.remaining(half)).isEqualTo(more.remaining(half));
            assertThat(cell.peek(1, half, 0)).isEqualTo(Cell.MOVED);
        }
        Cell whole = closed.initial(half);
        assertThat(whole.nanosToInitial(half)).isZero();
        whole.absorb(closed.follow(before.initial(half), half));
        assertThat(again.follow(whole, half).remaining(half))
                .isEqualTo(before.initial(half).remaining(half));
    }
}
