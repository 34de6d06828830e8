package io.ratelimited.spring.fields;

import java.util.List;

/**
 * What a response states about the limits of the service that sent it.
 *
 * @param retryAfterNanos the length of a pause, in nanoseconds; 0 if the response states none
 * @param quotas what is left of the quotas that the response names, each name once
 */
public record ResponseLimits(long retryAfterNanos, List<Quota> quotas) {

    /** A response that states nothing about limits. */
    public static final ResponseLimits SILENT = new ResponseLimits(0, List.of());

    /** @throws IllegalArgumentException for a negative time */
    public ResponseLimits {
        require(retryAfterNanos >= 0, "retryAfterNanos", retryAfterNanos);
        quotas = List.copyOf(quotas);
    }

    private static void require(boolean valid, String name, long value) {
        if (!valid) {
            throw new IllegalArgumentException(name + " is invalid: " + value);
        }
    }

    /**
     * What is left of a quota.
     *
     * @param name name of the quota, unique in a response
     * @param quota permits of a whole window; {@link #UNKNOWN} if it is not stated
     * @param remaining permits that are left, 0 or more
     * @param windowNanos the length of a window, in nanoseconds; {@link #UNKNOWN} if it is not stated
     * @param resetNanos time until the whole quota is there again, in nanoseconds and more than 0
     * @param ofCalls whether a call takes one permit; otherwise it takes an unknown number, such as the tokens of a model
     */
    public record Quota(String name, long quota, long remaining, long windowNanos, long resetNanos, boolean ofCalls) {

        /** Stands for a quota or a window that the answer does not state. */
        public static final long UNKNOWN = -1;

        /** @throws IllegalArgumentException for a value out of its range */
        public Quota {
            require(quota >= UNKNOWN, "quota", quota);
            require(remaining >= 0, "remaining", remaining);
            require(windowNanos == UNKNOWN || windowNanos > 0, "windowNanos", windowNanos);
            require(resetNanos > 0, "resetNanos", resetNanos);
        }

        /**
         * Makes the rest of a quota of calls.
         *
         * @throws IllegalArgumentException for a value out of its range
         */
        public Quota(String name, long quota, long remaining, long windowNanos, long resetNanos) {
            this(name, quota, remaining, windowNanos, resetNanos, true);
        }
    }
}
