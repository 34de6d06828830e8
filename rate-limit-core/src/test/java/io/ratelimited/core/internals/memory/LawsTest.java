package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.GrantLog;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.memory.Cell.Grant;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.temporal.ChronoField;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.assertj.core.description.Description;
import org.assertj.core.description.TextDescription;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The laws P1 to P9 of {@code conformance/cases.json} for every algorithm that counts over time. */
class LawsTest {

    private static final int CALLS = 80;

    /** Random schedules a law. */
    int schedules() {
        return Integer.getInteger("schedules", 15);
    }

    static Stream<Limit> limits() {
        List<Limit.Builder> limits = new ArrayList<>();
        for (String rate : List.of("10/s", "7/m", "1/d", "3/s", "1000000/s", "1000000001/s", "10000000000/s")) {
            limits.add(Limit.of("law", Algorithm.TOKEN_BUCKET).rate(rate).burst(20));
            limits.add(Limit.of("law", Algorithm.GCRA).rate(rate).burst(3));
            limits.add(Limit.of("law", Algorithm.SMOOTH_BURSTY).rate(rate).burst(5));
            limits.add(Limit.of("law", Algorithm.LEAKY_BUCKET).rate(rate).burst(8));
        }
        for (String rate : List.of("10/s", "7/m", "1/d", "3/s")) {
            Duration warmup = Rate.parse(rate).period().multipliedBy(3);
            limits.add(Limit.of("law", Algorithm.WARM_UP).rate(rate).warmup(warmup));
            limits.add(Limit.of("law", Algorithm.WARM_UP).rate(rate).warmup(Duration.ZERO));
            limits.add(Limit.of("law", Algorithm.FIXED_WINDOW).rate(rate));
            limits.add(Limit.of("law", Algorithm.SLIDING_WINDOW).rate(rate));
            limits.add(Limit.of("law", Algorithm.SLIDING_WINDOW).rate(rate).slots(3));
            limits.add(Limit.of("law", Algorithm.SLIDING_LOG).rate(rate));
        }
        limits.add(Limit.of("law", Algorithm.FIXED_WINDOW).rate("9/month"));
        return limits.stream().map(Limit.Builder::build);
    }

    private static Stream<Limit> of(Algorithm... algorithms) {
        return limits().filter(limit -> List.of(algorithms).contains(limit.algorithm()));
    }

    static Stream<Limit> buckets() {
        return of(Algorithm.TOKEN_BUCKET, Algorithm.GCRA);
    }

    static Stream<Limit> queues() {
        return of(Algorithm.LEAKY_BUCKET);
    }

    static Stream<Limit> windows() {
        return of(Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG);
    }

    /** A cell under a schedule, with the means to make its calls. */
    private static final class Run {

        private final Limit limit;
        private final Random random;
        private final RandomCalls calls;
        private final long base;
        private final int seed;
        private Cell cell;
        private long now;
        private int steps;

        Run(Limit limit, int seed) {
            this.limit = limit;
            this.random = new Random(seed);
            this.calls = new RandomCalls(limit, random);
            this.base = random.nextInt(3) == 0 ? 0 : random.nextLong() >> 2;
            this.now = base;
            this.cell = CellFactory.parameters(limit, base, base).initial(base);
            this.seed = seed;
        }

        /** For a failure: making it for every answer that is right would take a third of the time. */
        @Override
        public String toString() {
            return limit + ", seed " + seed + ", step " + steps;
        }

        void step() {
            steps++;
            now += Math.max(0, calls.step());
        }

        long reserve(long permits, long maxWait) {
            long outcome = cell.reserve(permits, now, maxWait, null);
            calls.refused(outcome);
            return outcome;
        }

        void cancel(Grant reservation) {
            cell = RandomCalls.cancel(cell, reservation, now);
        }

        /** Everything a caller could learn from a cell, now and later. */
        List<Long> tell(Cell asked) {
            List<Long> told = new ArrayList<>();
            long interval =
                    Math.max(1, limit.rate().period().toNanos() / limit.rate().permits());
            for (long later : new long[] {0, interval / 3, interval, interval * 4}) {
                for (long permits : new long[] {1, 2, Math.min(20, limit.capacity())}) {
                    told.add(asked.peek(permits, now + later, 0));
                    told.add(asked.peek(permits, now + later, interval * 2));
                    told.add(asked.peek(permits, now + later, PermitTime.FAR));
                }
                told.add(asked.remaining(now + later));
                told.add(asked.nanosToInitial(now + later));
            }
            return told;
        }
    }

