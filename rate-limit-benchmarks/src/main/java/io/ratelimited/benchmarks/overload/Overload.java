package io.ratelimited.benchmarks.overload;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.LongStream;

/** Prints the tables of the simulation. */
public final class Overload {

    private Overload() {}

    private static Map<String, Function<Timeline, Gate>> gates(Parameters parameters, Scenario scenario, boolean all) {
        Map<String, Function<Timeline, Gate>> gates = new LinkedHashMap<>();
        List<String> priorities = scenario.best == null ? List.of() : List.of("critical", "background");
        long late = parameters.deadline();
        gates.put("ADAPTIVE", timeline -> Gate.ours(timeline, late, priorities));
        if (all) {
            gates.put("without lateAfter", timeline -> Gate.ours(timeline, 0, priorities));
            gates.put("none", timeline -> Gate.none());
            gates.put("Vegas", Gate::vegas);
            gates.put("Gradient2", Gate::gradient);
            gates.put("AIMD", timeline -> Gate.aimd(timeline, late));
        }
        return gates;
    }

    private static final Map<String, Long> BEST = new java.util.concurrent.ConcurrentHashMap<>();

    /** Goodput of the best fixed limit. */
    static long best(Scenario scenario, long seed) {
        return BEST.computeIfAbsent(scenario.name + seed, any -> {
            Parameters parameters = new Run(scenario, seed, timeline -> Gate.none()).parameters();
            long best = 0;
            for (double times = .7; times < 30; times *= times < 3 ? 1.25 : 1.6) {
                int limit = (int) Math.ceil(parameters.inFlight() * times);
                best = Math.max(best, new Run(scenario, seed, timeline -> Gate.fixed(limit)).run().good);
            }
            return best;
        });
    }

    /**
     * @param args the first seed, the number of seeds, {@code quick}, {@code ours}, or a part of the name of a scenario
     */
    public static void main(String[] args) {
        long first = Long.parseLong(args[0]);
        int seeds = Integer.parseInt(args[1]);
        List<String> options = Arrays.asList(args).subList(2, args.length);
        for (Scenario scenario : Scenario.all(options.contains("quick"))) {
            String only = options.stream().filter(o -> !List.of("quick", "ours", "trace").contains(o)).findFirst().orElse("");
            if (!scenario.name.contains(only)) {
                continue;
            }
            Map<String, List<Double>> rows = new LinkedHashMap<>();
            Map<String, long[]> more = new LinkedHashMap<>();
            List<String> worstSeed = new ArrayList<>();
            LongStream.range(first, first + seeds).parallel().forEach(seed -> {
                double best = best(scenario, seed);
                Parameters parameters = new Run(scenario, seed, timeline -> Gate.none()).parameters();
                gates(parameters, scenario, !options.contains("ours")).forEach((name, gate) -> {
                    Run run = new Run(scenario, seed, gate).run();
                    synchronized (rows) {
                        rows.computeIfAbsent(name, any -> new ArrayList<>()).add(run.good / best);
                        long[] sums = more.computeIfAbsent(name, any -> new long[6]);
                        sums[0] += run.refusedWhenQuiet;
                        sums[1] += run.goodAfter;
                        sums[2] += run.offeredAfter;
                        sums[3] = Math.min(sums[3] == 0 ? 10_000 : sums[3], (long) (run.jain() * 10_000));
                        sums[4] += run.goodBest;
                        sums[5] += run.offeredBest;
                        if (options.contains("trace") && name.equals("ADAPTIVE")) {
                            worstSeed.add(String.format("%d %.3f %s inflight %.0f cap %.0f jain %.3f %s", seed, run.good / best, parameters, parameters.inFlight(), parameters.capacity(), run.jain(), Arrays.toString(run.limits)));
                        }
                    }
                });
            });
            rows.forEach((name, ratios) -> {
                List<Double> sorted = ratios.stream().sorted().toList();
                long[] sums = more.get(name);
                System.out.printf(
                        "%-28s %-18s worst %.3f median %.3f  quiet refused %d after %.4f jain %.4f best %.4f%n",
                        scenario.name,
                        name,
                        sorted.get(0),
                        sorted.get(sorted.size() / 2),
                        sums[0],
                        sums[2] == 0 ? 1 : (double) sums[1] / sums[2],
                        sums[3] / 1e4,
                        sums[5] == 0 ? 1 : (double) sums[4] / sums[5]);
            });
            worstSeed.forEach(System.out::println);
        }
    }
}
