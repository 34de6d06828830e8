package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import java.util.concurrent.CompletableFuture;

/** The permits of a claim that {@linkplain AllOf#goesWithEarlier goes with an earlier one} of its call: does not wait itself. */
record WithEarlier(Reservation own) implements Reservation {

    static Reservation of(Reservation own) {
        return own.mayWait() ? new WithEarlier(own) : own;
    }

    @Override
    public boolean isRefused() {
        return own.isRefused();
    }

    @Override
    public long waitNanos() {
        return 0;
    }

    @Override
    public Decision decision() {
        return own.decision();
    }

    @Override
    public boolean await() {
        return true;
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        return CompletableFuture.completedFuture(true);
    }

    @Override
    public void cancel() {
        own.cancel();
    }

    @Override
    public void settle(long permits) {
        own.settle(permits);
    }

    @Override
    public void settle(long permits, boolean mayBlock) {
        own.settle(permits, mayBlock);
    }

    @Override
    public void keep() {
        own.keep();
    }

    @Override
    public void release() {
        own.release();
    }
}