    /** P1 and P9: of what was not cancelled, no interval holds more than burst + rate · length. */
    @ParameterizedTest
    @MethodSource("buckets")
    void noIntervalHoldsMoreThanTheBurstAndTheRateAllowWhateverIsCancelled(Limit limit) {
        for (int seed = 0; seed < schedules() * 10; seed++) {
            Run run = new Run(limit, seed);
            GrantLog grants = run(run, true);
            double unit =
                    2e-6 + 2.0 * limit.rate().permits() / limit.rate().period().toNanos();
            assertThat(grants.worstExcess((double) limit.burst(), limit.rate()))
                    .as("%s", run)
                    .isLessThanOrEqualTo(unit);
        }
    }

    /** Makes calls and cancels some; answers the grants that stand. */
    private static GrantLog run(Run run, boolean weights) {
        record Granted(Grant reservation, long instant) {}
        List<Granted> granted = new ArrayList<>();
        for (int call = 0; call < CALLS; call++) {
            run.step();
            Grant reservation = new Grant(weights ? Math.min(run.calls.permits(), run.limit.capacity()) : 1);
            long outcome = run.cell.reserve(reservation.permits(), run.now, run.calls.maxWait(), reservation);
            run.calls.refused(outcome);
            if (outcome >= 0) {
                granted.add(new Granted(reservation, run.now - run.base + outcome));
            }
            if (!granted.isEmpty() && run.random.nextInt(4) == 0) {
                Granted cancelled = granted.remove(run.random.nextInt(granted.size()));
                run.cancel(cancelled.reservation);
            }
        }
        GrantLog grants = new GrantLog();
        granted.forEach(grant -> grants.add(grant.instant, grant.reservation.permits()));
        return grants;
    }

    /** P1 and P9 for windows: the log and the slots bound every interval of the period. */
    @ParameterizedTest
    @MethodSource("windows")
    void noWindowHoldsMoreThanTheLimitWhateverIsCancelled(Limit limit) {
        long period = limit.rate().period().toNanos();
        for (int seed = 0; seed < schedules() * 10; seed++) {
            Run run = new Run(limit, seed);
            GrantLog grants = run(run, true);
            long most = limit.algorithm() == Algorithm.FIXED_WINDOW
                    ? grants.mostInWindow(instant -> window(limit.rate(), run.base + instant))
                    : grants.mostWithin(period);
            assertThat(most).as("%s", run).isLessThanOrEqualTo(limit.rate().permits());
        }
    }

    private static long window(Rate rate, long instant) {
        return rate.calendar() == null
                ? Math.floorDiv(instant, rate.period().toNanos())
                : Instant.EPOCH.plusNanos(instant).atZone(ZoneOffset.UTC).getLong(ChronoField.PROLEPTIC_MONTH);
    }

    /** P8: grants of a queue are an interval apart, whatever is cancelled. */
    @ParameterizedTest
    @MethodSource("queues")
    void grantsOfAQueueAreAnIntervalApart(Limit limit) {
        double interval =
                limit.rate().period().toNanos() / (double) limit.rate().permits();
        for (int seed = 0; seed < schedules() * 5; seed++) {
            Run run = new Run(limit, seed);
            List<Long> instants = run(run, false).instants();
            for (int i = 1; i < instants.size(); i++) {
                assertThat(instants.get(i) - instants.get(i - 1))
                        .as("%s, grant %s", run, i)
                        .isGreaterThanOrEqualTo((long) Math.floor(interval) - (interval % 1 == 0 ? 0 : 1));
            }
        }
    }

    /** P8: while there is demand, a queue has no holes. */
    @ParameterizedTest
    @MethodSource("queues")
    void aQueueUnderDemandHasNoHoles(Limit limit) {
        double interval =
                limit.rate().period().toNanos() / (double) limit.rate().permits();
        Run run = new Run(limit, 1);
        for (int call = 0; call < 500; ) {
            long outcome = run.reserve(1, PermitTime.FAR);
            if (outcome < 0) {
                run.now += ~outcome;
                continue;
            }
            assertThat((double) (run.now - run.base + outcome))
                    .as("%s", run)
                    .isBetween(Math.floor(call * interval) - 1, Math.ceil(call * interval) + 2);
            call++;
        }
    }

