package io.ratelimited.spring;

import org.jspecify.annotations.Nullable;

/**
 * Permits that {@link RateLimits#reserve} has taken for one call. They stay spent, unless {@link #settle} charges the real
 * cost of the call, or {@link #cancel} gives them back. Whichever of the three comes first counts, and only once;
 * {@link #close} after {@link #settle} ends the call. Thread-safe.
 */
public interface ReservedPermits extends AutoCloseable {

    /**
     * Gives the permits back, as long as that cannot create any: {@link io.ratelimited.core.Reservation#cancel}. A call in
     * flight does not count any more. Without effect after {@link #close}.
     */
    void cancel();

    /**
     * Charges the cost of the call instead of the reserved permits: {@link io.ratelimited.core.Reservation#settle}. May be
     * called when the cost is known, before the call ends. Without effect after {@link #cancel} or {@link #close}.
     *
     * @param permits 0 or more
     * @throws IllegalArgumentException when the permits are negative
     * @throws UnsupportedOperationException when the limit counts calls in flight, which have nothing to charge
     */
    void settle(long permits);

    /**
     * Ends the call with the exception that it has thrown, from which {@link io.ratelimited.core.Algorithm#ADAPTIVE} learns: a
     * timeout is a sign of overload, other failures are none. {@link #close} without it is an answer.
     *
     * @param error null for an answer
     */
    default void end(@Nullable Throwable error) {
        close();
    }

    /** Ends the call: its permits stay spent, and it does not count as in flight any more. */
    @Override
    void close();
}
