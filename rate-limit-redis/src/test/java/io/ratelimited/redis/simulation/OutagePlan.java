package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Schedules of short outages one after the other, under calls that never cease. Callers whom Redis has not answered stand
 * still before they are decided: some until Redis is back, some until it is away again, and some between two steps of the
 * recovery.
 */
final class OutagePlan {

    private static final long MILLI = 1_000_000;
    private static final List<Algorithm> BUCKETS = List.of(
            Algorithm.TOKEN_BUCKET,
            Algorithm.TOKEN_BUCKET,
            Algorithm.TOKEN_BUCKET,
            Algorithm.GCRA,
            Algorithm.SMOOTH_BURSTY,
            Algorithm.LEAKY_BUCKET,
            Algorithm.WARM_UP);
    private static final List<Kind> OUTAGES = List.of(
            Kind.FREEZE,
            Kind.FREEZE,
            Kind.SILENCE,
            Kind.NO_REPLIES,
            Kind.NO_QUESTIONS,
            Kind.CUT,
            Kind.DEAF,
            Kind.READ_ONLY,
            Kind.OUT_OF_MEMORY);

    private OutagePlan() {}

    /** The same schedule for the same seed. */
    static Plan of(long seed) {
        SplittableRandom random = new SplittableRandom(seed ^ 0x0A7A9E5L);
        Algorithm algorithm = BUCKETS.get(random.nextInt(BUCKETS.size()));
        int nodes = 1 + random.nextInt(2);
        List<Step> steps = new ArrayList<>();
        long at = 150 * MILLI;
        int outages = 2 + random.nextInt(4);
        for (int i = 0; i < outages; i++) {
            Kind kind = OUTAGES.get(random.nextInt(OUTAGES.size()));
            long nanos = (5 + random.nextInt(150)) * MILLI;
            steps.add(new Step(at, kind, random.nextInt(nodes), 0, 0, nanos));
            at += nanos + (60 + random.nextInt(250)) * MILLI;
        }
        for (int i = 0; i < nodes; i++) {
            int calls = 100 + random.nextInt(200);
            steps.add(new Step((100 + random.nextInt(20)) * MILLI, Kind.FLOOD, i, 0, calls, at - 100 * MILLI));
        }
        steps.sort(Comparator.comparingLong(Step::at));
        return new Plan(
                seed,
                nodes,
                1,
                limit(algorithm, random),
                limit(algorithm, random),
                OnFailure.LOCAL,
                0,
                random.nextInt(3) > 0 ? nodes : 0,
                400_000,
                (1 + random.nextInt(random.nextBoolean() ? 5 : 200)) * MILLI,
                List.copyOf(steps));
    }

    /**
     * Schedules of many replies that are late, one after the other, under calls that are sometimes within the limit and sometimes
     * above it.
     */
    static Plan lateReplies(long seed) {
        SplittableRandom random = new SplittableRandom(seed ^ 0x1A7EL);
        Algorithm algorithm = BUCKETS.get(random.nextInt(BUCKETS.size()));
        int nodes = 1 + random.nextInt(3);
        List<Step> steps = new ArrayList<>();
        long at = 150 * MILLI;
        int late = 6 + random.nextInt(12);
        for (int i = 0; i < late; i++) {
            Kind kind = random.nextInt(4) > 0 ? Kind.NO_REPLIES : OUTAGES.get(random.nextInt(OUTAGES.size()));
            long nanos = (45 + random.nextInt(20)) * MILLI;
            steps.add(new Step(at, kind, random.nextInt(nodes), 0, 0, nanos));
            at += nanos + (20 + random.nextInt(200)) * MILLI;
        }
        for (int i = 0; i < nodes; i++) {
            int calls = 10 * late + random.nextInt(30 * late);
            steps.add(new Step((100 + random.nextInt(20)) * MILLI, Kind.FLOOD, i, 0, calls, at - 100 * MILLI));
        }
        steps.sort(Comparator.comparingLong(Step::at));
        // Of a slow limit more is lost in a late reply than is refilled until the next.
        Limit limit = algorithm == Algorithm.WARM_UP || random.nextBoolean()
                ? limit(algorithm, random)
                : Limit.of("limit", algorithm)
                        .rate(1 + random.nextInt(20) + "/s")
                        .burst(5 + random.nextInt(30))
                        .build();
        return new Plan(
                seed,
                nodes,
                1,
                limit,
                limit,
                OnFailure.LOCAL,
                0,
                random.nextInt(3) > 0 ? nodes : 0,
                400_000,
                random.nextInt(5) * MILLI,
                List.copyOf(steps));
    }

    private static Limit limit(Algorithm algorithm, SplittableRandom random) {
        return algorithm == Algorithm.WARM_UP
                ? Plan.limit(algorithm, random)
                : Limit.of("limit", algorithm)
                        .rate(5 + random.nextInt(20) + "/100ms")
                        .burst(2 + random.nextInt(15))
                        .build();
    }
}
