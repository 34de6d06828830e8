package io.ratelimited.spring.internals.request;

/** How limits use the thread of a call. */
public enum ThreadUse {
    /** They decide at once. */
    NONE,
    /** They may block it until a server has replied. */
    REPLY,
    /** They may block it until the call may go. */
    WAIT
}
