package io.ratelimited.core;

import org.jspecify.annotations.Nullable;

/**
 * A limit in the units of its algorithm: what all cells of the limit share. Immutable, but for the link to the terms
 * that replace it.
 */
abstract class Terms {

    private final Limit limit;
    private final boolean followsCalendar;

    private volatile @Nullable Change change;

    Terms(Limit limit) {
        this.limit = limit;
        this.followsCalendar = limit.algorithm() == Algorithm.FIXED_WINDOW;
    }

    /**
     * The terms of a limit. A new algorithm is one file and one line here.
     *
     * @param now monotonic nanoseconds, from which time is counted
     */
    static Terms of(Limit limit, long now) {
        Rate rate = limit.rate();
        if (limit.algorithm() != Algorithm.CONCURRENCY && (rate.isClosed() || rate.isUnlimited())) {
            return new Constant.Terms(limit, rate.isUnlimited());
        }
        return switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA, SMOOTH_BURSTY, LEAKY_BUCKET -> new VirtualTime.Terms(limit, now);
            case WARM_UP -> new WarmUp.Terms(limit);
            case FIXED_WINDOW -> new FixedWindow.Terms(limit);
            case SLIDING_WINDOW -> new SlidingWindow.Terms(limit, now);
            case SLIDING_LOG -> new SlidingLog.Terms(limit);
            case CONCURRENCY -> new Concurrency.Terms(limit);
        };
    }

    final Limit limit() {
        return limit;
    }

    /** Whether cells want wall-clock time instead of monotonic time. */
    final boolean followsCalendar() {
        return followsCalendar;
    }

    /** A cell that has seen no call. */
    abstract Cell fresh(long now);

    /**
     * Called once, before use, on terms that replace others: what a key that was never seen would hand over. For
     * algorithms whose fresh cell is not a full one.
     */
    void inherit(Cell.Budget untouched, long now) {}

    /** Called once, before use: fresh cells have no stored permits, where the algorithm stores any. */
    void startEmpty() {}

    /** A cell that goes on where a cell of other terms has left. */
    abstract Cell resume(Cell.Budget budget, long now);

    /** How long after its last call without debt a cell equals a fresh one again, in nanoseconds. */
    abstract long idleNanos();

    /** Ends these terms: cells follow the link when next used. */
    final void replaceBy(Terms next, long leftAt, long resumedAt) {
        change = new Change(next, leftAt, resumedAt);
    }

    final @Nullable Change change() {
        return change;
    }

    /**
     * The replacement of terms.
     *
     * @param leftAt when, in the time of the old terms
     * @param resumedAt when, in the time of the new terms
     */
    record Change(Terms next, long leftAt, long resumedAt) {}
}
