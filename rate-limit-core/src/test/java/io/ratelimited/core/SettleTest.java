package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The laws S1 to S6 of settling, for every algorithm that counts over time, by what callers can see. */
class SettleTest {

    private static final long SECOND = 1_000_000_000L;
    private static final long DAY = 86_400 * SECOND;
    private static final long LIMIT = 10;

    private final ManualTicker ticker = new ManualTicker();

    private InMemoryRateLimiter limiter(Algorithm algorithm) {
        return limiter(algorithm, "10/s");
    }

    private InMemoryRateLimiter limiter(Algorithm algorithm, String rate) {
        return new InMemoryRateLimiter(limit(algorithm, rate), ticker, 100);
    }

    private static Limit limit(Algorithm algorithm, String rate) {
        Limit.Builder limit = Limit.of("settle", algorithm).rate(rate);
        return (algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofSeconds(1)) : limit).build();
    }

    /** S1: where every call settles for what it reserved, all decisions are those of a limiter where nobody settles. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void settlingForWhatWasReservedChangesNothing(Algorithm algorithm) {
        for (int seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            InMemoryRateLimiter settling = limiter(algorithm);
            InMemoryRateLimiter quiet = limiter(algorithm);
            List<Runnable> open = new ArrayList<>();
            for (int step = 0; step < 60; step++) {
                ticker.advanceNanos(random.nextInt(3) == 0 ? random.nextInt(300_000_000) : 0);
                long permits = 1L + random.nextInt(6);
                long maxWait = random.nextBoolean() ? 0 : random.nextInt(1_000_000_000);
                Reservation one = settling.reserve("key", permits, maxWait);
                Reservation other = quiet.reserve("key", permits, maxWait);
                assertThat(one.decision()).as("seed " + seed).isEqualTo(other.decision());
                open.add(() -> one.settle(permits));
                if (random.nextBoolean()) {
                    open.remove(random.nextInt(open.size())).run();
                }
            }
        }
    }

    private record Spent(long instant, long permits) {}

    /** A call and what it has used; what it used beyond its reservation was used when it was settled. */
    private static final class Call {
        private final Reservation reservation;
        private final long reserved;
        private final long instant;
        private long stands;
        private long excess;
        private long settledAt;

        Call(Reservation reservation, long reserved, long instant) {
            this.reservation = reservation;
            this.reserved = reserved;
            this.instant = instant;
            this.stands = reserved;
        }

        void settle(long used, long now) {
            reservation.settle(used);
            stands = Math.min(used, reserved);
            excess = used - stands;
            settledAt = now;
        }
    }

    /**
     * S2, S3 and S4. Without the excess, no window holds more than the limit. And who is admitted at once finds all paid
     * that was used before, with the excess.
     */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void noWindowHoldsMoreThanTheLimitAndTheExcessWhichLaterCallersPay(Algorithm algorithm) {
        int atOnce = 0;
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            InMemoryRateLimiter limiter = limiter(algorithm);
            long base = ticker.epochNanos();
            long start = ticker.nanos();
            List<Call> calls = new ArrayList<>();
            List<Call> open = new ArrayList<>();
            for (int step = 0; step < 80; step++) {
                if (random.nextInt(3) == 0) {
                    ticker.advanceNanos(random.nextInt(random.nextInt(4) == 0 ? 2_000_000_000 : 200_000_000));
                }
                long now = ticker.nanos() - start;
                if (random.nextInt(5) < 3) {
                    long permits = 1L + random.nextInt(5);
                    Reservation next = limiter.reserve("key", permits, random.nextInt(3) == 0 ? 5 * SECOND : 0);
                    if (!next.isRefused()) {
                        Call call = new Call(next, permits, now + next.waitNanos());
                        if (next.waitNanos() == 0) {
                            atOnce++;
                            assertThat(overspent(algorithm, spent(calls, now, true), permits, now, base))
                                    .as(algorithm + ", seed " + seed + ", step " + step)
                                    .isLessThanOrEqualTo(1e-6);
                        }
                        calls.add(call);
                        open.add(call);
                    }
                } else if (!open.isEmpty()) {
                    Call call = open.remove(random.nextInt(open.size()));
                    call.settle(random.nextInt(4) == 0 ? 0 : random.nextInt(10), now);
                }
            }
            GrantLog log = new GrantLog();
            spent(calls, Long.MAX_VALUE, false).forEach(spent -> log.add(spent.instant, spent.permits));
            assertThat(
                            algorithm.family() == Algorithm.Family.WINDOW
                                    ? inWindow(algorithm, log, base) - LIMIT
                                    : log.worstExcess(
                                            LIMIT + onCredit(algorithm), new Rate(LIMIT, Duration.ofSeconds(1))))
                    .as(algorithm + ", seed " + seed)
                    .isLessThanOrEqualTo(1e-6);
            ticker.advance(Duration.ofHours(1));
        }
        assertThat(atOnce).isGreaterThan(1_000);
    }

    /** The largest call goes in addition where the next caller pays. */
    private static double onCredit(Algorithm algorithm) {
        return algorithm.family() == Algorithm.Family.PACED ? 5 : 0;
    }

    private static double inWindow(Algorithm algorithm, GrantLog log, long base) {
        return algorithm == Algorithm.FIXED_WINDOW
                ? log.mostInWindow(instant -> Math.floorDiv(base + instant, SECOND))
                : log.mostWithin(SECOND);
    }

    private static List<Spent> spent(List<Call> calls, long until, boolean withExcess) {
        List<Spent> spent = new ArrayList<>();
        for (Call call : calls) {
            spent.add(new Spent(call.instant, call.stands));
            if (withExcess && call.excess > 0) {
                spent.add(new Spent(call.settledAt, call.excess));
            }
        }
        spent.removeIf(each -> each.instant > until || each.permits == 0);
        return spent;
    }

    /** Permits by which the worst window that ends with a call of so many permits is above what is allowed. */
    private static double overspent(Algorithm algorithm, List<Spent> before, long permits, long now, long base) {
        boolean window = algorithm.family() == Algorithm.Family.WINDOW;
        boolean predecessorsPay = algorithm.family() == Algorithm.Family.PACED || algorithm == Algorithm.LEAKY_BUCKET;
        double stored = algorithm == Algorithm.LEAKY_BUCKET || algorithm == Algorithm.WARM_UP ? 0 : (double) LIMIT;
        double worst = Double.NEGATIVE_INFINITY;
        for (Spent from : before) {
            long since = from.instant;
            boolean counts = algorithm == Algorithm.FIXED_WINDOW
                    ? (base + since) / SECOND == (base + now) / SECOND
                    : now - since < SECOND;
            if (window && !counts) {
                continue;
            }
            long sum = before.stream()
                    .filter(each -> each.instant >= since)
                    .mapToLong(Spent::permits)
                    .sum();
            double allowed = window ? LIMIT : stored + (now - since) * LIMIT / (double) SECOND;
            worst = Math.max(worst, sum + (predecessorsPay ? 0 : permits) - allowed);
        }
        return worst;
    }

    /** S2. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void settlingForLessGivesBackAtMostTheDifference(Algorithm algorithm) {
        for (int seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            InMemoryRateLimiter limiter = limiter(algorithm);
            ticker.advanceNanos(random.nextInt(1_000_000_000));
            List<Reservation> open = new ArrayList<>();
            for (int call = 0; call < 8; call++) {
                open.add(limiter.reserve("key", 2, 0));
                ticker.advanceNanos(random.nextInt(100_000_000));
            }
            open.removeIf(Reservation::isRefused);
            Collections.shuffle(open, random);
            for (Reservation call : open) {
                long used = random.nextInt(3);
                Decision before = limiter.peek("key", 1, 0);
                call.settle(used);
                Decision after = limiter.peek("key", 1, 0);
                assertThat(after.remaining() - before.remaining()).isBetween(0L, 2 - used);
                assertThat(after.reset()).isLessThanOrEqualTo(before.reset());
            }
        }
    }

    /** S3: ten at once, five more used; the first later permit comes when the excess is paid. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void theExcessIsDebtThatTheNextCallerWaitsFor(Algorithm algorithm) {
        InMemoryRateLimiter limiter = limiter(algorithm);
        limiter.reserve("key", 10, 0).settle(15);
        assertThat(limiter.peek("key", 1, 0).remaining()).isZero();
        assertThat(limiter.peek("key", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(600));
    }

    /** S5. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aCallThatIsNeverSettledStaysCharged(Algorithm algorithm) {
        InMemoryRateLimiter limiter = limiter(algorithm);
        Reservation call = limiter.reserve("key", 4, 0);
        Decision before = limiter.peek("key", 1, 0);
        call.release();
        assertThat(limiter.peek("key", 1, 0)).isEqualTo(before);
        call.settle(5); // also after release
        assertThat(limiter.peek("key", 1, 0).remaining()).isLessThanOrEqualTo(before.remaining());
        assertThat(limiter.peek("key", 1, 0).reset()).isGreaterThanOrEqualTo(before.reset());
    }

    /** S6: also who still waits, or has settled while it waits, goes at its time. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void whoWaitsKeepsItsTimeWhateverOthersHaveUsed(Algorithm algorithm) {
        for (long used : new long[] {0, 7, 1_000, Long.MAX_VALUE}) {
            InMemoryRateLimiter limiter = limiter(algorithm);
            Reservation first = limiter.reserve("key", 9, 0);
            Reservation waiting = limiter.reserve("key", 2, 10 * SECOND);
            assertThat(waiting.waitNanos()).isPositive();
            CompletableFuture<Boolean> turn = waiting.awaitAsync();
            first.settle(used);
            waiting.settle(3);
            waiting.cancel();
            assertThat(waiting.isRefused()).isFalse();
            ticker.advanceNanos(waiting.waitNanos() - 1);
            assertThat(turn).isNotDone();
            ticker.advanceNanos(1);
            assertThat(turn).isCompletedWithValue(true);
            ticker.advance(Duration.ofHours(1));
        }
    }

    /** In whatever order: 20 calls reserve 5 each and use up to 30; or up to 9, so that some is left. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whatRemainsIsTheLimitLessWhatWasUsed(Algorithm algorithm) {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            InMemoryRateLimiter limiter = limiter(algorithm, "100/h");
            List<Reservation> open = new ArrayList<>();
            for (int call = 0; call < 20; call++) {
                open.add(limiter.reserve("key", 5, 0));
            }
            Collections.shuffle(open, random);
            long left = 100;
            for (Reservation call : open) {
                long used = random.nextInt(seed % 2 == 0 ? 31 : 10);
                left -= used;
                call.settle(used);
            }
            assertThat(limiter.peek("key", 1, 0).remaining())
                    .as(algorithm + ", seed " + seed)
                    .isEqualTo(Math.max(0, left));
        }
    }

    /** Also while other calls come and go. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whatRemainsWhileCallsComeAndGoIsTheLimitLessWhatTheyHold(Algorithm algorithm) {
        for (int seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            InMemoryRateLimiter limiter = limiter(algorithm, "100/h");
            List<Reservation> open = new ArrayList<>();
            long held = 0;
            for (int step = 0; step < 60; step++) {
                if (open.isEmpty() || random.nextBoolean()) {
                    Reservation next = limiter.reserve("key", 5, 0);
                    assertThat(next.isRefused())
                            .as("seed " + seed + ", step " + step)
                            .isEqualTo(held > 95);
                    if (!next.isRefused()) {
                        open.add(next);
                        held += 5;
                    }
                } else {
                    long used = random.nextInt(8);
                    open.remove(random.nextInt(open.size())).settle(used);
                    held += used - 5;
                }
            }
            assertThat(limiter.peek("key", 1, 0).remaining())
                    .as(algorithm + ", seed " + seed)
                    .isEqualTo(Math.max(0, 100 - held));
        }
    }

    /** Debt of calls that used more, in whatever order, is exact in time. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void debtIsExact(Algorithm algorithm) {
        for (int seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            InMemoryRateLimiter limiter = limiter(algorithm);
            List<Reservation> open = new ArrayList<>();
            for (int call = 0; call < 5; call++) {
                open.add(limiter.reserve("key", 2, 0));
            }
            Collections.shuffle(open, random);
            long excess = 0;
            for (Reservation call : open) {
                long used = 2L + random.nextInt(29);
                excess += used - 2;
                call.settle(used);
            }
            assertThat(limiter.peek("key", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(100 * (excess + 1)));
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void theFirstOfSettleAndCancelCounts(Algorithm algorithm) {
        for (int first = 0; first < 3; first++) {
            InMemoryRateLimiter limiter = limiter(algorithm);
            Reservation call = limiter.reserve("key", 4, 0);
            switch (first) {
                case 0 -> call.cancel();
                case 1 -> call.settle(2);
                default -> call.settle(9);
            }
            Decision before = limiter.peek("key", 1, 0);
            call.settle(0);
            call.settle(50);
            call.cancel();
            call.release();
            assertThat(limiter.peek("key", 1, 0)).isEqualTo(before);
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aRefusedCallHasNothingToSettle(Algorithm algorithm) {
        InMemoryRateLimiter limiter = limiter(algorithm);
        limiter.reserve("key", 10, 0);
        Reservation refused = limiter.reserve("key", 1, 0);
        assertThat(refused.isRefused()).isTrue();
        Decision before = limiter.peek("key", 1, 0);
        refused.settle(100);
        refused.settle(0);
        assertThat(limiter.peek("key", 1, 0)).isEqualTo(before);
        assertThatIllegalArgumentException().isThrownBy(() -> refused.settle(-1));
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aNegativeCostIsAnErrorThatSettlesNothing(Algorithm algorithm) {
        InMemoryRateLimiter limiter = limiter(algorithm);
        Reservation call = limiter.reserve("key", 4, 0);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> call.settle(-1))
                .withMessage("settled permits must be 0 or more: -1");
        assertThatIllegalArgumentException().isThrownBy(() -> call.settle(Long.MIN_VALUE));
        call.settle(0);
        assertThat(limiter.peek("key", 1, 0)).isEqualTo(limiter(algorithm).peek("key", 1, 0));
    }

    @Test
    void callsInFlightHaveNothingToSettle() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("settle", Algorithm.CONCURRENCY).maxConcurrent(1).build(), ticker, 10);
        Reservation call = limiter.reserve("key", 1, 0);
        assertThatThrownBy(() -> call.settle(1)).isInstanceOf(UnsupportedOperationException.class);
        call.release();
        assertThat(limiter.reserve("key", 1, 0).isRefused()).isFalse();
    }

    /** The clock may be at its wrap; windows and logs are open a period later, the others after at most 73 years. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void enormousCostsCloseTheLimitForABoundedTimeHoweverOften(Algorithm algorithm) {
        for (long nanos : new long[] {0, -DAY, Long.MAX_VALUE - 20 * SECOND}) {
            ManualTicker clock = new ManualTicker(nanos, java.time.Instant.ofEpochSecond(1_000));
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "10/s"), clock, 100);
            List<Reservation> open = new ArrayList<>();
            for (int call = 0; call < 50; call++) {
                open.add(limiter.reserve("key", 1, 20 * SECOND));
            }
            // WARM_UP refuses nothing below 2^60 ns; the greatest that it counts is the one that adds up.
            for (long cost : new long[] {Long.MAX_VALUE, 3_000_000_000L, 1L << 53, 1L << 60}) {
                open.removeIf(Reservation::isRefused);
                for (int call = 0; call < 12 && !open.isEmpty(); call++) {
                    open.remove(0).settle(cost);
                    assertThat(limiter.reserve("key", 1, 0).isRefused()).isTrue();
                    assertThat(limiter.peek("key", 1, 0).remaining()).isZero();
                }
            }
            boolean window = algorithm.family() == Algorithm.Family.WINDOW;
            clock.advance(window ? Duration.ofSeconds(25) : Duration.ofDays(36 * 365));
            assertThat(limiter.tryAcquire("key", 1)).isEqualTo(window);
            clock.advance(Duration.ofDays(365 * 2));
            assertThat(limiter.tryAcquire("key", 1)).isTrue();
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void enormousCostsOneAfterTheOtherAreNoGift(Algorithm algorithm) {
        for (long cost : new long[] {Long.MAX_VALUE, 1L << 62, 1L << 60, 1L << 53}) {
            InMemoryRateLimiter limiter = limiter(algorithm);
            List<Reservation> open = new ArrayList<>();
            for (int call = 0; call < 9; call++) {
                open.add(limiter.reserve("key", 1, SECOND));
                ticker.advance(Duration.ofMillis(1));
            }
            open.removeIf(Reservation::isRefused);
            open.remove(0).settle(cost);
            open.forEach(call -> call.settle(cost));
            assertThat(limiter.peek("key", 1, 0).remaining()).isZero();
            assertThat(limiter.tryAcquire("key", 1)).isFalse();
            limiter.update(limit(algorithm, "1000/s"));
            assertThat(limiter.peek("key", 1, 0).remaining()).isZero();
            assertThat(limiter.tryAcquire("key", 1)).isFalse();
        }
    }

    /** A log has no limits of such numbers. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "SLIDING_LOG", "ADAPTIVE", "DEFAULT"})
    void enormousDebtOutlivesAChangeToEveryRate(Algorithm algorithm) {
        for (String rate : List.of("10/s", "1/s", "1000000/s", "400000000/s")) {
            InMemoryRateLimiter limiter = limiter(algorithm, "400000000/s");
            limiter.reserve("key", 1, 0).settle(Long.MAX_VALUE);
            limiter.update(limit(algorithm, rate));
            assertThat(limiter.tryAcquire("key", 1))
                    .as(algorithm + " of " + rate)
                    .isFalse();
        }
    }

    @Test
    void aLogKeepsItsEntriesWhenASmallerNumberIsCharged() {
        InMemoryRateLimiter limiter = limiter(Algorithm.SLIDING_LOG, "1000/s");
        Reservation call = limiter.reserve("key", 1, 0);
        assertThat(limiter.tryAcquire("key", 899)).isTrue();
        limiter.update(limit(Algorithm.SLIDING_LOG, "10/s"));
        call.settle(51);
        limiter.update(limit(Algorithm.SLIDING_LOG, "1000/s"));
        assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(50);
    }

    /** A reset gives a whole budget once; what was reserved before it gives nothing more. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void threadsCreateNoPermitWhileTheirKeyIsReset(Algorithm algorithm) throws Exception {
        for (int round = 0; round < 20; round++) {
            InMemoryRateLimiter limiter = limiter(algorithm, "100/h");
            AtomicLong beyond = new AtomicLong();
            long used = Threads.sum(4, thread -> {
                Random random = new Random(thread);
                long sum = 0;
                for (int call = 0; call < 100; call++) {
                    if (thread == 0 && call % 25 == 0) {
                        limiter.reset("key");
                    }
                    Reservation next = limiter.reserve("key", 5, 0);
                    if (!next.isRefused()) {
                        long cost = random.nextInt(9);
                        next.settle(cost);
                        sum += cost;
                        beyond.addAndGet(Math.max(0, cost - 5));
                    }
                }
                return sum;
            });
            assertThat(used).isLessThanOrEqualTo(5 * 100 + beyond.get());
            assertThat(limiter.peek("key", 1, 0).remaining()).isLessThanOrEqualTo(100);
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void afterAResetOnlyTheExcessCounts(Algorithm algorithm) {
        InMemoryRateLimiter limiter = limiter(algorithm);
        Reservation less = limiter.reserve("key", 4, 0);
        Reservation more = limiter.reserve("other", 4, 0);
        limiter.reset("key");
        limiter.reset("other");
        Decision fresh = limiter.peek("key", 1, 0);
        less.settle(0);
        assertThat(limiter.peek("key", 1, 0)).isEqualTo(fresh);
        more.settle(1_000);
        assertThat(limiter.tryAcquire("other", 1)).isFalse();
    }

    /** With threads, of which each settles its calls in whatever order, while others decide. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void totalsOfThreadsAreExact(Algorithm algorithm) throws Exception {
        for (int round = 0; round < 20; round++) {
            InMemoryRateLimiter limiter = limiter(algorithm, "1000/h");
            long used = Threads.sum(4, thread -> use(limiter, "key", new Random(thread), 50));
            assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(Math.max(0, 1_000 - used));
        }
    }

    /** Reserves and settles, on average for less; returns what was used. */
    private static long use(RateLimiter limiter, Object key, Random random, int calls) {
        long used = 0;
        List<Reservation> open = new ArrayList<>();
        for (int call = 0; call < calls; call++) {
            Reservation next = limiter.reserve(key, 5, 0);
            if (!next.isRefused()) {
                open.add(next);
            }
            if (!open.isEmpty() && random.nextInt(3) > 0) {
                long cost = random.nextInt(9);
                used += cost;
                open.remove(random.nextInt(open.size())).settle(cost);
            }
        }
        return used + 5L * open.size();
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void threadsCreateNoPermitWhileTheLimitChangesOrKeysAreEvicted(Algorithm algorithm) throws Exception {
        Limit less = limit(algorithm, "500/h");
        Limit more = limit(algorithm, "1000/h");
        for (int round = 0; round < 20; round++) {
            for (int maximumKeys = 1; maximumKeys <= 2; maximumKeys++) {
                InMemoryRateLimiter limiter = new InMemoryRateLimiter(more, ticker, maximumKeys);
                boolean changes = round % 2 == 0;
                List<long[]> used = Threads.run(4, thread -> {
                    long[] own = new long[3];
                    for (int turn = 0; turn < 10; turn++) {
                        for (int key = 0; key < 3; key++) {
                            own[key] += use(limiter, key, new Random(thread * 100L + turn), 5);
                        }
                        if (changes && thread == 0) {
                            limiter.update(turn % 2 == 0 ? less : more);
                        }
                    }
                    return own;
                });
                limiter.update(more);
                for (int key = 0; key < 3; key++) {
                    int k = key;
                    long total = used.stream().mapToLong(own -> own[k]).sum();
                    assertThat(limiter.peek(key, 1, 0).remaining())
                            .as("round " + round)
                            .isLessThanOrEqualTo(Math.max(0, 1_000 - total));
                }
            }
        }
    }

    /** S4 with threads: a bucket under a moving clock. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void threadsUnderAMovingClockUseNoMoreThanBurstAndRate(Algorithm algorithm) throws Exception {
        InMemoryRateLimiter limiter = limiter(algorithm, "1000/s");
        long used = Threads.sum(4, thread -> {
            Random random = new Random(thread);
            long mine = 0;
            for (int turn = 0; turn < 300; turn++) {
                mine += use(limiter, "key", random, 5);
                if (thread == 0) {
                    ticker.advanceNanos(3_000_000);
                }
            }
            return mine;
        });
        long left = limiter.peek("key", 1, 0).remaining();
        Duration retryAfter = limiter.peek("key", 1, 0).retryAfter();
        long debt = retryAfter == null ? 0 : retryAfter.toMillis() - 1;
        assertThat(used + left - debt).isLessThanOrEqualTo(1_000 + 900);
    }
}
