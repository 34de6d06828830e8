package io.ratelimited.spring.fields;

import java.util.List;
import java.util.Objects;

/**
 * The rate limit headers of a response. Immutable.
 *
 * @param retryAfterNanos duration of a pause, in nanoseconds; 0 if the response has none
 * @param quotas the quotas in the response, with unique names
 */
public record ResponseLimits(long retryAfterNanos, List<Quota> quotas) {

    /** A response without rate limit headers. */
    public static final ResponseLimits SILENT = new ResponseLimits(0, List.of());

    /** @throws IllegalArgumentException if the time is negative */
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
     * A quota and its remaining permits. Immutable.
     *
     * @param name name of the quota, unique in a response
     * @param quota permits of a whole window; {@link #UNKNOWN} if the response does not have it
     * @param remaining remaining permits, 0 or more
     * @param windowNanos length of a window, in nanoseconds; {@link #UNKNOWN} if the response does not have it
     * @param resetNanos time until the whole quota is available again, in nanoseconds, more than 0
     * @param ofCalls whether a call takes one permit; otherwise it takes an unknown number, such as the tokens of a model
     */
    public record Quota(String name, long quota, long remaining, long windowNanos, long resetNanos, boolean ofCalls) {

        /** Value of a quota or window that the response does not have. */
        public static final long UNKNOWN = -1;

        /** @throws IllegalArgumentException if a value is out of range */
        public Quota {
            Objects.requireNonNull(name, "name");
            require(quota >= UNKNOWN, "quota", quota);
            require(remaining >= 0, "remaining", remaining);
            require(windowNanos == UNKNOWN || windowNanos > 0, "windowNanos", windowNanos);
            require(resetNanos > 0, "resetNanos", resetNanos);
        }

        /**
         * Creates a quota of calls.
         *
         * @throws IllegalArgumentException if a value is out of range
         */
        public Quota(String name, long quota, long remaining, long windowNanos, long resetNanos) {
            this(name, quota, remaining, windowNanos, resetNanos, true);
        }
    }
}
