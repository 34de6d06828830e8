package io.ratelimited.spring;

import io.ratelimited.core.Permits;
import io.ratelimited.spring.call.Admission;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Permits that {@link RateLimits#reserve} has taken for one call. They stay spent, unless {@link #settle} charges what the
 * call has really cost, or {@link #cancel} gives them back. Whichever of the three comes first counts, and only once;
 * {@link #close} after {@link #settle} ends the call. Thread-safe.
 */
public final class ReservedPermits implements AutoCloseable {

    /** Null when it is over, or when nothing is limited. */
    private final AtomicReference<@Nullable Admission> admission;

    ReservedPermits(@Nullable Admission admission) {
        this.admission = new AtomicReference<>(admission);
    }

    /**
     * Gives the permits back, as long as that cannot create any: {@link io.ratelimited.core.Reservation#cancel}. A call
     * in flight no longer counts. Without effect after {@link #close}.
     */
    public void cancel() {
        Admission reserved = admission.getAndSet(null);
        if (reserved != null) {
            reserved.cancel();
        }
    }

    /**
     * Charges what the call has cost instead of what was reserved: {@link io.ratelimited.core.Reservation#settle}. May be
     * called when the cost is known, before the call ends. Without effect after {@link #cancel} or {@link #close}.
     *
     * @param permits 0 or more
     * @throws IllegalArgumentException when the permits are negative
     * @throws UnsupportedOperationException when the limit counts calls in flight, which have nothing to charge
     */
    public void settle(long permits) {
        Permits.requireCharge(permits);
        Admission reserved = admission.get();
        if (reserved != null) {
            reserved.settle(permits);
        }
    }

    /** The call has ended: its permits stay spent, and a call in flight no longer counts. */
    @Override
    public void close() {
        Admission reserved = admission.getAndSet(null);
        if (reserved != null) {
            reserved.end();
        }
    }
}
