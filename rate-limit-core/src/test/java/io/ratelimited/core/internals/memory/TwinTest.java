package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.internals.memory.Cell.Grant;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.assertj.core.description.Description;
import org.assertj.core.description.TextDescription;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every algorithm that counts over time, against its naive twin, on random timelines. */
@Tag("once")
class TwinTest {

    private static final int CALLS = 120;

    /** Limits with how far, in nanoseconds, a cell may be from fractions: one unit of its time, which is at most 2 ns. */
    record Subject(Limit limit, long tolerance) {

        @Override
        public String toString() {
            return limit.toString();
        }
    }

    static Stream<Subject> limits() {
        List<Subject> subjects = new ArrayList<>();
        for (Algorithm algorithm :
                List.of(Algorithm.TOKEN_BUCKET, Algorithm.GCRA, Algorithm.SMOOTH_BURSTY, Algorithm.LEAKY_BUCKET)) {
            for (String rate : List.of("1/s", "10/s", "20/500ms", "1/d", "1000000/s", "1000000000/s")) {
                for (long burst : new long[] {1, 5, 100}) {
                    subjects.add(subject(Limit.of("twin", algorithm).rate(rate).burst(burst), 0));
                }
            }
            for (String rate : List.of("3/s", "7/m", "999999937/s", "1000000001/s", "10000000000/s", "13/365d")) {
                for (long burst : new long[] {1, 5, 1000}) {
                    long most = rate.endsWith("365d") ? 40 : burst;
                    Limit.Builder limit = Limit.of("twin", algorithm).rate(rate).burst(Math.min(burst, most));
                    subjects.add(subject(limit, 2));
                }
            }
        }
        subjects.add(
                subject(Limit.of("twin", Algorithm.SMOOTH_BURSTY).rate("5/s").burst(0), 0));
        for (String rate : List.of("5/m", "1/2s", "5/2s", "100/m", "7/3s")) {
            subjects.add(subject(Limit.of("twin", Algorithm.SMOOTH_BURSTY).rate(rate), 2));
        }
        for (String rate : List.of("1/s", "10/s", "3/s", "7/m", "1000000/s", "1/d")) {
            Rate parsed = Rate.parse(rate);
            Duration interval = parsed.period().dividedBy(parsed.permits());
            for (double coldFactor : new double[] {1, 2, 3, 10}) {
                Limit.Builder limit =
                        Limit.of("twin", Algorithm.WARM_UP).rate(rate).coldFactor(coldFactor);
                subjects.add(subject(limit.warmup(interval.multipliedBy(20)), CALLS));
                subjects.add(subject(limit.warmup(interval.dividedBy(3)), CALLS));
                subjects.add(subject(limit.warmup(Duration.ZERO), CALLS));
            }
        }
        for (String rate : List.of("1/s", "5/s", "7/m", "3/d", "50/10ms", "100/ms", "5000/d")) {
            subjects.add(subject(Limit.of("twin", Algorithm.FIXED_WINDOW).rate(rate), 0));
            subjects.add(subject(Limit.of("twin", Algorithm.SLIDING_LOG).rate(rate), 0));
            for (int slots : new int[] {1, 2, 7, 10}) {
                subjects.add(subject(
                        Limit.of("twin", Algorithm.SLIDING_WINDOW).rate(rate).slots(slots), 0));
            }
        }
        subjects.add(subject(Limit.of("twin", Algorithm.FIXED_WINDOW).rate("9/month"), 0));
        return subjects.stream();
    }

    private static Subject subject(Limit.Builder limit, long tolerance) {
        return new Subject(limit.build(), tolerance);
    }

    int timelines() {
        return Integer.getInteger("schedules", 8);
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aCellDecidesAsItsTwinDoes(Subject subject) {
        for (int seed = 0; seed < timelines(); seed++) {
            new Timeline(subject, seed).run();
        }
    }

    /** One cell and one twin under the same calls. */
    private static final class Timeline {

        private final Limit limit;
        private final long tolerance;
        private final int seed;
        private final Random random;
        private final RandomCalls calls;
        private final long base;
        private Cell cell;
        private final Twin twin;
        private final List<Grant> granted = new ArrayList<>();
        private long now;
        private int call;

        Timeline(Subject subject, int seed) {
            this.limit = subject.limit;
            this.tolerance = subject.tolerance;
            this.seed = seed;
            this.random = new Random(seed);
            this.calls = new RandomCalls(limit, random);
            this.base = random.nextInt(3) == 0 ? 0 : random.nextLong() >> 2;
            this.now = base;
            CellParameters parameters = CellFactory.parameters(limit, base, base);
            this.cell = parameters.initial(base);
            this.twin = Twin.of(limit, base);
        }

        void run() {
            for (call = 0; call < CALLS; call++) {
                now += calls.step();
                if (!granted.isEmpty() && random.nextInt(8) == 0) {
                    settleOne();
                }
                long permits = calls.permits();
                long maxWait = calls.maxWait();
                if (random.nextInt(20) == 0) {
                    compare(permits, cell.peek(permits, now, maxWait), twin.decide(permits, now, maxWait), maxWait);
                    continue;
                }
                Grant into = new Grant(permits);
                long expected = twin.decide(permits, now, maxWait);
                long actual = cell.reserve(permits, now, maxWait, into);
                compare(permits, actual, expected, maxWait);
                if (actual >= 0) {
                    twin.grant(permits, now);
                    granted.add(into);
                } else {
                    calls.refused(actual);
                }
                compareRemaining();
            }
        }

        @Override
        public String toString() {
            return limit + ", seed " + seed + ", call " + call + ", at " + (now - base) + " ns";
        }

        private void compareRemaining() {
            long least = twin.remaining(now - tolerance);
            long most = twin.remaining(now + tolerance);
            long rounding = tolerance == 0 ? 0 : 1;
            assertThat(cell.remaining(now)).as("remaining: %s", this).isBetween(least - rounding, most + rounding);
        }

        /** Where a rounding can decide whether something is behind a grant, only the last grant is given back. */
        private void settleOne() {
            int last = granted.size() - 1;
            int index = tolerance == 0 ? random.nextInt(granted.size()) : last;
            Grant reservation = granted.get(index);
            if (reservation == null) {
                return;
            }
            granted.set(index, null);
            if (random.nextInt(3) > 0) {
                long permits = random.nextBoolean() ? reservation.permits() : 1;
                cell = RandomCalls.giveBack(cell, reservation, permits, now);
                twin.giveBack(index, permits, now);
            } else {
                // A large debt at a yearly rate would lead beyond the range of the clock.
                boolean slow = limit.rate().period().toDays() > 1;
                long permits = 1L + random.nextInt(slow || random.nextBoolean() ? 3 : 300);
                cell = RandomCalls.charge(cell, permits, now);
                twin.charge(permits, now);
                if (tolerance > 0) {
                    granted.replaceAll(grant -> null);
                }
                granted.add(null);
            }
            compareRemaining();
        }

        private void compare(long permits, long actual, long expected, long maxWait) {
            Description where = new TextDescription("%s, permits %s, maxWait %s", this, permits, maxWait);
            if (tolerance == 0 || actual == Cell.NEVER || expected == Cell.NEVER) {
                assertThat(actual).as(where).isEqualTo(expected);
            } else if (actual < 0 == expected < 0) {
                assertThat(Math.abs(actual - expected)).as(where).isLessThanOrEqualTo(tolerance);
            } else {
                assertThat(~Math.min(actual, expected))
                        .as("a refusal of what the other grants: %s", where)
                        .isLessThanOrEqualTo(tolerance);
            }
        }
    }
}