    /** P2: what a bucket or queue has to give under saturating demand, it gives. */
    @ParameterizedTest
    @MethodSource("limits")
    void saturatingDemandIsServedInFull(Limit limit) {
        Run run = new Run(limit, 3);
        long granted = 0;
        long calls = 0;
        long span =
                Math.max(100_000, limit.rate().period().toNanos() / limit.rate().permits() * 400);
        while (run.now - run.base <= span) {
            long permits = Math.min(limit.capacity(), 1 + run.random.nextInt(3));
            long outcome = run.reserve(permits, 0);
            calls++;
            if (outcome < 0) {
                run.now += ~outcome;
            } else {
                granted += permits;
            }
        }
        double rate = limit.rate().permits() / (double) limit.rate().period().toNanos();
        double share = switch (limit.algorithm()) {
            case SLIDING_WINDOW -> limit.slots() / (limit.slots() + 1.0);
            default -> 1;
        };
        double coldStart = 2.0 * limit.warmup().toNanos() * rate;
        double edge = limit.algorithm() == Algorithm.FIXED_WINDOW
                        || limit.algorithm() == Algorithm.SLIDING_WINDOW
                        || limit.algorithm() == Algorithm.SLIDING_LOG
                ? limit.rate().permits() + span * rate * 2 / limit.rate().permits()
                : 0;
        // A call of three may find room for two in a window, and then nothing smaller comes to fill it.
        double unfilled = edge == 0
                ? 0
                : span * rate * share * 2 / Math.max(3, limit.rate().permits());
        double unit = 2 * rate;
        assertThat((double) granted)
                .as("%s", run)
                .isGreaterThanOrEqualTo(span * rate * share - coldStart - edge - unfilled - 3 - calls * unit);
    }

    /** P3, and the same of waits: at the advertised time the call goes, a nanosecond earlier it does not. */
    @ParameterizedTest
    @MethodSource("limits")
    void aRetryIsAdmittedAtItsTimeAndNoNanosecondEarlier(Limit limit) {
        int refusals = 0;
        for (int seed = 0; seed < schedules(); seed++) {
            Run run = new Run(limit, seed);
            for (int call = 0; call < CALLS; call++) {
                run.step();
                long permits = run.calls.permits();
                long maxWait = run.calls.maxWait();
                Cell before = run.cell.copy();
                long outcome = run.reserve(permits, maxWait);
                if (outcome == Cell.NEVER || outcome == 0) {
                    continue;
                }
                Description where = new TextDescription("%s, outcome %s", run, outcome);
                long wait = outcome < 0 ? ~outcome : outcome;
                long allowed = outcome < 0 ? maxWait : 0;
                assertThat(wait).as(where).isPositive();
                assertThat(before.peek(permits, run.now + wait, allowed))
                        .as(where)
                        .isBetween(0L, allowed);
                assertThat(before.peek(permits, run.now + wait - 1, allowed))
                        .as(where)
                        .isNegative();
                refusals++;
            }
        }
        assertThat(refusals).isGreaterThan(schedules());
    }

    /** P4: permits taken together or one call after the other leave the same state. */
    @ParameterizedTest
    @MethodSource("limits")
    void aCallOfManyPermitsLeavesWhatSeveralOfFewLeave(Limit limit) {
        boolean onCredit = limit.capacity() == Long.MAX_VALUE;
        for (int seed = 0; seed < schedules(); seed++) {
            Run run = new Run(limit, seed);
            for (int call = 0; call < CALLS / 4; call++) {
                run.step();
                long a = 1L + run.random.nextInt(4);
                long b = 1L + run.random.nextInt(4);
                if (run.cell.peek(a + b, run.now, 0) == 0) {
                    Cell whole = run.cell.copy();
                    Cell parts = run.cell.copy();
                    assertThat(whole.reserve(a + b, run.now, 0, null)).isZero();
                    assertThat(parts.reserve(a, run.now, 0, null)).isZero();
                    long second = parts.reserve(b, run.now, PermitTime.FAR, null);
                    assertThat(second).isGreaterThanOrEqualTo(0);
                    if (!onCredit && limit.algorithm() != Algorithm.LEAKY_BUCKET) {
                        assertThat(second).isZero();
                    }
                    List<Long> expected = run.tell(whole);
                    List<Long> actual = run.tell(parts);
                    assertSame(run, actual, expected);
                }
                run.reserve(run.calls.permits(), run.calls.maxWait());
            }
        }
    }

