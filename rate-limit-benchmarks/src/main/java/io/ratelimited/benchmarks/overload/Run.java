package io.ratelimited.benchmarks.overload;

import io.ratelimited.core.End;
import java.util.SplittableRandom;
import java.util.function.Function;

/** One scenario under one gate. All gates see the same calls, whether they admit them or not. */
final class Run {

    private static final double SECOND = 1e9;

    private final Timeline timeline = new Timeline();
    private final Scenario scenario;
    private final Parameters parameters;
    private final Instances instances;
    private final SplittableRandom arrivals;
    private final double rate;

    long offered;
    long good;
    long refusedWhenQuiet;
    long offeredAfter;
    long goodAfter;
    long offeredBest;
    long goodBest;
    long offeredMiddle;
    long goodMiddle;
    long refused;
    final long[] goodBy;
    /** By second: answers in time, offered and refused calls. */
    final long[] goodOf;

    final long[] offeredBy;
    final long[] refusedBy;
    final double[] limits;

    Run(Scenario scenario, long seed, Function<Timeline, Gate> gate) {
        this.scenario = scenario;
        this.parameters = parameters(scenario, seed);
        this.instances = new Instances(
                timeline, parameters, scenario.kind, scenario.collapses, scenario.threads, () -> gate.apply(timeline));
        this.arrivals = new SplittableRandom(seed * 31 + 7);
        this.rate = parameters.capacity() * scenario.peak;
        this.goodBy = new long[instances.size()];
        this.limits = new double[(int) scenario.seconds];
        this.goodOf = new long[(int) scenario.seconds];
        this.offeredBy = new long[(int) scenario.seconds + 1];
        this.refusedBy = new long[(int) scenario.seconds];
    }

    static Parameters parameters(Scenario scenario, long seed) {
        Parameters drawn = scenario.own == null ? Parameters.of(seed) : scenario.own;
        return scenario.patient ? new Parameters(drawn.cores(), drawn.cpu(), drawn.io(), 4 * drawn.deadline()) : drawn;
    }

    Run run() {
        scenario.changes.forEach(change ->
                timeline.at((long) (change.at() * SECOND), () -> change.what().apply(instances)));
        if (scenario.pauseEvery > 0) {
            pauseLater();
        }
        for (int second = 0; second < limits.length; second++) {
            int number = second;
            timeline.at(
                    (long) (second * SECOND),
                    () -> limits[number] = instances.gate(0).limit());
        }
        arriveLater();
        timeline.runUntil((long) (scenario.seconds * SECOND));
        return this;
    }

    private void pauseLater() {
        timeline.after((long) (scenario.pauseEvery * SECOND), () -> {
            instances.pause(150_000_000);
            pauseLater();
        });
    }

    private static double exponential(SplittableRandom random) {
        return -Math.log(1 - random.nextDouble());
    }

    private void arriveLater() {
        timeline.after((long) (exponential(arrivals) / rate * SECOND), this::arrive);
    }

    private void arrive() {
        SplittableRandom call = arrivals.split();
        double now = timeline.now() / SECOND;
        boolean taken = call.nextDouble() * scenario.peak < scenario.load.applyAsDouble(now);
        arriveLater();
        if (!taken) {
            return;
        }
        double share = scenario.best == null ? 0 : scenario.best.applyAsDouble(now);
        double drawn = call.nextDouble();
        boolean best = drawn < share;
        boolean middle = !best && scenario.middle != null && drawn < share + scenario.middle.applyAsDouble(now);
        double cpu = parameters.cpu() * (.5 + .5 * exponential(call));
        double io = parameters.io() * (.5 + call.nextDouble());
        if (scenario.cheap > 0) {
            // Most calls are answered by a cache; the others keep the processors as busy as all calls do elsewhere.
            boolean cheap = call.nextDouble() < scenario.cheap;
            cpu = cheap ? 0.02 * cpu : cpu * (1 - 0.02 * scenario.cheap) / (1 - scenario.cheap);
            io = cheap ? 0.02 * io : io;
        }
        if (call.nextDouble() < scenario.rareSlow) {
            io = 50 * parameters.io();
        }
        int instance = call.nextInt(instances.size());
        boolean late = now > scenario.seconds - 2 * parameters.deadline() / SECOND;
        offered++;
        offeredBest += best && !late ? 1 : 0;
        offeredMiddle += middle && !late ? 1 : 0;
        offeredBy[(int) now]++;
        boolean after = now >= scenario.afterFrom && !late;
        if (after) {
            offeredAfter++;
        }
        attempt(
                instance,
                best ? 0 : scenario.best == null ? 0 : scenario.middle == null || middle ? 1 : 2,
                cpu,
                io,
                scenario.retries,
                call,
                after,
                best && !late,
                middle && !late);
    }

    private void attempt(
            int instance,
            int rank,
            double cpu,
            double io,
            int retries,
            SplittableRandom call,
            boolean after,
            boolean best,
            boolean middle) {
        long begun = timeline.now();
        boolean[] over = new boolean[1];
        Runnable again = () -> {
            if (!over[0]) {
                over[0] = true;
                if (retries > 0) {
                    long pause = (long) (100e6 * (1 << (scenario.retries - retries)) * (.5 + call.nextDouble()));
                    timeline.after(
                            pause, () -> attempt(instance, rank, cpu, io, retries - 1, call, after, best, middle));
                }
            }
        };
        instances.call(instance, rank, cpu, io, end -> {
            if (end == null) {
                refusedWhenQuiet += begun < scenario.quietUntil * SECOND ? 1 : 0;
                refused++;
                refusedBy[(int) Math.min(refusedBy.length - 1, begun / SECOND)]++;
                again.run();
            } else if (end == End.ANSWERED && !over[0] && timeline.now() - begun <= parameters.deadline()) {
                over[0] = true;
                good++;
                goodBy[instance]++;
                goodAfter += after ? 1 : 0;
                goodBest += best ? 1 : 0;
                goodMiddle += middle ? 1 : 0;
                goodOf[(int) Math.min(goodOf.length - 1, timeline.now() / SECOND)]++;
            } else {
                again.run();
            }
        });
        if (scenario.retries > 0) {
            timeline.after(parameters.deadline(), again);
        }
    }

    /** How equally instances were served: 1 for all the same. */
    double jain() {
        double sum = 0;
        double squares = 0;
        for (long each : goodBy) {
            sum += each;
            squares += (double) each * each;
        }
        return sum * sum / (goodBy.length * squares);
    }
}
