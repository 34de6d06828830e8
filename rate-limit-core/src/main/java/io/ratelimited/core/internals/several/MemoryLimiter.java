package io.ratelimited.core.internals.several;

import io.ratelimited.core.Call;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import org.jspecify.annotations.Nullable;

/**
 * A limiter in memory, which checks and charges in two steps if a call has several limits: it looks up the key and reads the
 * clock once for both.
 */
public interface MemoryLimiter extends RateLimiter {

    /**
     * The first step: decides as {@link #reserve} would, and takes nothing.
     *
     * @param earlier from the first step of another limit on the same call, whose time can be used again; null if there is
     *     none
     * @return the rejection, or data that only {@link #reserveAsked} uses
     */
    Reservation ask(Call call, @Nullable Reservation earlier);

    /** Returns the time of the limiter: {@link Ticker#nanos}. */
    long nanos();

    /** Returns the permits that calls in flight use, which a change may have made more than the limit; 0 for a limit over time. */
    default long inFlight(@Nullable Object key) {
        return 0;
    }

    /** Returns the number in {@link JointLocks} of the key of the first step. */
    int lock(Reservation asked);

    /**
     * The second step. Its caller holds the {@link #lock}, or this is the last charge of a call that does not wait for it.
     *
     * @param asked from the first step with the same arguments, not rejected
     * @return as {@link #reserve}; rejected if another caller has used the permits in between
     */
    Reservation reserveAsked(Reservation asked, long maxWaitNanos);
}
