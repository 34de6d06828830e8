package io.ratelimited.spring;

/**
 * Permits that {@link RateLimits#reserve} has taken for one call. They stay spent, unless {@link #settle} charges what the
 * call has really cost, or {@link #cancel} gives them back. Whichever of the three comes first counts, and only once;
 * {@link #close} after {@link #settle} ends the call. Thread-safe.
 */
public interface ReservedPermits extends AutoCloseable {

    /**
     * Gives the permits back, as long as that cannot create any: {@link io.ratelimited.core.Reservation#cancel}. A call
     * in flight no longer counts. Without effect after {@link #close}.
     */
    void cancel();

    /**
     * Charges what the call has cost instead of what was reserved: {@link io.ratelimited.core.Reservation#settle}. May be
     * called when the cost is known, before the call ends. Without effect after {@link #cancel} or {@link #close}.
     *
     * @param permits 0 or more
     * @throws IllegalArgumentException when the permits are negative
     * @throws UnsupportedOperationException when the limit counts calls in flight, which have nothing to charge
     */
    void settle(long permits);

    /** The call has ended: its permits stay spent, and a call in flight no longer counts. */
    @Override
    void close();
}
