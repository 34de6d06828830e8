package io.ratelimited.spring.client;

import java.util.List;

/**
 * What an answer says about the limits of the side that sent it.
 *
 * @param retryAfterNanos how long to pause, in nanoseconds; 0 if the answer does not say
 * @param quotas what is left of the quotas that the answer names, each name once
 */
record Answer(long retryAfterNanos, List<Quota> quotas) {

    /** An answer that says nothing about limits. */
    static final Answer SILENT = new Answer(0, List.of());

    /**
     * What is left of a quota.
     *
     * @param name tells the quotas of one answer apart
     * @param quota permits of a whole window; {@link #UNKNOWN} if it is not said
     * @param remaining permits that are left, 0 or more
     * @param windowNanos the length of a window, in nanoseconds; {@link #UNKNOWN} if it is not said
     * @param resetNanos time until the whole quota is there again, in nanoseconds and more than 0
     */
    record Quota(String name, long quota, long remaining, long windowNanos, long resetNanos) {

        static final long UNKNOWN = -1;
    }
}
