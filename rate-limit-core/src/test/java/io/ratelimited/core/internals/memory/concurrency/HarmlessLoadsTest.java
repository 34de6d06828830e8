package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.overload.FoundLimitChange;
import io.ratelimited.core.testing.ManualTicker;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import java.util.function.DoubleUnaryOperator;
import java.util.function.IntSupplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Loads in virtual time whose calls share nothing: nothing is short, so at most 0.5 % may be rejected, also in any ten seconds. */
class HarmlessLoadsTest {

    private record Arrival(double at, double took, int permits, End end) {}

    private record Leaves(double at, Reservation call, End end) {}

    /** Times are seconds. */
    private static final class Load {

        private final List<Arrival> arrivals = new ArrayList<>();
        private final SplittableRandom random;
        private IntSupplier permits = () -> 1;

        private Load(long seed) {
            random = new SplittableRandom(seed);
        }

        /** Calls that are added later need so many permits, by chance. */
        private Load permits(int least, int most) {
            permits = () -> random.nextInt(least, most + 1);
            return this;
        }

        private double exponential() {
            return -Math.log(1 - random.nextDouble());
        }

        /** Calls by chance, whose mean time depends on the time. */
        private Load calls(double from, double to, double rate, DoubleUnaryOperator took) {
            for (double at = from + exponential() / rate; at < to; at += exponential() / rate) {
                arrivals.add(new Arrival(
                        at, took.applyAsDouble(at) * (.5 + random.nextDouble()), permits.getAsInt(), End.ANSWERED));
            }
            return this;
        }

        private Load calls(double from, double to, double rate, double took) {
            return calls(from, to, rate, at -> took);
        }

        private Load burst(double at, int number, double took) {
            for (int i = 0; i < number; i++) {
                arrivals.add(new Arrival(at, took * exponential(), permits.getAsInt(), End.ANSWERED));
            }
            return this;
        }

        /** Calls that all take as long, and then meet an overloaded service. */
        private Load timeouts(double from, double to, double rate, double took) {
            for (double at = from + exponential() / rate; at < to; at += exponential() / rate) {
                arrivals.add(new Arrival(at, took, permits.getAsInt(), End.OVERLOADED));
            }
            return this;
        }

        private Load timeoutsOfAnOutage(double took) {
            return calls(0, 60, 100, took).timeouts(60, 63, 100, 30).calls(63, 150, 100, took);
        }

        private Load bursts(double from, int number, double took) {
            for (int i = 0; i < 10; i++) {
                burst(from + 7 * i, number, took);
            }
            return this;
        }
    }

    private enum Kind {
        QUICK_CALLS_AND_THEN_SLOWER_ONES,
        A_FEW_QUICK_ANSWERS_AND_THEN_REPORTS,
        A_PAGE_THAT_LOADS_EIGHT_THINGS,
        BURSTS_OF_SIXTY,
        BURSTS_OF_A_THOUSAND,
        BURSTS_OF_SLOWER_CALLS_IN_A_BUSY_SERVICE,
        A_COLD_START_WITH_A_THOUSAND,
        TEN_PERCENT_TAKE_A_HUNDRED_TIMES_AS_LONG,
        A_DEPENDENCY_TEN_TIMES_SLOWER_FOR_GOOD,
        A_DEPENDENCY_THAT_FLAPS,
        HEALTH_CHECKS_AND_THEN_SLOW_CALLS,
        A_QUIET_NIGHT_AND_THEN_EIGHT_TIMES_THE_LOAD,
        FIFTEEN_TIMES_THE_LOAD,
        A_COLD_START_AT_TWO_THOUSAND_A_SECOND,
        CALLS_OF_TEN_PERMITS,
        A_FEW_CALLS_OF_UP_TO_FORTY_PERMITS,
        TIMEOUTS_OF_A_PAST_OUTAGE,
        TIMEOUTS_OF_A_PAST_OUTAGE_OF_SLOWER_CALLS;

