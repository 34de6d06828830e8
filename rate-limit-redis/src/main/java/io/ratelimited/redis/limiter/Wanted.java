package io.ratelimited.redis.limiter;

/**
 * What a call wants of one limit. Immutable.
 *
 * @param maxWait the longest wait in nanoseconds that is possible now
 * @param patience the longest wait in nanoseconds that the policy of the limit allows, at least {@code maxWait}
 * @param exempt whether the call is admitted although its key is blocked, and begins no block
 */
record Wanted(long permits, long maxWait, long patience, boolean exempt) {

    Wanted(long permits, long maxWait) {
        this(permits, maxWait, maxWait, false);
    }

    Wanted withPermits(long number) {
        return new Wanted(number, maxWait, patience, exempt);
    }
}
