package io.ratelimited.core.memory;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.jspecify.annotations.Nullable;

/** A reservation of permits over time. It is the grant of its cell, too, so that a call allocates one object. */
final class CellReservation extends Grant implements Reservation, WaitingRoom.Waiter {

    private static final int OPEN = 0;
    private static final int CANCELLED = 1;
    private static final int SETTLED = 2;

    private static final AtomicIntegerFieldUpdater<CellReservation> ENDED =
            AtomicIntegerFieldUpdater.newUpdater(CellReservation.class, "ended");

    private final CellRateLimiter limiter;
    private final @Nullable Object key;

    private @Nullable Cell cell;
    private volatile long outcome;
    /** When the call may go: {@link Ticker#nanos}. */
    private long deadline;
    /** Whether {@link #cancel} or {@link #settle} has been called. */
    private volatile int ended;

    CellReservation(CellRateLimiter limiter, @Nullable Object key, long permits) {
        super(permits);
        this.limiter = limiter;
        this.key = key;
    }

    /** Completes this reservation before its caller sees it. */
    void decided(Cell decider, long result) {
        cell = decider;
        outcome = result;
        deadline = result > 0 ? limiter.ticker().nanos() + result : 0;
    }

    @Override
    public boolean isRefused() {
        return outcome < 0;
    }

    @Override
    public long waitNanos() {
        return Math.max(0, outcome);
    }

    @Override
    public Decision decision() {
        return limiter.describe(key, outcome);
    }

    @Override
    public boolean await() throws InterruptedException {
        return outcome > 0 ? limiter.waitingRoom().await(deadline, this) : outcome == 0;
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        return outcome > 0
                ? limiter.waitingRoom().awaitAsync(deadline, this)
                : CompletableFuture.completedFuture(outcome == 0);
    }

    @Override
    public boolean mayGo() {
        return ended != CANCELLED;
    }

    @Override
    public void crowdOut() {
        long wait = outcome;
        cancel();
        outcome = ~wait;
    }

    @Override
    public void cancel() {
        if (cell != null && outcome >= 0 && ENDED.compareAndSet(this, OPEN, CANCELLED)) {
            limiter.giveBack(key, cell, this, permits());
        }
    }

    @Override
    public void settle(long cost) {
        long excess = Permits.requireCharge(cost) - permits();
        if (cell == null || outcome < 0 || !ENDED.compareAndSet(this, OPEN, SETTLED)) {
            return;
        }
        if (excess > 0) {
            limiter.charge(key, excess);
        } else if (excess < 0) {
            limiter.giveBack(key, cell, this, -excess);
        }
    }

    @Override
    public void release() {
        // The permits of a call that counts over time stay taken when it ends.
    }
}
