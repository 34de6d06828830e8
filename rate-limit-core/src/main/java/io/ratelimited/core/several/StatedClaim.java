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

    /** A claim with other permits, or of a call whose other limits decide later. */
    StatedClaim(Claim claim, long permits, boolean isUndecided) {
        this(
                claim.limiter(),
                claim.key(),
                permits,
                claim.maxWaitNanos(),
                claim.rank(),
                claim.patienceNanos(),
                claim.isExemptFromBlocks(),
                isUndecided);
    }

    /** A claim with another maximum wait. */
    StatedClaim(Claim claim, long maxWaitNanos) {
        this(
                claim.limiter(),
                claim.key(),
                claim.permits(),
                maxWaitNanos,
                claim.rank(),
                claim.patienceNanos(),
                claim.isExemptFromBlocks(),
                claim.isUndecided());
    }
}
