package io.ratelimited.spring;

/** How a call with a null or blank key is handled. */
public enum MissingKey {
    /** All such calls share one limit. */
    SHARED,
    /** The call is rejected. */
    DENY,
    /** The limit does not apply to the call. */
    SKIP
}
