package io.ratelimited.core;

import java.io.Serial;

/**
 * A call was waiting when its limiter was {@link RateLimiter#close closed}, for example because the application stops. The
 * call is not made, and its permits are refunded. This is not a rejection: the call was not over the limit. Cheap, because it
 * has no stack trace.
 */
public final class RateLimiterClosedException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    /** For other waits that end when the application stops. */
    public RateLimiterClosedException() {
        super("The rate limits were closed while the call waited: the call is not made", null, false, false);
    }
}
