package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.core.internals.several.HeldPermits;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;

/** A reservation of permits over time, and the grant of its cell in the same object, so that a call allocates one. */
class CellReservation extends Cell.Grant implements Reservation, WaitingRoom.Waiter {

    private static final int OPEN = 0;
    private static final int CANCELLED = 1;
    private static final int SETTLED = 2;
    /** Ended and charged with its permits; it may still be settled. */
    private static final int RELEASED = 3;

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

    /** Records the cell that would grant the permits. Nothing is taken, so the reservation has no cell to refund to. */
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

    /** As {@link io.ratelimited.core.Call#patienceNanos}; {@link CellRateLimiter#UNJUDGED} if the call starts no block. */
    long patience() {
        return 0;
    }

    /** A reservation of the same call, for which no cell has been asked. */
    CellReservation again() {
        return new CellReservation(limiter, key, permits());
    }

    /** Records when the permits were reserved, in the time of the cell. */
    void reservedAt(long now) {}

    /** {@link Cell.Grant#UNKNOWN} where it does not matter. */
    long reservedAt() {
        return UNKNOWN;
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
     * {@link Ticker#nanos} at which a waiting call can proceed.
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
        int before = cell == null || outcome < 0 ? CANCELLED : claimEnd(CANCELLED);
        if (cell != null && before != CANCELLED && permits() > 0) {
            limiter.giveBack(key, cell, this, permits());
            if (before == RELEASED) {
                charged(cell, -permits(), 0, CellRateLimiter.UNJUDGED);
            }
        }
    }

    @Override
    public void settle(long cost) {
        settle(cost, true);
    }

    @Override
    public void settle(long cost, boolean mayBlock) {
        long excess = Permits.requireCharge(cost) - permits();
        Cell charged = cell;
        int before = charged == null || outcome < 0 ? CANCELLED : claimEnd(SETTLED);
        if (charged == null || before == CANCELLED) {
            return;
        }
        if (excess > 0) {
            limiter.charge(key, excess);
        } else if (excess < 0) {
            limiter.giveBack(key, charged, this, -excess);
        }
        long known = before == RELEASED ? permits() : 0;
        charged(
                charged,
                Math.min(cost, permits()) - known,
                Math.max(0, excess),
                mayBlock && cost > 0 ? patience() : CellRateLimiter.UNJUDGED);
    }

    /** Tells what the call was charged, where its budget does not show that. */
    private void charged(Cell granted, long reserved, long excess, long patience) {
        if (granted instanceof BlockCell block && block.countsOwn()) {
            long at = reservedAt();
            boolean calendar = block.parameters().followsCalendar();
            limiter.charged(key, new Charges.End(reserved, excess, at, at + Math.max(0, outcome), calendar), patience);
        }
    }

    /** Claims the end of the call. Returns OPEN or RELEASED, or CANCELLED if it has been claimed before. */
    private int claimEnd(int end) {
        return ENDED.compareAndSet(this, OPEN, end)
                ? OPEN
                : ENDED.compareAndSet(this, RELEASED, end) ? RELEASED : CANCELLED;
    }

    @Override
    public void release() {
        // The permits of a call that counts over time stay taken when it ends. A block needs to know that it has ended.
        if (cell instanceof BlockCell block
                && block.countsOwn()
                && outcome >= 0
                && ENDED.compareAndSet(this, OPEN, RELEASED)) {
            charged(block, permits(), 0, CellRateLimiter.UNJUDGED);
        }
    }

    /** A reservation under a limit that blocks keys. */
    static final class Patient extends CellReservation implements HeldPermits {

        private final long patience;
        private final Object of;
        private long reservedAt = UNKNOWN;
        /** Whether another limit may yet reject the call. */
        private volatile boolean undecided;

        Patient(CellRateLimiter limiter, Object key, long permits, long patience) {
            super(limiter, key, permits);
            this.patience = patience;
            this.of = key;
        }

        @Override
        public void hold() {
            if (permits() > 0) {
                undecided = true;
                super.limiter.hold(of, this);
            }
        }

        @Override
        CellReservation again() {
            return new Patient(super.limiter, of, permits(), patience);
        }

        private void decide(boolean givesBack) {
            if (undecided) {
                undecided = false;
                super.limiter.decide(of, this, givesBack);
            }
        }

        @Override
        public void keep() {
            decide(false);
        }

        @Override
        public void cancel() {
            super.cancel();
            decide(true);
        }

        @Override
        public void settle(long cost, boolean mayBlock) {
            super.settle(cost, mayBlock);
            decide(false);
        }

        @Override
        public void release() {
            super.release();
            decide(false);
        }

        @Override
        long patience() {
            return patience;
        }

        @Override
        void reservedAt(long now) {
            reservedAt = now;
        }

        @Override
        long reservedAt() {
            return reservedAt;
        }
    }
}
