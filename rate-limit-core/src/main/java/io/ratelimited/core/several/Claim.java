package io.ratelimited.core.several;

import io.ratelimited.core.Call;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import org.jspecify.annotations.Nullable;

/** One of several limits that must agree on a call. Its values do not change while {@link AllOf} decides. */
public interface Claim extends Call {

    /** The limiter that decides. */
    RateLimiter limiter();

    /** A claim of these values, without a class. */
    static Claim of(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos) {
        return of(limiter, key, permits, maxWaitNanos, RateLimiter.NO_RANK);
    }

    /** {@link #of(RateLimiter, Object, long, long)} of a class. */
    static Claim of(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos, int rank) {
        return of(limiter, key, permits, maxWaitNanos, rank, maxWaitNanos, false);
    }

    /** A claim of all values, as {@link Call} describes them. */
    static Claim of(
            RateLimiter limiter,
            @Nullable Object key,
            long permits,
            long maxWaitNanos,
            int rank,
            long patienceNanos,
            boolean exemptFromBlocks) {
        record Stated(
                RateLimiter limiter,
                @Nullable Object key,
                long permits,
                long maxWaitNanos,
                int rank,
                long patienceNanos,
                boolean isExemptFromBlocks)
                implements Claim {}
        return new Stated(limiter, key, permits, maxWaitNanos, rank, patienceNanos, exemptFromBlocks);
    }

    /** Takes the permits of this claim alone. */
    default Reservation reserve() {
        return limiter().reserve(this);
    }
}
