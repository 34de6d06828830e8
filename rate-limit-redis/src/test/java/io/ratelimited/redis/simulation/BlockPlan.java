package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.simulation.Step.Kind;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Schedules of limits with blocks: callers that keep trying, on several nodes, through outages that begin and end during blocks.
 * Half of the limits block by what calls are charged.
 */
final class BlockPlan {

    private static final long MILLI = 1_000_000;
    private static final List<Algorithm> ALGORITHMS = Plan.ALGORITHMS.stream()
            .filter(algorithm -> algorithm != Algorithm.CONCURRENCY)
            .toList();
    private static final List<OnFailure> ON_FAILURE = List.of(OnFailure.values());
    private static final List<Kind> FAULTS = List.of(
            Kind.FREEZE,
            Kind.SILENCE,
            Kind.SILENCE,
            Kind.NO_REPLIES,
            Kind.NO_QUESTIONS,
            Kind.CUT,
            Kind.DEAF,
            Kind.SLOW,
            Kind.READ_ONLY,
            Kind.OUT_OF_MEMORY,
            Kind.PAUSE,
            Kind.KILL,
            Kind.JOIN,
            Kind.CLOSE,
            Kind.RESET,
            Kind.FORGET_SCRIPTS,
            Kind.RESTART_EMPTY,
            Kind.FAILOVER,
            Kind.EXECUTOR_THROWS);

    private BlockPlan() {}

    /** The same schedule for the same seed. */
    static Plan of(long seed) {
        SplittableRandom random = new SplittableRandom(seed ^ 0xB10CL);
        Algorithm algorithm = ALGORITHMS.get(random.nextInt(ALGORITHMS.size()));
        boolean charges = random.nextBoolean() && Limit.canBlockByCharge(algorithm);
        int nodes = 1 + random.nextInt(3);
        int servers = random.nextInt(4) == 0 ? 3 : 1;
        long length = (1_000 + random.nextInt(2_000)) * MILLI;
        List<Step> steps = new ArrayList<>();
        for (int i = 3 + random.nextInt(6); i > 0; i--) {
            long at = 100 * MILLI + random.nextLong(length);
            int calls = 5 + random.nextInt(40);
            steps.add(new Step(
                    at,
                    charges ? Kind.FLOOD_SETTLED : Kind.FLOOD,
                    random.nextInt(nodes),
                    random.nextInt(2),
                    calls,
                    (50 + random.nextInt(900)) * MILLI));
        }
        for (int i = random.nextInt(6); i > 0; i--) {
            Kind kind = charges ? Kind.CALL_SETTLED : random.nextBoolean() ? Kind.CALL_OF_TWO : Kind.CALL;
            steps.add(Plan.call(kind, algorithm, nodes, 100 * MILLI + random.nextLong(length), random));
        }
        for (int faults = random.nextInt(4); faults > 0; faults--) {
            Kind kind = FAULTS.get(random.nextInt(FAULTS.size()));
            long at = 100 * MILLI + random.nextLong(length);
            steps.add(
                    servers > 1 && random.nextInt(3) > 0
                            ? new Step(at, Kind.MOVE_SLOT, 0, 0, 1 + random.nextInt(2), random.nextInt(400) * MILLI)
                            : Plan.fault(kind, nodes, at, random));
        }
        steps.sort(Comparator.comparingLong(Step::at));
        Limit limit = limit(algorithm, charges, random);
        return new Plan(
                seed,
                nodes,
                servers,
                limit,
                limit,
                random.nextInt(3) > 0 ? OnFailure.LOCAL : ON_FAILURE.get(random.nextInt(ON_FAILURE.size())),
                random.nextInt(4) == 0 ? 0.05 : 0,
                nodes,
                400_000,
                0,
                List.copyOf(steps));
    }

    private static Limit limit(Algorithm algorithm, boolean charges, SplittableRandom random) {
        long first = 200L + random.nextInt(600);
        return Plan.limit(algorithm, random).toBuilder()
                .block(Duration.ofMillis(first))
                .blockFactor(1 + random.nextInt(5) / 2.0)
                .blockMax(Duration.ofMillis(first + random.nextInt(2_000)))
                .charged(charges)
                .build();
    }
}
