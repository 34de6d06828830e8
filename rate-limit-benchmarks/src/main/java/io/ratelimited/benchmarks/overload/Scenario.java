package io.ratelimited.benchmarks.overload;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.DoubleUnaryOperator;
import org.jspecify.annotations.Nullable;

/** What happens to one or more instances. Times are seconds. */
final class Scenario {

    record Change(double at, Instances.Change what) {}

    final String name;
    final double seconds;
    /** Offered load over time, as a multiple of the capacity at the begin. */
    final DoubleUnaryOperator load;
    /** Highest value of the load. */
    final double peak;

    final List<Change> changes = new ArrayList<>();
    Instances.Kind kind = Instances.Kind.ONE;
    boolean collapses;
    int retries;
    double rareSlow;
    double pauseEvery;

    @Nullable
    DoubleUnaryOperator best;

    @Nullable
    Parameters own;
    /** Span within which nothing should be refused, and span after the overload. */
    double quietUntil;

    double afterFrom = Double.MAX_VALUE;

    Scenario(String name, double seconds, double peak, DoubleUnaryOperator load) {
        this.name = name;
        this.seconds = seconds;
        this.load = load;
        this.peak = peak;
    }

    /** Twice the load, for so long that a trend of the limit would show. */
    static Scenario trend(double seconds) {
        return new Scenario("trend", seconds, 2, t -> 2);
    }

    Scenario with(Consumer<Scenario> more) {
        more.accept(this);
        return this;
    }

    private static DoubleUnaryOperator steps(double... valuesAndEnds) {
        return t -> {
            int i = 0;
            while (i + 1 < valuesAndEnds.length && t >= valuesAndEnds[i + 1]) {
                i += 2;
            }
            return valuesAndEnds[i];
        };
    }

    /** @param share of the capacity that the calls of the best class need */
    private static Scenario priorities(double share) {
        return new Scenario("12 x, %.0f %% critical".formatted(100 * share), 60, 12, steps(.8, 10, 12))
                .with(s -> s.best = t -> t < 10 ? share : share / 12);
    }

    /** The scenarios of the research, and a quiet one. */
    static List<Scenario> all() {
        return List.of(
                new Scenario("quiet .6", 60, .6, t -> .6).with(s -> s.quietUntil = 60),
                new Scenario("step .5 > 3 > .5", 60, 3, steps(.5, 10, 3, 40, .5)).with(s -> {
                    s.quietUntil = 10;
                    s.afterFrom = 50;
                }),
                new Scenario("ramp .2 > 3", 60, 3, t -> .2 + 2.8 * t / 60),
                new Scenario("twice the load", 120, 2, t -> 2),
                new Scenario("dependency 5 x slower", 70, 1.3, steps(.7, 10, 1.3))
                        .with(s -> s.changes.add(new Change(30, instances -> instances.slower(5)))),
                new Scenario("40 connections, 4 x slower", 70, 1.3, steps(.7, 10, 1.3)).with(s -> {
                    s.kind = Instances.Kind.CONNECTIONS;
                    s.changes.add(new Change(30, instances -> instances.slower(4)));
                }),
                new Scenario("half the processors", 70, 1.3, steps(.7, 10, 1.3))
                        .with(s -> s.changes.add(new Change(30, instances -> instances.processors(.5)))),
                new Scenario("pauses of 150 ms", 60, 1.5, steps(.7, 20, 1.5)).with(s -> s.pauseEvery = 3),
                new Scenario("1 % take 50 x as long", 60, 2, steps(.5, 10, 2)).with(s -> s.rareSlow = .01),
                new Scenario("retries after 3 x", 60, 3, steps(.6, 10, 3, 30, .6)).with(s -> {
                    s.retries = 3;
                    s.afterFrom = 40;
                }),
                new Scenario("steep collapse", 60, 2, steps(.5, 10, 2)).with(s -> s.collapses = true),
                new Scenario("5 calls a second", 240, 2.5, steps(.6, 60, 2.5)).with(s -> {
                    s.own = new Parameters(2, .25e9, .5e9, 5_000_000_000L);
                    s.quietUntil = 60;
                }),
                new Scenario("four on one database", 60, 2, steps(.5, 10, 2)).with(s -> s.kind = Instances.Kind.FOUR),
                priorities(.1),
                priorities(.3),
                priorities(.6),
                new Scenario("two nested limits", 60, 2, steps(.5, 10, 2)).with(s -> s.kind = Instances.Kind.NESTED));
    }
}
