package io.ratelimited.spring;

/** The treatment of calls whose key is null or blank. */
public enum MissingKey {
    /** All such calls share one budget. */
    SHARED,
    /** The call is rejected. */
    DENY,
    /** The limit does not apply to the call. */
    SKIP
}
