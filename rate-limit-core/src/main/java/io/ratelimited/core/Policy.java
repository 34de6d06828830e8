package io.ratelimited.core;

import java.util.List;
import java.util.stream.Stream;

/** How a call over the limit is handled. */
public enum Policy {
    /** The call is rejected immediately with a {@link RateLimitExceededException}. */
    REJECT,
    /**
     * The call waits until it is admitted; a call that would have to wait longer than {@code maxWait} is rejected
     * immediately.
     */
    WAIT,
    /** A dry run: every call is admitted; the decision of the limit is counted and reported, but not enforced. */
    SHADOW,
    /**
     * Not a policy: the annotation {@code @RateLimited} leaves the choice to the properties. No limit has it, and {@link
     * #all} does not contain it.
     */
    DEFAULT;

    private static final List<Policy> ALL =
            Stream.of(values()).filter(each -> each != DEFAULT).toList();

    /** All policies of limits: every constant except {@link #DEFAULT}. */
    public static List<Policy> all() {
        return ALL;
    }
}
