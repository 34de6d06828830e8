package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A place under CONCURRENCY that is asked for when the other limits of the call let it go, so that no sleeper holds it.
 * Nothing is taken until then. {@link JointReservation} takes all of a call together. Thread-safe.
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

    /** The claim when the other limits have let the call go. */
    Claim claim() {
        return Claim.of(claim.limiter(), claim.key(), claim.permits(), maxWaitNanos);
    }

    /** Keeps what the limit has decided on {@link #claim}, unless the call was given up meanwhile. */
    void decided(Reservation reservation) {
        synchronized (this) {
            if (!cancelled) {
                taken = reservation;
                return;
            }
        }
        reservation.cancel();
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

    /** False where another place of the call was refused, or the call was given up, before this one was taken. */
    @Override
    public boolean await() throws InterruptedException {
        Reservation place = taken();
        return place != null && place.await();
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        Reservation place = taken();
        return place == null ? CompletableFuture.completedFuture(false) : place.awaitAsync();
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
