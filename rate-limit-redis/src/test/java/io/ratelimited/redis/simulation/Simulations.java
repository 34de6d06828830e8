package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.simulation.Step.Kind;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/** Runs many schedules. The first that breaks a promise is made smaller and shown. */
final class Simulations {

    private static final long MILLI = 1_000_000;
    private static final Lua LUA = Lua.shared();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final Map<Kind, Long> happened = new EnumMap<>(Kind.class);
    private long schedules;
    private long decisions;
    private long commands;
    private double worst;

    private Simulations() {}

    /**
     * Runs schedules.
     *
     * @return what was run, in a few lines
     * @throws AssertionError when a schedule breaks a promise; shows the smallest schedule found that does
     */
    static String run(Stream<Plan> plans) {
        Simulations all = new Simulations();
        double begin = processorSeconds();
        try (LogProbe log = new LogProbe()) {
            plans.forEach(plan -> all.run(plan, log));
        }
        return all.summary(processorSeconds() - begin);
    }

    /** Seeds that have shown a defect. */
    static final long[] REGRESSIONS = {
        52, 417, 1_405, 4_398, 16_326, 35_369, 1_226_041, 1_274_670, 1_596_637, 3_437_968, 7_112_601, 30_322_193
    };

    /** Those of {@link WidePlan}. */
    static final long[] WIDE_REGRESSIONS = {108, 673, 4_840, 127_683, 2_039_989};

    /** Those of {@link FleetPlan}. */
    private static final long[] FLEET_REGRESSIONS = {796, 868, 23_885, 200_327};

    /** Those of {@link BlockPlan}. */
    private static final long[] BLOCK_REGRESSIONS = {5_059};

    /** Those of {@link Plan#settling}. */
    private static final long[] SETTLING_REGRESSIONS = {664, 5_355};

    /** The schedules that have shown a defect. */
    static Stream<Plan> regressions() {
        return Stream.of(
                        LongStream.of(REGRESSIONS).mapToObj(Plan::small),
                        LongStream.of(WIDE_REGRESSIONS).mapToObj(WidePlan::of),
                        LongStream.of(FLEET_REGRESSIONS).mapToObj(FleetPlan::of),
                        LongStream.of(BLOCK_REGRESSIONS).mapToObj(BlockPlan::of),
                        LongStream.of(SETTLING_REGRESSIONS).mapToObj(Plan::settling))
                .flatMap(plans -> plans);
    }

    /**
     * Two nodes without faults that are asked for more than a limit allows, for 0.6 s: which part of it they admit.
     */
    static double admitted(Algorithm algorithm, double overshoot) {
        Limit limit = Limit.of("limit", algorithm).rate("40/200ms").build();
        List<Step> steps = List.of(flood(0), flood(1));
        Plan plan = new Plan(1, 2, 1, limit, limit, OnFailure.LOCAL, overshoot, 2, 400_000, 0, steps);
        boolean bucket = algorithm == Algorithm.TOKEN_BUCKET || algorithm == Algorithm.GCRA;
        return calls(plan).stream().filter(Call::went).count() / (bucket ? 160.0 : 120.0);
    }

    /** One node, 1,000/s with a burst of 300: what callers are given in freezes of 0.7 s, one every 1.7 s. */
    static long admittedInFreezes(int freezes) {
        Limit limit = Limit.of("limit", Algorithm.TOKEN_BUCKET)
                .rate("1000/s")
                .burst(300)
                .build();
        List<Step> steps = new ArrayList<>();
        long begin = 200 * MILLI;
        int millis = 1_150 + freezes * 1_700;
        steps.add(new Step(begin, Kind.FLOOD, 0, 0, 4 * millis, millis * MILLI));
        for (int i = 0; i < freezes; i++) {
            steps.add(new Step(begin + (1_000 + i * 1_700L) * MILLI, Kind.FREEZE, 0, 0, 0, 700 * MILLI));
        }
        Plan plan = new Plan(1, 1, 1, limit, limit, OnFailure.LOCAL, 0, 1, 400_000, 5 * MILLI, steps);
        return calls(plan).stream().filter(Call::went).count();
    }

    /** A burst of Redis, one more, and the rate. */
    static long mostInFreezes(int freezes) {
        return 300 + 300 + 1_150 + freezes * 1_700L;
    }

