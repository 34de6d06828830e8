package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/**
 * Schedules for what the small ones lack: a cluster whose slots move, callers that sleep and are interrupted or leave, lost
 * packets, an executor that rejects, clocks that step far back, calls of several permits that hold leases, and calls in
 * flight that last longer than their leases through outages that do so too.
 */
final class WidePlan {

    private static final long MILLI = 1_000_000;
    private static final List<OnFailure> ON_FAILURE = List.of(OnFailure.values());
    private static final List<Kind> CALLS = Stream.concat(
                    Plan.CALLS.stream(), Stream.of(Kind.CALL_TIMED_OUT, Kind.CALL_LEAVES, Kind.CALL_INTERRUPTED))
            .toList();
    private static final List<Kind> NEW_FAULTS = List.of(Kind.LOSS, Kind.EXECUTOR_THROWS, Kind.SERVER_CLOCK);
    private static final List<Kind> LASTING = List.of(
            Kind.OUT_OF_MEMORY,
            Kind.OUT_OF_MEMORY,
            Kind.OUT_OF_MEMORY,
            Kind.SILENCE,
            Kind.CUT,
            Kind.FREEZE,
            Kind.RESTART_EMPTY,
            Kind.PAUSE,
            Kind.NO_REPLIES,
            Kind.DEAF,
            Kind.READ_ONLY,
            Kind.JOIN,
            Kind.KILL,
            Kind.CHANGE);

    private static final List<Kind> SILENT =
            List.of(Kind.SILENCE, Kind.NO_REPLIES, Kind.NO_QUESTIONS, Kind.CUT, Kind.FREEZE);

    private WidePlan() {}

    /** The same schedule for the same seed, which is another than that of {@link Plan#small}. */
    static Plan of(long seed) {
        SplittableRandom random = new SplittableRandom(~seed);
        return switch (random.nextInt(20)) {
            case 0 -> random.nextBoolean() ? lasting(seed, random) : renewed(seed, random);
            case 1, 2 -> mixed(seed, random);
            default -> usual(seed, random);
        };
    }

    /** One in forty of them: outages that last for longer than a call may wait. */
    static Plan lasting(long seed) {
        return lasting(seed, new SplittableRandom(~seed));
    }

    private static Plan usual(long seed, SplittableRandom random) {
        Algorithm algorithm = Plan.ALGORITHMS.get(random.nextInt(Plan.ALGORITHMS.size()));
        int nodes = 1 + random.nextInt(3);
        int servers = random.nextBoolean() ? 1 : 3;
        Limit limit = Plan.limit(algorithm, random);
        List<Step> steps = new ArrayList<>();
        long length = (500 + random.nextInt(1_500)) * MILLI;
        int calls = 4 + random.nextInt(16);
        for (int i = 0; i < calls; i++) {
            Kind kind = CALLS.get(random.nextInt(CALLS.size()));
            steps.add(Plan.call(kind, algorithm, nodes, 100 * MILLI + random.nextLong(length), random));
        }
        int faults = 1 + random.nextInt(3);
        for (int i = 0; i < faults; i++) {
            steps.add(fault(nodes, servers, 100 * MILLI + random.nextLong(length), random));
        }
        steps.addAll(Plan.closings(seed, algorithm, nodes, length));
        return plan(seed, nodes, servers, limit, Plan.limit(algorithm, random), 0, 400_000, steps, random);
    }

    private static Step fault(int nodes, int servers, long at, SplittableRandom random) {
        int sort = random.nextInt(4);
        if (sort == 0) {
            return Plan.fault(Plan.FAULTS.get(random.nextInt(Plan.FAULTS.size())), nodes, at, random);
        }
        if (servers > 1 && sort < 3) {
            long nanos = (20 + random.nextInt(600)) * MILLI;
            return new Step(at, Kind.MOVE_SLOT, 0, 0, 1 + random.nextInt(servers - 1), nanos);
        }
        Kind kind = NEW_FAULTS.get(random.nextInt(NEW_FAULTS.size()));
        return switch (kind) {
            // Not longer than a call that has ended is looked after.
            case LOSS ->
                new Step(at, kind, random.nextInt(nodes), 0, 1 + random.nextInt(600), random.nextInt(300) * MILLI);
            case SERVER_CLOCK -> new Step(at, kind, 0, 0, -random.nextInt(60_000), 0);
            default -> Plan.fault(kind, nodes, at, random);
        };
    }

