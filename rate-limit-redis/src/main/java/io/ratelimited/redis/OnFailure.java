package io.ratelimited.redis;

/**
 * Handling of a call while Redis does not answer. The source of the decision is then {@code FALLBACK}, or {@code
 * UNAVAILABLE} under {@link #DENY}.
 */
public enum OnFailure {
    /** This process decides alone, with its share of the limit: the limit divided by the number of nodes. */
    LOCAL,
    /** Every call goes: the limit does not protect while Redis is away. */
    ALLOW,
    /** No call goes: for limits that guard against abuse, such as of passwords. */
    DENY,
    /** The call fails with {@link RedisUnavailableException}. */
    THROW
}
