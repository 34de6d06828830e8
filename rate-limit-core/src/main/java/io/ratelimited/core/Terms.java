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
    /** What a key begins with that was never seen, while it is not whole; null when every key begins whole. */
    private @Nullable Cell untouched;

    Terms(Limit limit) {
        this.limit = limit;
        this.followsCalendar = limit.algorithm() == Algorithm.FIXED_WINDOW;
    }

    /**
     * The terms of a limit.
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

    /** A cell that has seen no call: as it would be now, had it been there since the limit was made. */
    final Cell fresh(long now) {
        Cell begun = untouched;
        return begun == null || begun.nanosToFresh(now) == 0 ? whole(now) : begun.copy();
    }

    /** A cell that has been idle for long. */
    abstract Cell whole(long now);

    /** Called before use: what every key begins with. */
    final void beginWith(Cell cell) {
        untouched = cell;
    }

    /** Called once, before use: fresh cells have no stored permits, where the algorithm stores any. */
    void startEmpty() {}

    /** Called once, before use, on terms that replace others: a key that was never seen begins as if it had been there. */
    final void inherit(Terms before, long leftAt, long resumedAt) {
        if (untouched != null || before.untouched != null) {
            untouched = resume(before.fresh(leftAt).leave(leftAt), resumedAt);
        }
    }

    /** A cell that goes on where a cell of other terms has left. */
    abstract Cell resume(Budget budget, long now);

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
