package io.ratelimited.redis.internals.limiter;

/**
 * What a call wants of one limit. Immutable.
 *
 * @param maxWait the longest wait in nanoseconds that is possible now
 * @param patience the longest wait in nanoseconds that the policy of the limit allows; less than {@code maxWait} only of a
 *     claim that goes with an earlier one of its call
 * @param exempt whether the call is admitted although its key is blocked, and begins no block
 * @param undecided whether other limits of the call decide later
 */
record Wanted(long permits, long maxWait, long patience, boolean exempt, boolean undecided) {

    Wanted(long permits, long maxWait) {
        this(permits, maxWait, maxWait, false, false);
    }

    Wanted withPermits(long number) {
        return new Wanted(number, maxWait, patience, exempt, undecided);
    }
}