    /** The same answers; of the warm-up, which calculates with fractions of a nanosecond, to 2 ns. */
    private static void assertSame(Run run, List<Long> actual, List<Long> expected) {
        long tolerance = run.limit.algorithm() == Algorithm.WARM_UP ? 2 : 0;
        for (int i = 0; i < expected.size(); i++) {
            long one = actual.get(i);
            long other = expected.get(i);
            long apart = one < 0 == other < 0 ? Math.abs(one - other) : ~Math.min(one, other);
            if (apart > tolerance) {
                fail("%s, answer %s: %s instead of %s", run, i, one, other);
            }
        }
    }

    /** P5, I1: any number of refused calls between the others changes nothing. */
    @ParameterizedTest
    @MethodSource("limits")
    void refusedCallsChangeNothing(Limit limit) {
        int refused = 0;
        for (int seed = 0; seed < schedules(); seed++) {
            Run run = new Run(limit, seed);
            Cell quiet = run.cell.copy();
            for (int call = 0; call < CALLS; call++) {
                run.step();
                for (int noise = 0; noise < 3; noise++) {
                    long permits = run.calls.permits();
                    long maxWait = run.calls.maxWait();
                    if (run.cell.peek(permits, run.now, maxWait) < 0) {
                        assertThat(run.reserve(permits, maxWait)).isNegative();
                        refused++;
                    }
                }
                long permits = run.calls.permits();
                long maxWait = run.calls.maxWait();
                assertThat(run.cell.reserve(permits, run.now, maxWait, null))
                        .as("%s", run)
                        .isEqualTo(quiet.reserve(permits, run.now, maxWait, null));
                assertThat(run.tell(run.cell)).as("%s", run).isEqualTo(run.tell(quiet));
            }
        }
        assertThat(refused).isGreaterThan(schedules());
    }

    /** P6, I2: a time read before losing a race admits nothing the true time would not, and waits no longer for it. */
    @ParameterizedTest
    @MethodSource("limits")
    void aStaleTimeNeitherCreatesPermitsNorBlocksLonger(Limit limit) {
        for (int seed = 0; seed < schedules(); seed++) {
            Run run = new Run(limit, seed);
            for (int call = 0; call < CALLS; call++) {
                run.step();
                if (run.reserve(Math.min(run.calls.permits(), limit.capacity()), 0) < 0) {
                    continue;
                }
                long late = 1
                        + (long)
                                (run.random.nextDouble() * limit.rate().period().toNanos() / 2);
                long permits = Math.min(run.calls.permits(), limit.capacity());
                long truly = run.cell.peek(permits, run.now, PermitTime.FAR);
                long stale = run.cell.peek(permits, run.now - late, PermitTime.FAR);
                Description where = new TextDescription("%s, late %s", run, late);
                if (truly < 0) {
                    assertThat(stale).as(where).isNegative();
                } else if (stale >= 0) {
                    assertThat(stale).as(where).isBetween(truly, truly + late);
                }
                List<Long> before = run.tell(run.cell);
                Cell other = run.cell.copy();
                long outcome = other.reserve(permits, run.now - late, 0, null);
                if (outcome < 0) {
                    assertThat(run.tell(other)).as(where).isEqualTo(before);
                } else {
                    Cell same = run.cell.copy();
                    assertThat(same.reserve(permits, run.now, 0, null))
                            .as(where)
                            .isZero();
                    assertThat(other.remaining(run.now)).as(where).isLessThanOrEqualTo(same.remaining(run.now) + 1);
                }
            }
        }
    }

    /** What remains is how many calls of one permit go at once; at its reset it is most, and before it was less. */
    @ParameterizedTest
    @MethodSource("limits")
    void asManyCallsGoAtOnceAsRemain(Limit limit) {
        boolean finer = limit.rate().permits() > limit.rate().period().toNanos(); // than the clock
        for (int seed = 0; seed < schedules(); seed++) {
            Run run = new Run(limit, seed);
            List<Grant> granted = new ArrayList<>();
            for (int call = 0; call < CALLS; call++) {
                run.step();
                Description where = new TextDescription("%s", run);
                long maxWait = run.calls.maxWait();
                Grant next = new Grant(Math.min(run.calls.permits(), limit.capacity()));
                long outcome = run.cell.reserve(next.permits(), run.now, maxWait, next);
                run.calls.refused(outcome);
                if (outcome >= 0) {
                    granted.add(next);
                } else if (!granted.isEmpty() && run.random.nextInt(4) == 0) {
                    run.cancel(granted.remove(run.random.nextInt(granted.size())));
                }
                long remaining = run.cell.remaining(run.now);
                if (remaining < 100 && !finer) {
                    Cell copy = run.cell.copy();
                    for (long left = remaining; left > 0; left--) {
                        assertThat(copy.reserve(1, run.now, 0, null)).as(where).isZero();
                    }
                    assertThat(copy.peek(1, run.now, 0)).as(where).isNegative();
                }
                long reset = run.cell.nanosToFull(run.now);
                long most = run.cell.remaining(run.now + reset);
                assertThat(run.cell.nanosToFull(run.now + reset)).as(where).isZero();
                assertThat(run.cell.remaining(
                                run.now + 2 * reset + limit.rate().period().toNanos()))
                        .as(where)
                        .isEqualTo(most);
                if (reset > 0 && !finer) {
                    assertThat(run.cell.remaining(run.now + reset - 1))
                            .as(where)
                            .isLessThan(most);
                }
            }
        }
    }

