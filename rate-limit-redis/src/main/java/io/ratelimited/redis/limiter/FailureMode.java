package io.ratelimited.redis.limiter;

/** How a limit decides while Redis does not; the names are those of {@code OnFailure}, which users set. */
public enum FailureMode {
    LOCAL,
    ALLOW,
    DENY,
    THROW
}
