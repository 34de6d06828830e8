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
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A schedule: the same one for the same seed.
 *
 * @param nodes that are there from the beginning
 * @param servers 1, or the primaries of a cluster
 * @param limit of the calls
 * @param changed what the limit is changed to on one node
 * @param expected how many nodes share the limit while Redis is away; 0 to count them
 * @param delay the longest usual time of a message, in nanoseconds
 * @param stall for how long a caller stands still at most when Redis has decided or has not, in nanoseconds
 */
record Plan(
        long seed,
        int nodes,
        int servers,
        Limit limit,
        Limit changed,
        OnFailure onFailure,
        double overshoot,
        int expected,
        long delay,
        long stall,
        List<Step> steps) {

    private static final long MILLI = 1_000_000;
    private static final List<OnFailure> ON_FAILURE = List.of(OnFailure.values());
    static final List<Algorithm> ALGORITHMS = List.of(
            Algorithm.TOKEN_BUCKET,
            Algorithm.TOKEN_BUCKET,
            Algorithm.GCRA,
            Algorithm.FIXED_WINDOW,
            Algorithm.SLIDING_WINDOW,
            Algorithm.SLIDING_LOG,
            Algorithm.SMOOTH_BURSTY,
            Algorithm.LEAKY_BUCKET,
            Algorithm.WARM_UP,
            Algorithm.CONCURRENCY,
            Algorithm.CONCURRENCY,
            Algorithm.CONCURRENCY);
    static final List<Algorithm> HOT =
            List.of(Algorithm.TOKEN_BUCKET, Algorithm.GCRA, Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW);
    static final List<Kind> CALLS = List.of(
            Kind.CALL,
            Kind.CALL,
            Kind.CALL,
            Kind.BURST,
            Kind.BURST,
            Kind.CALL_CANCELLED,
            Kind.CALL_GIVEN_BACK,
            Kind.CALL_OF_TWO,
            Kind.CALL_THROWING);
    private static final List<Kind> SETTLED_CALLS = List.of(
            Kind.CALL,
            Kind.CALL_GIVEN_BACK,
            Kind.CALL_SETTLED,
            Kind.CALL_SETTLED,
            Kind.CALL_SETTLED,
            Kind.CALL_OF_LEDGER,
            Kind.CALL_OF_LEDGER,
            Kind.CALL_OF_LEDGER);
    private static final List<Algorithm> LEDGERS =
            List.of(Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG);
    /** What may be used of a ledger. */
    static final long LEDGER = 1_000_000;

    static final List<Kind> FAULTS = Stream.of(Kind.values())
            .filter(kind -> kind.isFault() && kind.compareTo(Kind.LOG_THROWS) <= 0)
            .toList();

    /**
     * A small set-up: one to three nodes, one limit, some twenty calls, up to three faults in two seconds. Seeds are known by
     * their numbers, which a change here would give to other schedules.
     */
    static Plan small(long seed) {
        return of(seed, ALGORITHMS, CALLS, Kind.FLOOD);
    }

    /** The same with calls that are charged what they have cost when they end. */
    static Plan settling(long seed) {
        List<Algorithm> overTime = ALGORITHMS.stream()
                .filter(algorithm -> algorithm != Algorithm.CONCURRENCY)
                .toList();
        return of(seed, overTime, SETTLED_CALLS, Kind.FLOOD_SETTLED);
    }

    /**
     * A tiny set-up: one or two nodes, one limit of a few permits, two to four calls in 0.3 s, and up to two faults. So many
     * can be run that few steps meet in every order.
     */
    static Plan tiny(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        Algorithm algorithm = ALGORITHMS.get(random.nextInt(ALGORITHMS.size()));
        int nodes = 1 + random.nextInt(2);
        List<Step> steps = new ArrayList<>();
        for (int calls = 2 + random.nextInt(3); calls > 0; calls--) {
            steps.add(call(algorithm, CALLS, nodes, 100 * MILLI + random.nextLong(300 * MILLI), random));
        }
        for (int faults = random.nextInt(3); faults > 0; faults--) {
            steps.add(fault(nodes, 100 * MILLI + random.nextLong(300 * MILLI), random));
        }
        steps.sort(Comparator.comparingLong(Step::at));
        return new Plan(
                seed,
                nodes,
                1,
                limit(algorithm, 2, random),
                limit(algorithm, 2, random),
                ON_FAILURE.get(random.nextInt(ON_FAILURE.size())),
                0,
                nodes,
                400_000,
                0,
                List.copyOf(steps));
    }

    private static Plan of(long seed, List<Algorithm> algorithms, List<Kind> kinds, Kind flood) {
        SplittableRandom random = new SplittableRandom(seed);
        boolean hot = random.nextInt(10) == 0;
        Algorithm algorithm = (hot ? HOT : algorithms).get(random.nextInt(hot ? HOT.size() : algorithms.size()));
        Limit limit = hot ? hot(algorithm, random) : limit(algorithm, random);
        int nodes = 1 + random.nextInt(3);
        OnFailure onFailure =
                random.nextInt(3) > 0 ? OnFailure.LOCAL : ON_FAILURE.get(random.nextInt(ON_FAILURE.size()));
        long delay = random.nextInt(4) == 0 && !hot ? 8 * MILLI : 400_000;
        List<Step> steps = new ArrayList<>();
        long length = (hot ? 200 : 500 + random.nextInt(1_500)) * MILLI;
        int calls = hot ? 2 + random.nextInt(3) : 4 + random.nextInt(16);
        for (int i = 0; i < calls; i++) {
            long at = 100 * MILLI + random.nextLong(length);
            steps.add(
                    hot
                            ? new Step(at, flood, random.nextInt(nodes), 0, 100, 60 * MILLI)
                            : call(algorithm, kinds, nodes, at, random));
        }
        int faults = random.nextInt(4);
        for (int i = 0; i < faults; i++) {
            steps.add(fault(nodes, 100 * MILLI + random.nextLong(length), random));
        }
        steps.addAll(closings(seed, algorithm, nodes, length));
        steps.sort(Comparator.comparingLong(Step::at));
        return new Plan(
                seed,
                nodes,
                1,
                limit,
                hot ? hot(algorithm, random) : limit(algorithm, random),
                onFailure,
                hot ? 0.05 + 0.05 * random.nextInt(3) : random.nextInt(3) == 0 ? 0.05 : 0,
                random.nextInt(4) > 0 ? nodes : 0,
                delay,
                0,
                List.copyOf(steps));
    }

    /** So many calls that nodes hold permits in advance. */
    static Limit hot(Algorithm algorithm, SplittableRandom random) {
        Limit.Builder limit = Limit.of("limit", algorithm).rate((100 + random.nextInt(200)) + "/100ms");
        if (algorithm == Algorithm.TOKEN_BUCKET || algorithm == Algorithm.GCRA) {
            limit.burst(10 + random.nextInt(40));
        }
        return limit.build();
    }

    static Limit limit(Algorithm algorithm, SplittableRandom random) {
        return limit(algorithm, 5, random);
    }

    /** @param size of the limit: so many places, or twice as many permits, at most */
    private static Limit limit(Algorithm algorithm, int size, SplittableRandom random) {
        Limit.Builder limit = Limit.of("limit", algorithm);
        long permits = 2L + random.nextInt(2 * size);
        switch (algorithm) {
            case CONCURRENCY -> limit.maxConcurrent(1 + random.nextInt(size));
            case WARM_UP -> limit.rate(10 * permits + "/s").warmup(Duration.ofMillis(100 + random.nextInt(400)));
            case TOKEN_BUCKET, GCRA, LEAKY_BUCKET, SMOOTH_BURSTY ->
                limit.rate(permits + "/" + (random.nextInt(3) > 0 ? "100ms" : "500ms"))
                        .burst(1 + random.nextInt(2 * size - 1));
            default -> limit.rate(permits + "/" + (random.nextInt(3) > 0 ? "200ms" : "800ms"));
        }
        return limit.build();
    }

    private static Step call(Algorithm algorithm, List<Kind> kinds, int nodes, long at, SplittableRandom random) {
        return call(kinds.get(random.nextInt(kinds.size())), algorithm, nodes, at, random);
    }

    static Step call(Kind kind, Algorithm algorithm, int nodes, long at, SplittableRandom random) {
        int amount = kind == Kind.BURST ? 2 + random.nextInt(5) : random.nextInt(4) == 0 ? 2 : 1;
        // Calls in flight last for as long as they might wait elsewhere.
        boolean waits = algorithm == Algorithm.CONCURRENCY || random.nextInt(3) == 0;
        long nanos = waits ? random.nextLong(300 * MILLI) : 0;
        return new Step(at, kind, random.nextInt(nodes + 1), random.nextInt(8) == 0 ? 1 : 0, amount, nanos);
    }

    /**
     * In one of three schedules the limit is closed up to four times, and refunds of a log arrive twice in one of two. Drawn
     * apart, so that seeds keep the rest of their schedules.
     */
    static List<Step> closings(long seed, Algorithm algorithm, int nodes, long length) {
        SplittableRandom random = new SplittableRandom(seed * 31 + 7);
        List<Step> steps = new ArrayList<>();
        for (int closings = random.nextInt(3) == 0 ? 1 + random.nextInt(4) : 0; closings > 0; closings--) {
            long at = 100 * MILLI + random.nextLong(length);
            long nanos = random.nextLong((random.nextBoolean() ? 400 : 20) * MILLI);
            steps.add(new Step(at, Kind.CLOSE, random.nextInt(nodes), 0, 0, nanos));
        }
        if (algorithm == Algorithm.SLIDING_LOG && random.nextBoolean()) {
            steps.add(new Step(0, Kind.REFUNDS_TWICE, 0, 0, 0, 100 * MILLI + length));
        }
        return steps;
    }

    private static Step fault(int nodes, long at, SplittableRandom random) {
        return fault(FAULTS.get(random.nextInt(FAULTS.size())), nodes, at, random);
    }

    static Step fault(Kind kind, int nodes, long at, SplittableRandom random) {
        int node = random.nextInt(nodes);
        long nanos = (random.nextInt(3) == 0 ? random.nextInt(1_000) : random.nextInt(120)) * MILLI;
        int amount = switch (kind) {
            case SLOW -> 1 + random.nextInt(120);
            case FAILOVER -> random.nextInt(300);
            case SERVER_CLOCK, NODE_CLOCK -> random.nextInt(4_000) - 2_000;
            default -> 0;
        };
        return new Step(at, kind, node, 0, amount, nanos);
    }

    Plan with(List<Step> fewer) {
        return new Plan(
                seed, nodes, servers, limit, changed, onFailure, overshoot, expected, delay, stall, List.copyOf(fewer));
    }

    Limit ledger() {
        Algorithm algorithm = LEDGERS.get((int) (seed % LEDGERS.size()));
        return Limit.of("other-ledger", algorithm).rate(LEDGER + "/3650d").build();
    }

    /** When the last step is over. */
    long end() {
        return steps.stream().mapToLong(Step::end).max().orElse(0);
    }

    boolean has(Kind kind) {
        return steps.stream().anyMatch(step -> step.kind() == kind);
    }

    /** Whether the limit changes, on one node or on all. */
    boolean changes() {
        return has(Kind.CHANGE) || has(Kind.CHANGE_FOR_ALL);
    }

    @Override
    public String toString() {
        return "seed " + seed + ": " + nodes + " nodes" + (servers == 1 ? "" : ", " + servers + " servers") + " ("
                + (expected == 0 ? "counted" : "expected " + expected) + "), "
                + limit + ", changed to " + changed + ", on-failure " + onFailure + ", max-overshoot " + overshoot
                + ", messages take up to " + (delay + 100_000) / 1_000 + " us, callers stand still for up to "
                + stall / 1_000 + " us\n"
                + steps.stream().map(step -> "  " + step + "\n").collect(Collectors.joining());
    }
}
