package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.core.internals.several.MemoryLimiter;
import java.util.concurrent.CompletableFuture;

/**
 * Stands for a place that a second transaction takes when the first lets the call go ({@link TwoSteps}). Holds nothing.
 *
 * @param claim with a limiter in memory, or one that does not block
 * @param decision that was made when the limit was asked
 * @param asked the time of the limiter then, from which the longest wait counts
 */
record Later(Claim claim, Decision decision, long asked) implements Reservation {

    static Later of(Claim claim, Decision decision) {
        return new Later(claim, decision, nanos(claim));
    }

    private static long nanos(Claim claim) {
        return claim.limiter() instanceof MemoryLimiter memory
                ? memory.nanos()
                : ((JointRateLimiter) claim.limiter()).nanos();
    }

    /** The claim with the rest of its longest wait. */
    Claim rest() {
        long waited = nanos(claim) - asked;
        return Claim.of(
                claim.limiter(),
                claim.key(),
                claim.permits(),
                Math.max(0, claim.maxWaitNanos() - waited),
                claim.rank());
    }

    @Override
    public boolean isRefused() {
        return false;
    }

    @Override
    public long waitNanos() {
        return 0;
    }

    @Override
    public boolean mayWait() {
        return true;
    }

    /** False: it was not taken. */
    @Override
    public boolean await() {
        return false;
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        return CompletableFuture.completedFuture(false);
    }

    @Override
    public void cancel() {
        // Nothing was taken.
    }

    @Override
    public void settle(long permits) {
        throw Permits.nothingToCharge(claim.limiter().limit().name());
    }

    @Override
    public void release() {
        // Nothing was taken.
    }
}
