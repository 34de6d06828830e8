package io.ratelimited.redis;

/**
 * How a call is handled while Redis is unavailable. The source of the decision is then {@code FALLBACK}, or {@code
 * UNAVAILABLE} under {@link #DENY}.
 */
public enum OnFailure {
    /** This process enforces its share on its own: the limit divided by the number of nodes. */
    LOCAL,
    /** Every call is admitted, so the limit has no effect. */
    ALLOW,
    /** Every call is rejected: for limits against abuse, such as password guessing. */
    DENY,
    /** The call fails with {@link RedisUnavailableException}. */
    THROW
}
