package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import java.util.concurrent.CompletableFuture;

/** A decision for which nothing was taken. */
record FixedReservation(Decision decision) implements Reservation {

    @Override
    public boolean isRefused() {
        return !decision.admitted();
    }

    @Override
    public long waitNanos() {
        return 0;
    }

    @Override
    public boolean await() {
        return decision.admitted();
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        return CompletableFuture.completedFuture(decision.admitted());
    }

    @Override
    public void cancel() {
        // Nothing was taken.
    }

    @Override
    public void release() {
        // Nothing is counted.
    }
}
