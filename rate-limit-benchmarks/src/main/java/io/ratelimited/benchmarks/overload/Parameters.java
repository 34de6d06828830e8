package io.ratelimited.benchmarks.overload;

import java.util.SplittableRandom;

/**
 * What differs from one seed to the next.
 *
 * @param cores processors of an instance, 2 to 16
 * @param cpu mean processor time of a call, in nanoseconds
 * @param io mean time of a call's dependencies, in nanoseconds
 * @param deadline after which the caller has gone away, in nanoseconds
 */
record Parameters(int cores, double cpu, double io, long deadline) {

    /** Capacities of 200 to 1,200 calls a second, dependencies of 1 to 15 times the processor time, deadlines of 5 to 15 times both. */
    static Parameters of(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        int cores = 2 << random.nextInt(4);
        double cpu = cores * 1e9 / between(random, 200, 1200);
        double io = cpu * between(random, 1, 15);
        return new Parameters(cores, cpu, io, (long) ((cpu + io) * between(random, 5, 15)));
    }

    /** Evenly by the logarithm. */
    private static double between(SplittableRandom random, double least, double most) {
        return least * Math.pow(most / least, random.nextDouble());
    }

    /** Calls a second that the processors serve. */
    double capacity() {
        return cores * 1e9 / cpu;
    }

    /** Calls in flight at capacity, if none waits. */
    double inFlight() {
        return capacity() * (cpu + io) / 1e9;
    }
}
