package io.ratelimited.core.memory;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;

/** A reservation of permits over time, and the grant of its cell in the same object, so that a call allocates one. */
final class CellReservation extends Cell.Grant implements Reservation, WaitingRoom.Waiter {

    private static final int OPEN = 0;
    private static final int CANCELLED = 1;
    private static final int SETTLED = 2;

    private static final AtomicIntegerFieldUpdater<CellReservation> ENDED =
            AtomicIntegerFieldUpdater.newUpdater(CellReservation.class, "ended");
    private static final AtomicLongFieldUpdater<CellReservation> OUTCOME =
            AtomicLongFieldUpdater.newUpdater(CellReservation.class, "outcome");

    private final CellRateLimiter limiter;
    private final @Nullable Object key;

    private @Nullable Cell cell;
    private volatile long outcome;
    /** Whether {@link #cancel} or {@link #settle} has been called. */
    private volatile int ended;

    CellReservation(CellRateLimiter limiter, @Nullable Object key, long permits) {
        super(permits);
        this.limiter = limiter;
        this.key = key;
    }

    /** Records the cell that would grant the permits. Nothing is taken, so the reservation has no cell to give back to. */
    void asked(Cell asked, long read) {
        more(asked);
        time(read);
    }

    /** Records that no cell would grant the permits. */
    void refused(Decision decision) {
        more(decision);
        outcome = Cell.UNKNOWN;
    }

    /** The cell that would grant the permits; null when there is none. */
    @Nullable
    Cell asked() {
        return cell == null && more() instanceof Cell asked ? asked : null;
    }

    /** Returns the time that the clock showed when the cell was asked. */
    long read() {
        return time();
    }

    /** Returns whether {@link #read} comes from the given clock, which need not be read again then. */
    boolean hasRead(Ticker ticker, boolean calendar) {
        Cell asked = asked();
        return asked != null && limiter.ticker() == ticker && asked.parameters().followsCalendar() == calendar;
    }

    @Override
    public @Nullable Object key() {
        return key;
    }

    @Override
    long instant() {
        return outcome == 0 ? time() : UNKNOWN;
    }

    /**
     * Completes this reservation before its caller sees it, so that the outcome needs no barrier. The time is that of
     * {@link Ticker#nanos} at which a waiting call may go.
     */
    void decided(Cell decider, long result) {
        cell = decider;
        OUTCOME.lazySet(this, result);
        if (result > 0) {
            time(limiter.ticker().nanos() + result);
        }
    }

    /** Returns whether the call is admitted and need not wait. */
    boolean goesAtOnce() {
        return outcome == 0;
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
        return more() instanceof Decision refusal ? refusal : limiter.describe(key, outcome);
    }

    @Override
    public boolean await() throws InterruptedException {
        return outcome > 0 ? limiter.waitingRoom().await(time(), this) : outcome == 0;
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        return outcome > 0
                ? limiter.waitingRoom().awaitAsync(time(), this)
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
        if (permits() > 0 && cell != null && outcome >= 0 && ENDED.compareAndSet(this, OPEN, CANCELLED)) {
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
