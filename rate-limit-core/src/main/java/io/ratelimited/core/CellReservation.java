package io.ratelimited.core;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.jspecify.annotations.Nullable;

/** A reservation in a cell of memory, and the record of what a cell needs to undo it. */
final class CellReservation implements Reservation, WaitingRoom.Waiter {

    /** In force: admitted, or refused and of no effect. */
    private static final int LIVE = 0;
    /** Standing in the queue of a {@link Concurrency} cell. */
    private static final int QUEUED = 1;
    /** Cancelled or released: nothing more can happen. */
    private static final int ENDED = 2;

    private static final AtomicIntegerFieldUpdater<CellReservation> PHASE =
            AtomicIntegerFieldUpdater.newUpdater(CellReservation.class, "phase");

    /** Nested calls of {@link #wake} in one thread: a woken call that ends at once wakes the next. */
    private static final ThreadLocal<Integer> WAKING = ThreadLocal.withInitial(() -> 0);
    /** Beyond it another thread goes on, so that a long queue cannot overflow the stack. */
    private static final int DEEPEST = 16;

    private final InMemoryRateLimiter limiter;
    private final @Nullable Object key;
    private final long permits;
    private final long maxWait;

    private volatile int phase;
    private @Nullable Cell cell;
    private volatile long outcome;
    /** When the call may go, or at the latest gives up: {@link Ticker#nanos}. */
    private long deadline;

    private long mark;
    private @Nullable Object before;
    private @Nullable Object after;
    /** Completed when a queued call is admitted or gives up. */
    private @Nullable CompletableFuture<Boolean> turn;
    /** Cancels the alarm of a queued call. */
    private volatile Runnable alarm = () -> {};

    CellReservation(InMemoryRateLimiter limiter, @Nullable Object key, long permits, long maxWait) {
        this.limiter = limiter;
        this.key = key;
        this.permits = permits;
        this.maxWait = maxWait;
    }

    long permits() {
        return permits;
    }

    /** What the cell remembers of this reservation: a time, slot or window. */
    long mark() {
        return mark;
    }

    void mark(long value) {
        mark = value;
    }

    /** State objects around this reservation. */
    void mark(Object stateBefore, Object stateAfter) {
        before = stateBefore;
        after = stateAfter;
    }

    @Nullable
    Object before() {
        return before;
    }

    @Nullable
    Object after() {
        return after;
    }

    void decided(Cell decider, long now, long result) {
        if (cell == null) {
            cell = decider;
            outcome = result;
            deadline = result > 0 ? limiter.ticker().nanos() + result : 0;
        }
    }

    void queued(Concurrency decider) {
        cell = decider;
        turn = new CompletableFuture<>();
        deadline = limiter.ticker().nanos() + maxWait;
        phase = QUEUED;
    }

    /** Admitted by the cell, at once or, under the lock of the queue, at its head. */
    void admitted(Concurrency decider) {
        cell = decider;
        if (phase != LIVE) {
            phase = LIVE;
        }
    }

    /** Refused under the lock of the queue, where it stood at the head. */
    void refused(long result) {
        outcome = result;
        phase = ENDED;
    }

    /** Tells the waiting caller that it is admitted or refused; under no lock, since its callbacks run here. */
    void wake() {
        CompletableFuture<Boolean> waiter = turn;
        if (waiter == null) {
            return;
        }
        boolean admitted = outcome >= 0;
        int depth = WAKING.get();
        if (depth == DEEPEST) {
            waiter.completeAsync(() -> admitted);
        } else {
            WAKING.set(depth + 1);
            try {
                waiter.complete(admitted);
            } finally {
                WAKING.set(depth);
            }
        }
        if (!admitted) {
            limiter.ended(key);
        }
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
    public boolean mayWait() {
        return turn != null || outcome > 0;
    }

    @Override
    public Decision decision() {
        return limiter.describe(key, outcome);
    }

    @Override
    public boolean await() throws InterruptedException {
        CompletableFuture<Boolean> waiter = turn;
        if (waiter != null) {
            return limiter.waitingRoom().await(waiter.copy(), this::watched, this);
        }
        return outcome > 0 ? limiter.waitingRoom().await(deadline, this) : outcome == 0;
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        CompletableFuture<Boolean> waiter = turn;
        if (waiter != null) {
            return limiter.waitingRoom().awaitAsync(waiter.copy(), this::watched, this);
        }
        return outcome > 0
                ? limiter.waitingRoom().awaitAsync(deadline, this)
                : CompletableFuture.completedFuture(outcome == 0);
    }

    private Runnable watched() {
        if (cell instanceof Concurrency queue) {
            watch(queue);
        }
        return () -> alarm.run();
    }

    /** Wakes up at the deadline, and before it whenever the lease of a call in flight ends. */
    private void watch(Concurrency queue) {
        long now = limiter.ticker().nanos();
        long left = Math.min(deadline - now, queue.nanosToLeaseEnd(limiter.now(queue)));
        if (phase == QUEUED) {
            alarm = limiter.ticker().schedule(now + left, () -> {
                queue.endLeases(limiter.now(queue));
                if (deadline - limiter.ticker().nanos() <= 0) {
                    giveUp();
                } else {
                    watch(queue);
                }
            });
            if (phase != QUEUED) {
                alarm.run();
            }
        }
    }

    @Override
    public boolean mayGo() {
        return phase != ENDED;
    }

    @Override
    public void crowdOut() {
        if (turn != null) {
            giveUp();
            return;
        }
        long wait = outcome;
        cancel();
        outcome = ~wait;
    }

    /** Leaves the queue, unless admitted meanwhile. */
    private void giveUp() {
        CompletableFuture<Boolean> waiter = turn;
        if (waiter != null && cell instanceof Concurrency queue && queue.leave(this, limiter.now(queue))) {
            phase = ENDED;
            outcome = Cell.UNKNOWN;
            waiter.complete(false);
            limiter.ended(key);
        }
    }

    @Override
    public void cancel() {
        if (phase == QUEUED) {
            giveUp();
        }
        Cell decider = cell;
        if (decider instanceof Concurrency) {
            release();
        } else if (decider != null && outcome >= 0 && PHASE.compareAndSet(this, LIVE, ENDED)) {
            if (!decider.cancel(this, limiter.now(decider))) {
                limiter.giveBack(key, decider, this);
            }
        }
    }

    @Override
    public void release() {
        if (cell instanceof Concurrency inFlight && outcome >= 0 && PHASE.compareAndSet(this, LIVE, ENDED)) {
            if (inFlight.release(this)) {
                inFlight.serve(limiter.now(inFlight));
            }
            limiter.ended(key);
        }
    }
}
