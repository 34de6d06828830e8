package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A place under CONCURRENCY that is asked for when the other limits of the call let it go, so that no sleeper holds it.
 * Nothing is taken until then.
 */
final class LaterPlace implements Reservation {

    private final Claim claim;
    private final long maxWaitNanos;
    private final Decision asked;
    /** Guarded by this. */
    private @Nullable Reservation taken;
    /** Guarded by this. */
    private boolean cancelled;

    /**
     * @param maxWaitNanos the rest of the longest wait
     * @param asked the decision that was made when the limit was asked
     */
    LaterPlace(Claim claim, long maxWaitNanos, Decision asked) {
        this.claim = claim;
        this.maxWaitNanos = maxWaitNanos;
        this.asked = asked;
    }

    private synchronized @Nullable Reservation taken() {
        return taken;
    }

    /** Keeps the reservations, unless the call was given up meanwhile. */
    private boolean keep(Reservation reservation) {
        synchronized (this) {
            if (!cancelled) {
                taken = reservation;
                return true;
            }
        }
        reservation.cancel();
        return false;
    }

    @Override
    public boolean isRefused() {
        Reservation place = taken();
        return place != null && place.isRefused();
    }

    @Override
    public long waitNanos() {
        return 0;
    }

    @Override
    public boolean mayWait() {
        Reservation place = taken();
        return place == null || place.mayWait();
    }

    @Override
    public Decision decision() {
        Reservation place = taken();
        return place == null ? asked : place.decision();
    }

    @Override
    public boolean await() throws InterruptedException {
        Reservation known = taken();
        if (known != null) {
            return known.await();
        }
        Reservation place = claim.limiter().reserve(claim.key(), claim.permits(), maxWaitNanos);
        return keep(place) && place.await();
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        Reservation known = taken();
        if (known != null) {
            return known.awaitAsync();
        }
        try {
            return claim.limiter()
                    .reserveAsync(claim.key(), claim.permits(), maxWaitNanos)
                    .toCompletableFuture()
                    .thenCompose(place -> keep(place) ? place.awaitAsync() : CompletableFuture.completedFuture(false));
        } catch (RuntimeException | Error ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    @Override
    public void cancel() {
        Reservation place;
        synchronized (this) {
            cancelled = true;
            place = taken;
        }
        if (place != null) {
            place.cancel();
        }
    }

    @Override
    public void settle(long permits) {
        throw Permits.nothingToCharge(claim.limiter().limit());
    }

    @Override
    public void release() {
        Reservation place = taken();
        if (place != null) {
            place.release();
        }
    }
}
