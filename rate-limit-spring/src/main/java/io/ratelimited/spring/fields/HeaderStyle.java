package io.ratelimited.spring.fields;

/** Which rate limit headers responses have. */
public enum HeaderStyle {
    /** RateLimit and RateLimit-Policy of the IETF draft. */
    STANDARD,
    /** X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. */
    LEGACY,
    /** None. */
    NONE
}
