package io.ratelimited.core;

import org.jspecify.annotations.Nullable;

/**
 * One of several limits that must agree on a call.
 *
 * @param limiter decides
 * @param key whose budget; null for a limit without keys
 * @param permits at least 1
 * @param maxWaitNanos the longest wait this limit allows, inclusive; 0 for none
 */
public record Claim(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos) {

    /** Takes the permits of this claim alone. */
    public Reservation reserve() {
        return limiter.reserve(key, permits, maxWaitNanos);
    }

    /** The decision that {@link #reserve} would make. */
    public Decision peek() {
        return limiter.peek(key, permits, maxWaitNanos);
    }
}