    /** Four nodes that do not know how many they are, 1,000/s with a burst of 100: what they admit in a freeze of a second. */
    static long admittedByYoungFleet() {
        Limit limit = Limit.of("limit", Algorithm.TOKEN_BUCKET)
                .rate("1000/s")
                .burst(100)
                .build();
        List<Step> steps = new ArrayList<>();
        steps.add(new Step(200 * MILLI, Kind.FREEZE, 0, 0, 0, 1_000 * MILLI));
        for (int node = 0; node < 4; node++) {
            steps.add(new Step(210 * MILLI, Kind.FLOOD, node, 0, 2_000, 980 * MILLI));
        }
        Plan plan = new Plan(1, 4, 1, limit, limit, OnFailure.LOCAL, 0, 0, 400_000, 0, steps);
        return calls(plan).stream()
                .filter(call -> call.went() && call.isLocal())
                .count();
    }

    private static List<Call> calls(Plan plan) {
        try (LogProbe log = new LogProbe()) {
            Simulation simulation = new Simulation(plan, LUA, log);
            List<String> violations = simulation.run().violations();
            if (!violations.isEmpty()) {
                throw new AssertionError(violations.toString());
            }
            return simulation.calls();
        }
    }

    private static Step flood(int node) {
        // Windows of the calendar begin with it.
        return new Step(200_000_000, Kind.FLOOD, node, 0, 1_200, 600_000_000L);
    }

    private void run(Plan plan, LogProbe log) {
        Simulation.Outcome outcome = new Simulation(plan, LUA, log).run();
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
            if (!new Simulation(next, LUA, log).run().violations().isEmpty()) {
                smallest = next;
            }
        }
        return smallest;
    }

    private String shown(Plan plan, LogProbe log) {
        Simulation simulation = new Simulation(plan, LUA, log);
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

    private String summary(double seconds) {
        return String.format(
                        Locale.ROOT,
                        "%,d schedules in %.1f s of processor time, %,d decisions, %,d commands, worst window %.3f of"
                                + " its bound%n",
                        schedules,
                        seconds,
                        decisions,
                        commands,
                        worst)
                + happened.entrySet().stream()
                        .map(entry -> String.format(Locale.ROOT, "%s %,d", entry.getKey(), entry.getValue()))
                        .collect(Collectors.joining(", "));
    }

    /** A way to draw a plan by its seed. */
    enum Plans {
        TINY,
        SMALL,
        SETTLING,
        WIDE,
        LASTING,
        OUTAGES,
        LATE_REPLIES,
        FLEET,
        BLOCKS;

        Plan plan(long seed) {
            return switch (this) {
                case TINY -> Plan.tiny(seed);
                case SMALL -> Plan.small(seed);
                case SETTLING -> Plan.settling(seed);
                case WIDE -> WidePlan.of(seed);
                case LASTING -> WidePlan.lasting(seed);
                case OUTAGES -> OutagePlan.of(seed);
                case LATE_REPLIES -> OutagePlan.lateReplies(seed);
                case FLEET -> FleetPlan.of(seed);
                case BLOCKS -> BlockPlan.of(seed);
            };
        }
    }

    /** Whatever is checked here, for so many seconds of processor time. */
    static String runFor(String plans, long first, double seconds) {
        String regressions = run(regressions());
        for (Algorithm algorithm : List.of(Algorithm.TOKEN_BUCKET, Algorithm.FIXED_WINDOW)) {
            double part = admitted(algorithm, 0);
            if (part < 0.99) {
                throw new AssertionError(algorithm + " admits " + part + " of what is allowed");
            }
        }
        if (Plans.valueOf(plans) == Plans.OUTAGES && admittedInFreezes(3) > mostInFreezes(3)) {
            throw new AssertionError("freezes give more than one burst");
        }
        double end = processorSeconds() + seconds;
        return regressions
                + "\n"
                + run(LongStream.iterate(first, seed -> seed + 1)
                        .takeWhile(seed -> processorSeconds() < end)
                        .mapToObj(Plans.valueOf(plans)::plan));
    }

    private static double processorSeconds() {
        return THREADS.getCurrentThreadCpuTime() / 1e9;
    }

    /** Arguments: one of {@link Plans}, the first seed, and seconds of processor time. */
    public static void main(String[] args) {
        try {
            System.out.println(runFor(args[0], Long.parseLong(args[1]), Double.parseDouble(args[2])));
        } catch (AssertionError ex) {
            System.out.println(ex.getMessage());
            System.exit(1);
        }
    }
}
