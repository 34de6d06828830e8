package io.ratelimited.core.several;

import io.ratelimited.core.Call;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import org.jspecify.annotations.Nullable;

/** One of several limits that must agree on a call. Its values do not change while {@link AllOf} decides. */
public interface Claim extends Call {

    /** Returns the limiter that decides. */
    RateLimiter limiter();

    /** Creates a claim without a priority. */
    static Claim of(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos) {
        return of(limiter, key, permits, maxWaitNanos, RateLimiter.NO_RANK);
    }

    /** {@link #of(RateLimiter, Object, long, long)} with a priority. */
    static Claim of(RateLimiter limiter, @Nullable Object key, long permits, long maxWaitNanos, int rank) {
        return of(limiter, key, permits, maxWaitNanos, rank, maxWaitNanos, false);
    }

    /** Creates a claim with all values, which {@link Call} describes. */
    static Claim of(
            RateLimiter limiter,
            @Nullable Object key,
            long permits,
            long maxWaitNanos,
            int rank,
            long patienceNanos,
            boolean exemptFromBlocks) {
        return new StatedClaim(limiter, key, permits, maxWaitNanos, rank, patienceNanos, exemptFromBlocks, false);
    }

    /** Takes the permits of this claim only. */
    default Reservation reserve() {
        return limiter().reserve(this);
    }
}