    /** A cell that would be dropped as fresh decides as a fresh one would, whatever was cancelled before. */
    @ParameterizedTest
    @MethodSource("limits")
    void aCellThatIsFreshDecidesAsOneThatHasSeenNoCall(Limit limit) {
        for (int seed = 0; seed < schedules(); seed++) {
            Run run = new Run(limit, seed);
            List<Grant> granted = new ArrayList<>();
            for (int call = 0; call < CALLS; call++) {
                run.step();
                long maxWait = run.calls.maxWait();
                Grant next = new Grant(Math.min(run.calls.permits(), limit.capacity()));
                long outcome = run.cell.reserve(next.permits(), run.now, maxWait, next);
                run.calls.refused(outcome);
                if (outcome >= 0) {
                    granted.add(next);
                }
                while (!granted.isEmpty() && run.random.nextInt(2) == 0) {
                    run.cancel(granted.remove(run.random.nextInt(granted.size())));
                }
                long now = run.now;
                run.now += run.cell.nanosToInitial(now);
                assertSame(
                        run, run.tell(run.cell), run.tell(run.cell.parameters().initial(run.now)));
                run.now = now;
            }
        }
    }

    /** P9: the last reservation, cancelled, was never made. */
    @ParameterizedTest
    @MethodSource("limits")
    void theLastReservationIsUndoneExactly(Limit limit) {
        // A window that was reached by waiting has closed those before it.
        boolean closesWindows =
                limit.algorithm() == Algorithm.FIXED_WINDOW || limit.algorithm() == Algorithm.SLIDING_WINDOW;
        for (int seed = 0; seed < schedules(); seed++) {
            Run run = new Run(limit, seed);
            for (int call = 0; call < CALLS; call++) {
                run.step();
                Cell untouched = run.cell.copy();
                List<Long> before = run.tell(run.cell);
                long maxWait = run.calls.maxWait();
                Grant last = new Grant(run.calls.permits());
                long outcome = run.cell.reserve(last.permits(), run.now, maxWait, last);
                run.calls.refused(outcome);
                if (outcome == 0 || (outcome > 0 && !closesWindows)) {
                    run.cancel(last);
                    assertSame(run, run.tell(run.cell), before);
                    if (run.random.nextBoolean()) {
                        run.reserve(last.permits(), outcome);
                    }
                } else if (outcome > 0) {
                    run.cancel(last);
                    assertThat(run.cell.remaining(run.now)).as("%s", run).isLessThanOrEqualTo(before.get(9));
                    assertThat(later(run, run.cell, outcome)).as("%s", run).isEqualTo(later(run, untouched, outcome));
                }
            }
        }
    }

    /** What a cell tells after a time. */
    private static List<Long> later(Run run, Cell cell, long nanos) {
        long now = run.now;
        run.now += nanos;
        List<Long> told = run.tell(cell);
        run.now = now;
        return told;
    }

    /** P9: V is at the end of an old reservation again by chance; giving all of it back would let seven go at once. */
    @Test
    void aReservationOlderThanACancelFromTheMiddleGivesBackWhatIsNotReservedBehindIt() {
        ManualTicker ticker = new ManualTicker();
        RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("law", Algorithm.TOKEN_BUCKET).rate("1/s").burst(6).build(), ticker, 1);
        Reservation first = limiter.reserve(null, 5, 0);
        ticker.advance(Duration.ofSeconds(1));
        Reservation second = limiter.reserve(null, 1, 0);
        first.cancel();
        Reservation third = limiter.reserve(null, 4, 0);
        ticker.advance(Duration.ofSeconds(3));
        second.cancel();
        assertThat(limiter.tryAcquire(null, 2)).isTrue();
        third.cancel();
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(4);
    }
}
