package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;

/**
 * What an algorithm means, written as plainly as can be and in exact arithmetic: the model its cell is compared with. A
 * twin is told which calls were granted, so that a cell may differ from it by a rounding without the two drifting apart.
 */
interface Twin {

    /** As {@link Cell#peek}: the wait, or the complement of the retry-after, or {@link Cell#NEVER}. */
    long decide(long permits, long now, long maxWait);

    /** The call was granted. */
    void grant(long permits, long now);

    /** Permits of the grant with this number, counted from 0 with the charges, were given back. */
    void giveBack(int grant, long permits, long now);

    /** Permits were charged that had been used already; counted among the grants. */
    void charge(long permits, long now);

    /** Permits that can be had at once. */
    long remaining(long now);

    /** The twin of a limit made at a time. */
    static Twin of(Limit limit, long now) {
        return switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA, SMOOTH_BURSTY, LEAKY_BUCKET -> new BucketTwin(limit, now);
            case WARM_UP -> new WarmUpTwin(limit, now);
            case FIXED_WINDOW -> new WindowTwin(limit, now);
            case SLIDING_WINDOW -> new SlotsTwin(limit, now);
            case SLIDING_LOG -> new LogTwin(limit);
            case CONCURRENCY, ADAPTIVE, DEFAULT ->
                throw new IllegalArgumentException("calls in flight have no timeline");
        };
    }

    /** The decision on a call that has to wait so long. */
    static long outcome(long wait, long maxWait) {
        return wait > maxWait ? ~(wait - maxWait) : wait;
    }
}
