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
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import java.util.function.DoubleUnaryOperator;
import java.util.function.IntSupplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Loads in virtual time whose calls share nothing: nothing is short, so at most 0.5 % may be rejected, also in any ten seconds. */
class HarmlessLoadsTest {

    private record Arrival(double at, double took, int permits) {}

    private record Leaves(double at, Reservation call) {}

    /** Times are seconds. */
    private static final class Load {

        private final List<Arrival> arrivals = new ArrayList<>();
        private final SplittableRandom random = new SplittableRandom(9_000);
        private IntSupplier permits = () -> 1;

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
                arrivals.add(new Arrival(at, took.applyAsDouble(at) * (.5 + random.nextDouble()), permits.getAsInt()));
            }
            return this;
        }

        private Load calls(double from, double to, double rate, double took) {
            return calls(from, to, rate, at -> took);
        }

        private Load burst(double at, int number, double took) {
            for (int i = 0; i < number; i++) {
                arrivals.add(new Arrival(at, took * exponential(), permits.getAsInt()));
            }
            return this;
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
        A_FEW_CALLS_OF_UP_TO_FORTY_PERMITS;

        private Load load() {
            Load load = new Load();
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
            };
        }
    }

    @ParameterizedTest
    @EnumSource
    void nothingIsRejectedWhileNothingIsShort(Kind kind) {
        List<Arrival> arrivals = kind.load().arrivals;
        arrivals.sort(Comparator.comparingDouble(Arrival::at));
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter =
                new InMemoryRateLimiter(Limit.of("harmless", Algorithm.ADAPTIVE).build(), ticker, 1);
        List<FoundLimitChange> changes = new ArrayList<>();
        limiter.onLimitChange(changes::add);
        PriorityQueue<Leaves> leaving = new PriorityQueue<>(Comparator.comparingDouble(Leaves::at));
        int[] offered = new int[100];
        int[] rejected = new int[100];
        for (Arrival arrival : arrivals) {
            while (!leaving.isEmpty() && leaving.peek().at <= arrival.at) {
                Leaves next = leaving.remove();
                moveTo(ticker, next.at);
                next.call.release(End.ANSWERED);
            }
            moveTo(ticker, arrival.at);
            Reservation call = limiter.reserve(null, arrival.permits, 0);
            int tens = (int) (arrival.at / 10);
            offered[tens]++;
            if (call.isRefused()) {
                rejected[tens]++;
            } else {
                leaving.add(new Leaves(arrival.at + arrival.took, call));
            }
        }
        for (int tens = 0; tens < offered.length; tens++) {
            assertThat(rejected[tens])
                    .as("of %d from %d s: %s", offered[tens], 10 * tens, limiter.foundLimit())
                    .isLessThanOrEqualTo(offered[tens] / 200);
        }
        if (arrivals.stream().anyMatch(arrival -> arrival.permits > 1)) {
            assertThat(changes).isEmpty();
        }
    }

    private static void moveTo(ManualTicker ticker, double seconds) {
        ticker.advanceNanos(Math.max(0, Math.round(seconds * 1e9) - ticker.nanos()));
    }
}
