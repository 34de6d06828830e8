package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.Permits;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** As {@link AllOf#refused(Decision[])}. Immutable. */
final class Rejection implements Joint {

    private final @Nullable Decision[] refusals;

    Rejection(@Nullable Decision[] refusals) {
        this.refusals = refusals;
    }

    @Override
    public Reservation member(int claim) {
        return this;
    }

    @Override
    public @Nullable Decision[] refusals() {
        return refusals.clone();
    }

    @Override
    public boolean isRefused() {
        return true;
    }

    @Override
    public long waitNanos() {
        return 0;
    }

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
        Permits.requireCharge(permits);
    }

    @Override
    public void release(End end) {
        // Nothing was taken.
    }
}
