package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;

/**
 * The trapezoid of a limit with warm-up, whose doubles the script calculates with in the same order: see {@link WarmUp}.
 *
 * @param interval T, nanoseconds
 * @param maxStored P
 * @param slope nanoseconds by which each stored permit above the threshold costs more than the one below it
 * @param nanosPerRefill W/P, nanoseconds
 * @param maxPermits the largest number of permits of one call: more would take decades
 */
public record WarmUpShape(
        double interval, double threshold, double maxStored, double slope, double nanosPerRefill, double maxPermits) {

    /** The shape of a limit that has a warm-up. */
    public static WarmUpShape of(Limit limit) {
        double warmup = limit.warmup().toNanos();
        double interval =
                (double) limit.rate().period().toNanos() / limit.rate().permits();
        double cold = interval * limit.coldFactor();
        double threshold = 0.5 * warmup / interval;
        double maxStored = threshold + 2.0 * warmup / (interval + cold);
        return new WarmUpShape(
                interval,
                threshold,
                maxStored,
                maxStored > threshold ? (cold - interval) / (maxStored - threshold) : 0,
                maxStored > 0 ? warmup / maxStored : 0,
                // Stored permits together cost no more than the warm-up beyond T for each permit, however cold they
                // are.
                (PermitTime.FAR - warmup) / interval);
    }

    /** Nanoseconds: T each, and for those taken from above the threshold the area under the slope. */
    double cost(double stored, long permits) {
        double over = stored - threshold;
        double above = over > permits ? permits : Math.max(0, over);
        return permits * interval + slope * above * (over - above / 2);
    }
}