        private Load load() {
            Load load = new Load(9_000);
            return switch (this) {
                case QUICK_CALLS_AND_THEN_SLOWER_ONES -> load.burst(0, 45, .005).calls(1, 120, 60, .1);
                case A_FEW_QUICK_ANSWERS_AND_THEN_REPORTS ->
                    load.calls(0, 2, 10, .02).calls(3, 600, 4, 2);
                case A_PAGE_THAT_LOADS_EIGHT_THINGS -> load.calls(0, 5, 10, .02).bursts(65, 8, .05);
                case BURSTS_OF_SIXTY -> load.calls(0, 5, 10, .02).bursts(10, 60, .05);
                case BURSTS_OF_A_THOUSAND -> load.calls(0, 5, 10, .02).bursts(10, 1000, .05);
                case BURSTS_OF_SLOWER_CALLS_IN_A_BUSY_SERVICE ->
                    load.calls(0, 100, 300, .02).bursts(10, 300, .2);
                case A_COLD_START_WITH_A_THOUSAND -> load.burst(0, 1000, .3).burst(10, 1000, .3);
                case TEN_PERCENT_TAKE_A_HUNDRED_TIMES_AS_LONG ->
                    load.calls(0, 100, 450, .002).calls(0, 100, 50, .2);
                case A_DEPENDENCY_TEN_TIMES_SLOWER_FOR_GOOD -> load.calls(0, 120, 300, at -> at > 40 ? .5 : .05);
                case A_DEPENDENCY_THAT_FLAPS -> load.calls(0, 120, 200, at -> at % 10 > 5 ? 1 : .1);
                case HEALTH_CHECKS_AND_THEN_SLOW_CALLS ->
                    load.calls(0, 60, 1, .001).calls(5, 60, 100, 1.5);
                case A_QUIET_NIGHT_AND_THEN_EIGHT_TIMES_THE_LOAD ->
                    load.calls(0, 60, 100, .05).calls(600, 660, 800, .05);
                case FIFTEEN_TIMES_THE_LOAD -> load.calls(0, 60, 100, .05).calls(60, 120, 1500, .05);
                case A_COLD_START_AT_TWO_THOUSAND_A_SECOND -> load.calls(0, 60, 2000, .05);
                case CALLS_OF_TEN_PERMITS -> load.permits(10, 10).calls(0, 60, 200, .1);
                case A_FEW_CALLS_OF_UP_TO_FORTY_PERMITS -> load.permits(1, 40).calls(0, 60, 20, .1);
                case TIMEOUTS_OF_A_PAST_OUTAGE -> load.timeoutsOfAnOutage(.05);
                case TIMEOUTS_OF_A_PAST_OUTAGE_OF_SLOWER_CALLS -> load.timeoutsOfAnOutage(.3);
            };
        }
    }

    /** What came of a load, by second. */
    private static final class Outcome {

        private final int[] offered = new int[1000];
        private final int[] rejected = new int[1000];
        private final List<FoundLimitChange> changes = new ArrayList<>();

        private int rejected(int from, int to) {
            return Arrays.stream(rejected, from, to).sum();
        }
    }

    private static Outcome offer(Load load) {
        load.arrivals.sort(Comparator.comparingDouble(Arrival::at));
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter =
                new InMemoryRateLimiter(Limit.of("harmless", Algorithm.ADAPTIVE).build(), ticker, 1);
        Outcome outcome = new Outcome();
        limiter.onLimitChange(outcome.changes::add);
        PriorityQueue<Leaves> leaving = new PriorityQueue<>(Comparator.comparingDouble(Leaves::at));
        for (Arrival arrival : load.arrivals) {
            while (!leaving.isEmpty() && leaving.peek().at <= arrival.at) {
                Leaves next = leaving.remove();
                moveTo(ticker, next.at);
                next.call.release(next.end);
            }
            moveTo(ticker, arrival.at);
            Reservation call = limiter.reserve(null, arrival.permits, 0);
            outcome.offered[(int) arrival.at]++;
            if (call.isRefused()) {
                outcome.rejected[(int) arrival.at]++;
            } else {
                leaving.add(new Leaves(arrival.at + arrival.took, call, arrival.end));
            }
        }
        return outcome;
    }

    @ParameterizedTest
    @EnumSource
    void nothingIsRejectedWhileNothingIsShort(Kind kind) {
        Load load = kind.load();
        Outcome outcome = offer(load);
        for (int from = 0; from < 1000; from += 10) {
            int offered = Arrays.stream(outcome.offered, from, from + 10).sum();
            assertThat(outcome.rejected(from, from + 10))
                    .as("of %d from %d s: %s", offered, from, outcome.changes)
                    .isLessThanOrEqualTo(offered / 200);
        }
        if (load.arrivals.stream().anyMatch(arrival -> arrival.permits > 1)) {
            assertThat(outcome.changes).isEmpty();
        }
    }

    /** Calls that hang for half a minute or more come faster than usual, as a storm: those of an outage of three seconds, or of exports. */
    @ParameterizedTest
    @CsvSource({"3, 300, 30", "3, 300, 120", "3, 500, 30", "0.1, 1500, 30", "0.1, 1500, 120"})
    void callsThatHangCloseNoServiceThatAnswersOthers(double seconds, double rate, double took) {
        Load load = new Load(9_000).calls(0, 60, 100, .05).calls(60, 60 + seconds, rate, took);
        Outcome outcome = offer(load.calls(60 + seconds, 250, 100, .05));
        assertThat(outcome.rejected(60, 70)).as("a storm").isPositive();
        assertThat(outcome.rejected(68, 250)).as(outcome.changes.toString()).isZero();
    }

    /** Few calls end in the windows of a storm, and by chance those that take long. */
    @ParameterizedTest
    @ValueSource(longs = {3, 25, 28})
    void callsThatHangCloseNoServiceWhoseAnswersAreSlowByChance(long seed) {
        Load load = new Load(seed).calls(0, 60, 100, .2).calls(60, 60.5, 1000, 120);
        Outcome outcome = offer(load.calls(60.5, 250, 100, .2));
        assertThat(outcome.rejected(60, 70)).as("a storm").isPositive();
        assertThat(outcome.rejected(70, 250)).as(outcome.changes.toString()).isZero();
    }

    private static void moveTo(ManualTicker ticker, double seconds) {
        ticker.advanceNanos(Math.max(0, Math.round(seconds * 1e9) - ticker.nanos()));
    }
}
