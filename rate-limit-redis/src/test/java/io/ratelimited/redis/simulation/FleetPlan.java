package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;

/** Schedules of changes for all nodes, by several nodes that are cut off, frozen and killed, and on a server that loses data. */
final class FleetPlan {

    private static final long MILLI = 1_000_000;
    private static final List<Algorithm> ALGORITHMS =
            List.of(Algorithm.FIXED_WINDOW, Algorithm.TOKEN_BUCKET, Algorithm.GCRA, Algorithm.SLIDING_LOG);
    private static final List<Kind> FAULTS = List.of(
            Kind.CUT,
            Kind.SILENCE,
            Kind.NO_REPLIES,
            Kind.NO_QUESTIONS,
            Kind.SLOW,
            Kind.DEAF,
            Kind.FREEZE,
            Kind.RESTART_EMPTY,
            Kind.FAILOVER,
            Kind.READ_ONLY,
            Kind.OUT_OF_MEMORY,
            Kind.FORGET_SCRIPTS,
            Kind.SERVER_CLOCK,
            Kind.NODE_CLOCK,
            Kind.PAUSE,
            Kind.KILL,
            Kind.JOIN);

    private FleetPlan() {}

    /** The same schedule for the same seed. */
    static Plan of(long seed) {
        SplittableRandom random = new SplittableRandom(seed ^ 0xF1EE7L);
        Algorithm algorithm = ALGORITHMS.get(random.nextInt(ALGORITHMS.size()));
        int nodes = 2 + random.nextInt(3);
        long length = (500 + random.nextInt(4_000)) * MILLI;
        List<Step> steps = new ArrayList<>();
        for (int changes = 1 + random.nextInt(8); changes > 0; changes--) {
            long at = 100 * MILLI + random.nextLong(length);
            int key = random.nextInt(3);
            steps.add(new Step(at, Kind.CHANGE_FOR_ALL, random.nextInt(nodes), key, random.nextInt(1_000), 0));
        }
        for (int calls = random.nextInt(12); calls > 0; calls--) {
            steps.add(Plan.call(Kind.BURST, algorithm, nodes, 100 * MILLI + random.nextLong(length), random));
        }
        for (int faults = random.nextInt(5); faults > 0; faults--) {
            Kind kind = FAULTS.get(random.nextInt(FAULTS.size()));
            steps.add(Plan.fault(kind, nodes, 100 * MILLI + random.nextLong(length), random));
        }
        steps.sort(Comparator.comparingLong(Step::at));
        return new Plan(
                seed,
                nodes,
                1,
                limit(algorithm, random),
                changed(seed, limit(algorithm, random)),
                OnFailure.LOCAL,
                0,
                nodes,
                random.nextInt(4) == 0 ? 8 * MILLI : 400_000,
                0,
                List.copyOf(steps));
    }

    /** Every fourth plan closes its limit and opens it again. */
    private static Limit changed(long seed, Limit limit) {
        return seed % 4 == 0 ? limit.toBuilder().rate("0/200ms").build() : limit;
    }

    private static Limit limit(Algorithm algorithm, SplittableRandom random) {
        return Limit.of("limit", algorithm)
                .rate(2 + random.nextInt(10) + "/200ms")
                .build();
    }
}
