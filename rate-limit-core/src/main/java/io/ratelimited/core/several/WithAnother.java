package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import java.util.concurrent.CompletableFuture;

/**
 * The permits of a claim that goes with another one of its call, and does not wait itself.
 *
 * @param waitNanos no longer than the other one waits
 */
record WithAnother(Reservation own, long waitNanos) implements Reservation {

    /** As {@link AllOf#goesWithEarlier}. */
    static Reservation earlier(Reservation own) {
        return own.mayWait() ? new WithAnother(own, 0) : own;
    }

    /** The permits come no later than those of another claim, which waits longer. */
    static Reservation longer(Reservation own) {
        return own.mayWait() ? new WithAnother(own, own.waitNanos()) : own;
    }

    @Override
    public boolean isRefused() {
        return own.isRefused();
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
