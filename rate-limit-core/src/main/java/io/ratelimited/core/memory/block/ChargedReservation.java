package io.ratelimited.core.memory.block;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/** A reservation under a limit that blocks by what calls are charged: the first settlement may be an offence. */
final class ChargedReservation implements Reservation {

    private final Reservation reservation;
    private final Runnable afterCharge;
    private final AtomicBoolean ended = new AtomicBoolean();

    /** @param afterCharge runs when the call was charged with 1 or more */
    ChargedReservation(Reservation reservation, Runnable afterCharge) {
        this.reservation = reservation;
        this.afterCharge = afterCharge;
    }

    @Override
    public boolean isRefused() {
        return reservation.isRefused();
    }

    @Override
    public long waitNanos() {
        return reservation.waitNanos();
    }

    @Override
    public boolean mayWait() {
        return reservation.mayWait();
    }

    @Override
    public Decision decision() {
        return reservation.decision();
    }

    @Override
    public boolean await() throws InterruptedException {
        return reservation.await();
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        return reservation.awaitAsync();
    }

    @Override
    public void cancel() {
        ended.set(true);
        reservation.cancel();
    }

    @Override
    public void settle(long permits) {
        Permits.requireCharge(permits);
        // A call that was crowded out while it waited has been refused.
        boolean charged = !reservation.isRefused() && ended.compareAndSet(false, true) && permits > 0;
        reservation.settle(permits);
        if (charged) {
            afterCharge.run();
        }
    }

    @Override
    public void release() {
        reservation.release();
    }
}
