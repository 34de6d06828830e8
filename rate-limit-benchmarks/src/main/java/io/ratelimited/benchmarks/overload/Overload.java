package io.ratelimited.benchmarks.overload;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.LongStream;

/**
 * Prints the table of the simulation: the answers in time of each gate, divided by those under the best fixed limit, which is
 * found afterwards for each scenario and seed.
 */
public final class Overload {

    /** What came of one gate in one scenario, over all seeds. */
    private static final class Row {

        private final List<Double> ratios = new ArrayList<>();
        private double jain = 1;
        private long refusedWhenQuiet;
        private long offeredAfter;
        private long goodAfter;
        private long offeredBest;
        private long goodBest;

        private synchronized void add(Run run, double best) {
            ratios.add(run.good / best);
            jain = Math.min(jain, run.jain());
            refusedWhenQuiet += run.refusedWhenQuiet;
            offeredAfter += run.offeredAfter;
            goodAfter += run.goodAfter;
            offeredBest += run.offeredBest;
            goodBest += run.goodBest;
        }

        private String cells(Scenario scenario) {
            List<Double> sorted = ratios.stream().sorted().toList();
            return String.format(
                    Locale.ROOT,
                    "%.3f | %.3f | %s | %s | %s | %s |",
                    sorted.get(0),
                    sorted.get(sorted.size() / 2),
                    scenario.quietUntil > 0 ? refusedWhenQuiet : "",
                    percent(goodAfter, offeredAfter),
                    percent(goodBest, offeredBest),
                    scenario.kind == Instances.Kind.FOUR ? String.format(Locale.ROOT, "%.3f", jain) : "");
        }

        private static String percent(long part, long all) {
            return all == 0 ? "" : String.format(Locale.ROOT, "%.2f %%", 100.0 * part / all);
        }
    }

    private Overload() {}

    /**
     * Runs all scenarios.
     *
     * @param args the first seed, the number of seeds, the seconds of the trend, and nothing or a part of the name of a scenario
     */
    public static void main(String[] args) {
        long first = Long.parseLong(args[0]);
        long end = first + Long.parseLong(args[1]);
        System.out.println(
                "| scenario | limit | worst | median | refused when quiet | served afterwards | best class served |"
                        + " Jain, worst |");
        System.out.println("|---|---|--:|--:|--:|--:|--:|--:|");
        for (Scenario scenario : Scenario.all()) {
            if (args.length < 4 || scenario.name.contains(args[3])) {
                print(scenario, first, end);
            }
        }
        System.out.println();
        System.out.println(
                "Trend of ADAPTIVE under twice the load, mean limit of the last third by that of the middle one:");
        LongStream.range(first, Math.min(end, first + 5)).forEach(seed -> trend(seed, Double.parseDouble(args[2])));
    }

    private static void print(Scenario scenario, long first, long end) {
        Map<String, Row> rows = new LinkedHashMap<>();
        gates(Parameters.of(first), scenario).keySet().forEach(name -> rows.put(name, new Row()));
        LongStream.range(first, end).parallel().forEach(seed -> {
            Parameters parameters = Run.parameters(scenario, seed);
            double best = best(scenario, parameters, seed);
            gates(parameters, scenario)
                    .forEach((name, gate) ->
                            Objects.requireNonNull(rows.get(name)).add(new Run(scenario, seed, gate).run(), best));
        });
        rows.forEach(
                (name, row) -> System.out.println("| " + scenario.name + " | " + name + " | " + row.cells(scenario)));
    }

    private static Map<String, Function<Timeline, Gate>> gates(Parameters parameters, Scenario scenario) {
        Map<String, Function<Timeline, Gate>> gates = new LinkedHashMap<>();
        List<String> priorities = scenario.best == null
                ? List.of()
                : scenario.middle == null
                        ? List.of("critical", "background")
                        : List.of("critical", "normal", "background");
        long late = parameters.deadline();
        gates.put("**ADAPTIVE**", timeline -> Gate.ours(timeline, late, priorities));
        gates.put("ADAPTIVE without lateAfter", timeline -> Gate.ours(timeline, 0, priorities));
        gates.put("none", timeline -> Gate.none());
        gates.put("Netflix Vegas", Gate::vegas);
        gates.put("Netflix Gradient2", Gate::gradient);
        gates.put("Netflix AIMD", timeline -> Gate.aimd(timeline, late));
        return gates;
    }

    /** Answers in time under the best fixed limit. */
    private static long best(Scenario scenario, Parameters parameters, long seed) {
        long best = 1;
        for (double times = 0.7; times < 30; times *= times < 3 ? 1.25 : 1.6) {
            int limit = (int) Math.ceil(parameters.inFlight() * times);
            best = Math.max(best, new Run(scenario, seed, timeline -> Gate.fixed(limit)).run().good);
        }
        return best;
    }

    private static void trend(long seed, double seconds) {
        Scenario scenario = Scenario.trend(seconds);
        long late = Parameters.of(seed).deadline();
        double[] limits = new Run(scenario, seed, timeline -> Gate.ours(timeline, late, List.of())).run().limits;
        System.out.printf(
                Locale.ROOT,
                "- seed %d: %.3f%n",
                seed,
                mean(limits, 2 * limits.length / 3, limits.length)
                        / mean(limits, limits.length / 3, 2 * limits.length / 3));
    }

    private static double mean(double[] values, int from, int to) {
        double sum = 0;
        for (int i = from; i < to; i++) {
            sum += values[i];
        }
        return sum / (to - from);
    }
}
