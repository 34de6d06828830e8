package io.ratelimited.core.internals.memory.concurrency;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.Permits;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/** A call that was admitted or refused at once. Its fields are few because every call makes one. */
class ConcurrencyReservation implements Reservation {

    /** The call counts. The value that a new field has, so that an admitted call does not write it. */
    static final int ADMITTED = 0;
    /** Refused: too many calls are in flight. */
    static final int FULL = 1;
    /** Refused for good: more permits than may ever be in use at once. */
    static final int NEVER = 2;
    /** Stands in the queue of its cell. */
    static final int QUEUED = 3;
    /** The call was admitted and has ended. */
    static final int ENDED = 4;
    /** The call was admitted and waits for its caller. */
    static final int AT_CALLER = 5;

    private static final AtomicIntegerFieldUpdater<ConcurrencyReservation> STATE =
            AtomicIntegerFieldUpdater.newUpdater(ConcurrencyReservation.class, "state");

    private final ConcurrencyCell cell;
    private final long permits;
    private final byte rank;
    /** Whether the permits count in those of the class. Written before the call is admitted. */
    private boolean counted;

    private volatile int state;

    /** @param rank of a class, as {@link Classes#rank} returns it */
    ConcurrencyReservation(ConcurrencyCell cell, long permits, int rank, int state) {
        this.cell = cell;
        this.permits = permits;
        this.rank = (byte) rank;
        if (state != ADMITTED) {
            this.state = state;
        }
    }

    final ConcurrencyCell cell() {
        return cell;
    }

    final long permits() {
        return permits;
    }

    final int rank() {
        return rank;
    }

    final boolean isCounted() {
        return counted;
    }

    final void counted() {
        counted = true;
    }

    /** The time of admission, where the limit learns from it; 0 elsewhere. */
    long start() {
        return 0;
    }

    /** Sets the time of admission, or moves it by what the call has waited for its caller. */
    void started(long now) {}

    final int state() {
        return state;
    }

    /** Sets the outcome of a call that was queued. */
    final void decided(int outcome) {
        state = outcome;
    }

    @Override
    public final boolean isRefused() {
        int now = state;
        return now == FULL || now == NEVER;
    }

    @Override
    public final long waitNanos() {
        return 0;
    }

    @Override
    public final Decision decision() {
        return cell.limiter().decision(cell.key(), state);
    }

    @Override
    public boolean await() throws InterruptedException {
        return !isRefused();
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        return CompletableFuture.completedFuture(!isRefused());
    }

    @Override
    public void cancel() {
        release(End.CANCELLED);
    }

    @Override
    public final void settle(long cost) {
        throw Permits.nothingToCharge(cell.limiter().limit().name());
    }

    @Override
    public final void release() {
        release(End.ANSWERED);
    }

    @Override
    public final void release(End end) {
        int now = state;
        while (now == ADMITTED || now == AT_CALLER) {
            if (STATE.compareAndSet(this, now, ENDED)) {
                ended(now, end);
                return;
            }
            now = state;
        }
    }

    private void ended(int before, End end) {
        AdaptiveLimit adaptive = cell.limiter().adaptive();
        if (adaptive != null && before == AT_CALLER) {
            adaptive.atCaller(-permits);
        }
        cell.release(this, end);
    }

    @Override
    public final void awaitCaller() {
        AdaptiveLimit adaptive = cell.limiter().adaptive();
        if (adaptive != null && state == ADMITTED && STATE.compareAndSet(this, ADMITTED, AT_CALLER)) {
            adaptive.atCaller(permits);
        }
    }

    @Override
    public final void callerCame(long nanos) {
        AdaptiveLimit adaptive = cell.limiter().adaptive();
        if (adaptive != null && state == AT_CALLER) {
            started(start() + nanos); // before the state, which whoever ends the call reads
            if (STATE.compareAndSet(this, AT_CALLER, ADMITTED)) {
                adaptive.atCaller(-permits);
            }
        }
    }

    /** A call that was admitted at once by a limit that learns from its time. */
    static final class Timed extends ConcurrencyReservation {

        private long start;

        Timed(ConcurrencyCell cell, long permits, int rank, long start) {
            super(cell, permits, rank, ADMITTED);
            this.start = start;
        }

        @Override
        long start() {
            return start;
        }

        @Override
        void started(long now) {
            start = now;
        }
    }
}
