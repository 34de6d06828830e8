package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.Permits;
import java.util.concurrent.CompletableFuture;

/**
 * Stands for a place that a second transaction takes when the first lets the call go ({@link TwoSteps}). Holds nothing.
 *
 * @param claim with the rest of its longest wait
 * @param decision that was made when the limit was asked
 */
record Later(Claim claim, Decision decision) implements Reservation {

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
