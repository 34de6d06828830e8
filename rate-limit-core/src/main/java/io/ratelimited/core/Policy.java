package io.ratelimited.core;

import java.util.List;
import java.util.stream.Stream;

/** Handling of a call that is over its limit. */
public enum Policy {
    /** The call is rejected immediately with a {@link RateLimitExceededException}. */
    REJECT,
    /**
     * The call waits until its permits are due; one that could not be admitted within {@code maxWait} is rejected immediately.
     */
    WAIT,
    /** The call always goes ahead; the decision of the limit is counted and reported, never enforced. */
    SHADOW,
    /**
     * Not a policy: the annotation {@code @RateLimited} states none, and leaves it to the properties. No limit has it, and
     * {@link #all} does not list it.
     */
    DEFAULT;

    private static final List<Policy> ALL =
            Stream.of(values()).filter(each -> each != DEFAULT).toList();

    /** Every policy that a limit can have: all constants but {@link #DEFAULT}. */
    public static List<Policy> all() {
        return ALL;
    }
}
