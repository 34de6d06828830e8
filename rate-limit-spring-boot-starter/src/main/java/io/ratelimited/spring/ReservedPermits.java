package io.ratelimited.spring;

import io.ratelimited.spring.call.Admission;
import io.ratelimited.spring.call.LimitEnforcer;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Permits that {@link RateLimits#reserve} has taken for one call. They stay spent, unless the call turns out to cost
 * nothing and {@link #cancel} gives them back. Whichever of {@link #cancel} and {@link #close} comes first counts, and
 * only once. Thread-safe.
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

    /** The call has ended: its permits stay spent, and a call in flight no longer counts. */
    @Override
    public void close() {
        Admission reserved = admission.getAndSet(null);
        if (reserved != null) {
            reserved.end();
        }
    }
}
