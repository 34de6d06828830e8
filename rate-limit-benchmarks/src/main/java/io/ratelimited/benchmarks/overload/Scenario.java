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
    /** Threads of the server, which calls take before the gate. */
    int threads = Integer.MAX_VALUE;
    /** Share of the calls that a cache answers. */
    double cheap;

    int retries;
    double rareSlow;
    double pauseEvery;

    @Nullable
    DoubleUnaryOperator best;

    /** Share of the calls that are of the second of three classes. */
    @Nullable
    DoubleUnaryOperator middle;

    @Nullable
    Parameters own;
    /** Span within which nothing should be refused, and span after the overload. */
    double quietUntil;

    double afterFrom = Double.MAX_VALUE;
    /** Whether callers wait for as long as the slow dependency takes. */
    boolean patient;
    /** Whether the overload begins with the service. */
    boolean isCold;

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

    private static Scenario cold(double load, double seconds) {
        return new Scenario(
                        "cold start at %s x".formatted(load == (int) load ? (int) load : load),
                        seconds,
                        load,
                        t -> load)
                .with(s -> s.isCold = true);
    }

    private Scenario behind(int number) {
        Scenario behind = new Scenario(name + " behind " + number + " threads", seconds, peak, load);
        behind.threads = number;
        behind.isCold = true;
        return behind;
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
                cold(1.1, 90),
                cold(1.5, 40),
                cold(3, 40),
                cold(10, 40),
                cold(3, 40).behind(8),
                cold(3, 40).behind(40),
                cold(3, 40).behind(200),
                cold(10, 40).behind(200),
                new Scenario("step .5 > 3 behind 200 threads", 60, 3, steps(.5, 20, 3)).with(s -> s.threads = 200),
                new Scenario("night, then .7", 330, .7, steps(.02, 300, .7)).with(s -> s.quietUntil = 330),
                new Scenario("night, then 3 x", 340, 3, steps(.02, 300, 3)),
                new Scenario("bursts of 3 s of 4 x", 80, 4, t -> t % 20 > 17 ? 4 : .3),
                new Scenario("90 % cached, 2 x", 60, 2, steps(.5, 10, 2)).with(s -> s.cheap = .9),
                new Scenario("98 % cached, cold 3 x", 60, 3, t -> 3).with(s -> s.cheap = .98),
                new Scenario("90 % cached, .6", 60, .6, t -> .6).with(s -> {
                    s.cheap = .9;
                    s.quietUntil = 60;
                }),
                new Scenario("slow dependency for 30 s, .5", 90, .5, t -> .5).with(s -> {
                    s.changes.add(new Change(30, instances -> instances.slower(8)));
                    s.changes.add(new Change(60, instances -> instances.slower(1)));
                    s.patient = true;
                    s.quietUntil = 90;
                }),
                new Scenario("flapping dependency, .6", 90, .6, t -> .6).with(s -> {
                    for (int at = 10; at < 90; at += 10) {
                        double times = at % 20 == 10 ? 6 : 1;
                        s.changes.add(new Change(at, instances -> instances.slower(times)));
                    }
                    s.patient = true;
                    s.quietUntil = 90;
                }),
                new Scenario("flapping pool, .7", 90, .7, t -> .7).with(s -> {
                    s.kind = Instances.Kind.CONNECTIONS;
                    for (int at = 10; at < 90; at += 10) {
                        double times = at % 20 == 10 ? 6 : 1;
                        s.changes.add(new Change(at, instances -> instances.slower(times)));
                    }
                }),
                new Scenario("one of four restarts", 80, 2, steps(.5, 10, 2)).with(s -> {
                    s.kind = Instances.Kind.FOUR;
                    s.changes.add(new Change(30, instances -> instances.restart(0)));
                }),
                priorities(.1),
                priorities(.3),
                priorities(.6),
                priorities(.9),
                priorities(1),
                new Scenario("middle .6 beside 4 x lowest", 60, 4.7, steps(.7, 10, 4.7)).with(s -> {
                    s.best = t -> t < 10 ? .1 : .1 / 4.7;
                    s.middle = t -> t < 10 ? .5 : .6 / 4.7;
                }),
                new Scenario("two nested limits", 60, 2, steps(.5, 10, 2)).with(s -> s.kind = Instances.Kind.NESTED));
    }
}
