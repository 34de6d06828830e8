package io.ratelimited.core;

import java.io.Serial;

/**
 * A call waited for its turn when its limiter was {@link RateLimiter#close closed}, as when the application stops, and is
 * not made; its permits have been refunded. No rejection: nothing was over a limit. Unchecked and cheap: it has no stack
 * trace.
 */
public final class RateLimiterClosedException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    /** For other waits of calls that end when the application stops. */
    public RateLimiterClosedException() {
        super("The rate limits have been closed: the call that waited for its turn is not made", null, false, false);
    }
}
