package io.ratelimited.core.internals.several;

import io.ratelimited.core.Call;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import org.jspecify.annotations.Nullable;

/**
 * A limiter in memory, which asks and takes in two steps where several limits decide a call: it looks up the key and reads
 * the clock once for both.
 */
public interface MemoryLimiter extends RateLimiter {

    /**
     * The first step: decides as {@link #reserve} would, and takes nothing.
     *
     * @param earlier from the first step of another limit on the same call, whose reading of the clock may serve again; null
     *     if there is none
     * @return the refusal, or data that only {@link #reserveAsked} uses
     */
    Reservation ask(@Nullable Object key, long permits, long maxWaitNanos, @Nullable Reservation earlier);

    /** {@link #ask(Object, long, long, Reservation)} for a call that states its class. */
    default Reservation ask(
            @Nullable Object key, long permits, long maxWaitNanos, int rank, @Nullable Reservation earlier) {
        return ask(key, permits, maxWaitNanos, earlier);
    }

    /** {@link #ask(Object, long, long, int, Reservation)} for a call as a value, with all that it states. */
    default Reservation ask(Call call, @Nullable Reservation earlier) {
        return ask(call.key(), call.permits(), call.maxWaitNanos(), call.rank(), earlier);
    }

    /** The number in {@link JointLocks} of the budget that was asked in the first step. */
    int lock(Reservation asked);

    /**
     * The second step, which its caller takes with the {@link #lock} held, or as the last charge of a call that does not wait
     * for it.
     *
     * @param asked from the first step with the same arguments, not refused
     * @return as {@link #reserve}; refused when another caller came between
     */
    Reservation reserveAsked(Reservation asked, long maxWaitNanos);
}
