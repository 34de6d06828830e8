package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import java.util.concurrent.CompletableFuture;

/** Permits that come no later than those of another claim of the call: it waits for that one, which waits longer. */
record WithAnother(Reservation own) implements Reservation {

    @Override
    public boolean isRefused() {
        return own.isRefused();
    }

    @Override
    public long waitNanos() {
        return own.waitNanos();
    }

    @Override
    public boolean mayWait() {
        return false;
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
