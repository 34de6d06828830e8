package io.ratelimited.spring.limit;

import org.jspecify.annotations.Nullable;

/**
 * The threads that serve requests. Where they are a bounded pool, callers that sleep in them keep all other requests out.
 *
 * @param number 0 where there are as many as needed
 */
public record RequestThreads(int number) {

    /** As many as needed. */
    public static final RequestThreads UNBOUNDED = new RequestThreads(0);

    private static final int DEFAULT_MAX_WAITING = 1000;

    /** How many may sleep so that half of the threads are left for other requests. */
    public int half() {
        return number == 0 ? Integer.MAX_VALUE : Math.max(1, number / 2);
    }

    /** The default of {@code max-waiting} that leaves half of the threads; null if that of the core does. */
    @Nullable
    Integer maxWaiting() {
        return half() < DEFAULT_MAX_WAITING ? half() : null;
    }
}
