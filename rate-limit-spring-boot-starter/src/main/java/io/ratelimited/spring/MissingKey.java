package io.ratelimited.spring;

/** What becomes of a call whose key is null or blank. */
public enum MissingKey {
    /** All such calls share one budget. */
    SHARED,
    /** The call is refused. */
    DENY,
    /** The limit does not apply to the call. */
    SKIP
}
