package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;

/** Chooses the cell of an algorithm. */
final class CellFactory {

    private CellFactory() {}

    /**
     * The parameters of the cells of a limit that counts over time.
     *
     * @param now monotonic nanoseconds from which time is counted
     * @param base monotonic nanoseconds at which the slots of windows are aligned, the same after a change of the limit
     */
    static CellParameters parameters(Limit limit, long now, long base) {
        CellParameters budget = budget(limit, now, base);
        return limit.block() == null ? budget : new BlockCell.Parameters(limit, budget);
    }

    private static CellParameters budget(Limit limit, long now, long base) {
        if (limit.isClosed() || limit.isUnlimited()) {
            return new Constant.Parameters(limit);
        }
        return switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA, SMOOTH_BURSTY, LEAKY_BUCKET -> new VirtualTime.Parameters(limit, now);
            case WARM_UP -> new WarmUp.Parameters(limit);
            case FIXED_WINDOW -> new FixedWindow.Parameters(limit);
            case SLIDING_WINDOW -> new SlidingWindow.Parameters(limit, base);
            case SLIDING_LOG -> new SlidingLog.Parameters(limit);
            case CONCURRENCY, ADAPTIVE, DEFAULT ->
                throw new IllegalArgumentException("calls in flight are not counted over time: " + limit);
        };
    }
}
