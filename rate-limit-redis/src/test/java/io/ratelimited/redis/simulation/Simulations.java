package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.simulation.Step.Kind;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/** Runs many schedules. The first that breaks a promise is made smaller and shown. */
final class Simulations {

    private final Lua lua = new Lua();
    private final Map<Kind, Long> happened = new EnumMap<>(Kind.class);
    private long schedules;
    private long decisions;
    private long commands;
    private double worst;

    private Simulations() {}

    /**
     * Runs the schedules of seeds.
     *
     * @return what was run, in a few lines
     * @throws AssertionError when a schedule breaks a promise; shows the smallest schedule found that does
     */
    static String run(LongStream seeds) {
        Simulations all = new Simulations();
        try (LogProbe log = new LogProbe()) {
            seeds.forEach(seed -> all.run(Plan.small(seed), log));
        }
        return all.summary();
    }

    /** Seeds that have shown a defect. */
    static final long[] REGRESSIONS = {192, 382, 5_214, 5_636};

    /**
     * Two nodes without faults that are asked for more than a limit allows, for three seconds: which part of it they admit.
     */
    static double admitted(Algorithm algorithm, double overshoot) {
        Limit limit = Limit.of("limit", algorithm).rate("40/200ms").build();
        List<Step> steps = List.of(flood(0), flood(1));
        Plan plan = new Plan(1, 2, limit, limit, OnFailure.LOCAL, overshoot, 2, 400_000, steps);
        try (LogProbe log = new LogProbe()) {
            Simulation simulation = new Simulation(plan, new Lua(), log);
            List<String> violations = simulation.run().violations();
            if (!violations.isEmpty()) {
                throw new AssertionError(violations.toString());
            }
            boolean bucket = algorithm == Algorithm.TOKEN_BUCKET || algorithm == Algorithm.GCRA;
            return simulation.calls().stream().filter(Call::went).count() / (bucket ? 640.0 : 600.0);
        }
    }

    private static Step flood(int node) {
        // Windows of the calendar begin with it.
        return new Step(200_000_000, Kind.FLOOD, node, 0, 6_000, 3_000_000_000L);
    }

    private void run(Plan plan, LogProbe log) {
        Simulation.Outcome outcome = new Simulation(plan, lua, log).run();
        if (!outcome.violations().isEmpty()) {
            throw new AssertionError(shown(shrunk(plan, log), log));
        }
        schedules++;
        decisions += outcome.decisions();
        commands += outcome.commands();
        worst = Math.max(worst, outcome.worst());
        plan.steps().forEach(step -> happened.merge(step.kind(), 1L, Long::sum));
    }

    /** Without the steps that the failure does not need. */
    private Plan shrunk(Plan plan, LogProbe log) {
        Plan smallest = plan;
        for (int i = plan.steps().size() - 1; i >= 0; i--) {
            List<Step> fewer = new ArrayList<>(smallest.steps());
            fewer.remove(i);
            Plan next = smallest.with(fewer);
            if (!new Simulation(next, lua, log).run().violations().isEmpty()) {
                smallest = next;
            }
        }
        return smallest;
    }

    private String shown(Plan plan, LogProbe log) {
        Simulation simulation = new Simulation(plan, lua, log);
        List<String> violations = simulation.run().violations();
        return violations.stream().map(each -> each + "\n").collect(Collectors.joining())
                + plan
                + simulation.calls().stream().map(call -> "    " + call + "\n").collect(Collectors.joining());
    }

    /** Everything that callers have seen: the same for the same seed. */
    static String seen(long seed) {
        try (LogProbe log = new LogProbe()) {
            return new Simulations().shown(Plan.small(seed), log);
        }
    }

    private String summary() {
        return String.format(
                        Locale.ROOT,
                        "%,d schedules, %,d decisions, %,d commands, worst window %.3f of its bound%n",
                        schedules,
                        decisions,
                        commands,
                        worst)
                + happened.entrySet().stream()
                        .map(entry -> String.format(Locale.ROOT, "%s %,d", entry.getKey(), entry.getValue()))
                        .collect(Collectors.joining(", "));
    }

    /** Arguments: the first seed, how many, and after how many seconds to end at the latest. */
    public static void main(String[] args) {
        long first = Long.parseLong(args[0]);
        long end = System.nanoTime() + 1_000_000_000L * Long.parseLong(args[2]);
        try {
            System.out.println(run(LongStream.of(REGRESSIONS)));
            for (Algorithm algorithm : List.of(Algorithm.TOKEN_BUCKET, Algorithm.FIXED_WINDOW, Algorithm.SLIDING_LOG)) {
                double part = admitted(algorithm, 0);
                System.out.println(algorithm + " admits " + part);
                if (part < 0.99) {
                    throw new AssertionError(algorithm + " admits too little");
                }
            }
            System.out.println(run(LongStream.range(first, first + Long.parseLong(args[1]))
                    .takeWhile(seed -> System.nanoTime() < end)));
        } catch (AssertionError ex) {
            System.out.println(ex.getMessage());
            System.exit(1);
        }
        System.out.printf(
                Locale.ROOT,
                "%.1f s of processor time%n",
                ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9);
    }
}
