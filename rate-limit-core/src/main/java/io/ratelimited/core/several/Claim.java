package io.ratelimited.core.several;

import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import org.jspecify.annotations.Nullable;

/** One of several limits that must agree on a call. Its values do not change while {@link AllOf} decides. */
public interface Claim {

    /** The limiter that decides. */
    RateLimiter limiter();

    /** The key whose budget the call uses; null for a limit without keys. */
    @Nullable
    Object key();

    /** The number of permits; 0 asks for nothing. */
    long permits();

    /** The longest wait in nanoseconds that this limit allows, inclusive; 0 for none. */
    long maxWaitNanos();

    /** The number of the class of the call, as {@link RateLimiter#reserve(Object, long, long, int)} takes it. */
    default int rank() {
        return RateLimiter.NO_RANK;
    }

    /** A claim of these values, without a class. */
    static Claim of(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos) {
        record Stated(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos) implements Claim {}
        return new Stated(limiter, key, permits, maxWaitNanos);
    }

    /** {@link #of(RateLimiter, Object, long, long)} of a class. */
    static Claim of(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos, int rank) {
        record Ranked(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos, int rank)
                implements Claim {}
        return new Ranked(limiter, key, permits, maxWaitNanos, rank);
    }

    /** Takes the permits of this claim alone. */
    default Reservation reserve() {
        return limiter().reserve(key(), permits(), maxWaitNanos(), rank());
    }
}
