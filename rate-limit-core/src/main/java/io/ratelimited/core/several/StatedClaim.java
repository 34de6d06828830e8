package io.ratelimited.core.several;

import io.ratelimited.core.RateLimiter;
import org.jspecify.annotations.Nullable;

/** A claim of all its values. */
record StatedClaim(
        RateLimiter limiter,
        @Nullable Object key,
        long permits,
        long maxWaitNanos,
        int rank,
        long patienceNanos,
        boolean isExemptFromBlocks,
        boolean isUndecided)
        implements Claim {

    /** A claim of a call whose other limits decide later. */
    static Claim undecided(Claim claim) {
        return new StatedClaim(
                claim.limiter(),
                claim.key(),
                claim.permits(),
                claim.maxWaitNanos(),
                claim.rank(),
                claim.patienceNanos(),
                claim.isExemptFromBlocks(),
                true);
    }
}
