package io.ratelimited.core;

/** What becomes of a call that is over its limit. */
public enum Policy {
    /** The call is refused at once with a {@link RateLimitExceededException}. */
    REJECT,
    /**
     * The call sleeps until its permits are due; one that could not go within {@code maxWait} is refused at once,
     * without sleeping.
     */
    WAIT,
    /** The call always goes ahead; the decision of the limit is counted and reported, never enforced. */
    SHADOW
}