    /** Leases of a few permits, and calls for more than is left of them. */
    private static Plan mixed(long seed, SplittableRandom random) {
        Algorithm algorithm = Plan.HOT.get(random.nextInt(Plan.HOT.size()));
        int nodes = 1 + random.nextInt(2);
        Limit limit = Plan.hot(algorithm, random);
        List<Step> steps = new ArrayList<>();
        for (int i = 0; i < nodes; i++) {
            int amount = 300 + random.nextInt(600);
            steps.add(new Step((100 + random.nextInt(20)) * MILLI, Kind.MIXED_FLOOD, i, 0, amount, 300 * MILLI));
        }
        long delay = (1 + random.nextInt(6)) * MILLI;
        return plan(seed, nodes, 1, limit, limit, 0.05 + 0.05 * random.nextInt(2), delay, steps, random);
    }

    /** Calls in flight that are renewed, for which outages may be too long. */
    private static Plan lasting(long seed, SplittableRandom random) {
        int nodes = 1 + random.nextInt(2);
        Limit limit = Limit.of("limit", Algorithm.CONCURRENCY)
                .maxConcurrent(2 + random.nextInt(3))
                .build();
        List<Step> steps = new ArrayList<>();
        steps.add(new Step(200 * MILLI, Kind.FLOOD_OF_TWOS, 0, 0, 300, 25_000 * MILLI));
        int calls = 1 + random.nextInt(4);
        for (int i = 0; i < calls; i++) {
            long nanos = (4_000 + random.nextInt(60_000)) * MILLI;
            long at = (i < 2 ? 100 : random.nextInt(30_000)) * MILLI;
            steps.add(new Step(at, Kind.CALL, random.nextInt(nodes), 0, 1, nanos));
        }
        int faults = 1 + random.nextInt(2);
        for (int i = 0; i < faults; i++) {
            Kind kind = LASTING.get(random.nextInt(LASTING.size()));
            long most = kind == Kind.OUT_OF_MEMORY ? 6_000 : random.nextInt(2) == 0 ? 3_000 : 45_000;
            long nanos = (500 + random.nextLong(most)) * MILLI;
            steps.add(new Step(random.nextInt(40_000) * MILLI, kind, random.nextInt(nodes), 0, 0, nanos));
        }
        return plan(seed, nodes, 1, limit, limit, 0, 400_000, steps, random);
    }

    /** A call that ends while nobody knows whether it was renewed. */
    private static Plan doubtful(long seed, SplittableRandom random) {
        Limit limit = Limit.of("limit", Algorithm.CONCURRENCY).maxConcurrent(3).build();
        Kind kind = SILENT.get(random.nextInt(SILENT.size()));
        long nanos = (300 + random.nextInt(1_500)) * MILLI;
        List<Step> steps = new ArrayList<>();
        steps.add(new Step(100 * MILLI, Kind.CALL, 0, 0, 1, 2L * (9_950 + random.nextInt(250)) * MILLI));
        steps.add(new Step((9_940 + random.nextInt(60)) * MILLI, kind, 0, 0, 0, nanos));
        return plan(seed, 1 + random.nextInt(2), 1, limit, limit, 0, 400_000, steps, random);
    }

    /** A call that ends while the server refuses to renew it, and answers all else: others are refused their two places. */
    private static Plan renewed(long seed, SplittableRandom random) {
        if (random.nextBoolean()) {
            return doubtful(seed, random);
        }
        Limit limit = Limit.of("limit", Algorithm.CONCURRENCY).maxConcurrent(3).build();
        List<Step> steps = new ArrayList<>();
        steps.add(new Step(100 * MILLI, Kind.CALL, 0, 0, 1, 2L * (10_000 + random.nextInt(1_500)) * MILLI));
        steps.add(new Step(200 * MILLI, Kind.FLOOD_OF_TWOS, 0, 0, 600, 20_000 * MILLI));
        long nanos = (1_000 + random.nextInt(4_000)) * MILLI;
        steps.add(new Step((9_500 + random.nextInt(450)) * MILLI, Kind.OUT_OF_MEMORY, 0, 0, 0, nanos));
        return plan(seed, 1 + random.nextInt(2), 1, limit, limit, 0, 400_000, steps, random);
    }

    private static Plan plan(
            long seed,
            int nodes,
            int servers,
            Limit limit,
            Limit changed,
            double overshoot,
            long delay,
            List<Step> steps,
            SplittableRandom random) {
        steps.sort(Comparator.comparingLong(Step::at));
        OnFailure onFailure = ON_FAILURE.get(random.nextInt(ON_FAILURE.size()));
        int expected = random.nextInt(4) > 0 ? nodes : 0;
        return new Plan(
                seed, nodes, servers, limit, changed, onFailure, overshoot, expected, delay, 0, List.copyOf(steps));
    }
}
