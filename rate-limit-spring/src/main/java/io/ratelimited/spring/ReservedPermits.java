package io.ratelimited.spring;

import org.jspecify.annotations.Nullable;

/**
 * Permits that {@link RateLimits#reserve} has taken for one call. They stay charged, unless {@link #settle} charges the
 * actual cost of the call, or {@link #cancel} refunds them. Only the first of these methods and {@link #close} has an effect
 * on the permits; {@link #close} after {@link #settle} ends the call. Thread-safe.
 */
public interface ReservedPermits extends AutoCloseable {

    /**
     * Refunds the permits, unless that would add permits: {@link io.ratelimited.core.Reservation#cancel}. A call in flight no
     * longer counts. Has no effect after {@link #settle} and {@link #close}.
     */
    void cancel();

    /**
     * Charges the actual cost of the call instead of the reserved permits: {@link io.ratelimited.core.Reservation#settle}.
     * Can be called before the call ends, when the cost is known. Has no effect after {@link #cancel} or {@link #close}.
     *
     * @param permits 0 or more
     * @throws IllegalArgumentException if the permits are negative
     * @throws UnsupportedOperationException if the limit counts calls in flight, which have no other cost
     */
    void settle(long permits);

    /**
     * Ends the call with its exception, for {@link io.ratelimited.core.Algorithm#ADAPTIVE}: a timeout counts as overload,
     * other failures do not. {@link #close} without this method means a response.
     *
     * @param error null for a response
     */
    default void end(@Nullable Throwable error) {
        close();
    }

    /** Ends the call: its permits stay charged, and it no longer counts as in flight. */
    @Override
    void close();
}
