package io.ratelimited.core.internals.memory.concurrency;

import io.ratelimited.core.End;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.internals.threads.CallbackThreads;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A call that waits for others to end. */
final class QueuedReservation extends ConcurrencyReservation implements WaitingRoom.Waiter {

    /** Nested calls of {@link #wake} in one thread: a woken call that ends at once wakes the next. */
    private static final ThreadLocal<Integer> WAKING = ThreadLocal.withInitial(() -> 0);
    /** Beyond this depth another thread continues, so that a long queue cannot overflow the stack. */
    private static final int DEEPEST = 16;

    /** Completes when this call is admitted or refused. */
    private final CompletableFuture<Boolean> turn = new CompletableFuture<>();
    /** Time at which the caller gives up: {@link Ticker#nanos}. */
    private final long deadline;

    private volatile long start;
    /** Cancels the alarm. Guarded by this. */
    private Runnable alarm = () -> {};
    /**
     * Number of alarms that have been set. Of two that threads set together, the later one knows all changes. Guarded by
     * this.
     */
    private int alarms;
    /** Whether the caller has begun to wait; set before the alarm is, so that a change of the limit is seen by one of the two. */
    private volatile boolean watched;

    QueuedReservation(ConcurrencyCell cell, long permits, int rank, long deadline) {
        super(cell, permits, rank, QUEUED);
        this.deadline = deadline;
    }

    @Override
    long start() {
        return start;
    }

    /** {@inheritDoc} Before {@link #decided}. */
    @Override
    void started(long now) {
        start = now;
    }

    /** Completes the turn of a call that is decided. Callbacks run here, so the caller holds no lock. */
    void wake() {
        JointLocks.outside(this::completeTurn);
    }

    private void completeTurn() {
        boolean admitted = !isRefused();
        int depth = WAKING.get();
        if (depth == DEEPEST) {
            turn.completeAsync(() -> admitted, CallbackThreads.SHARED);
        } else {
            WAKING.set(depth + 1);
            try {
                turn.complete(admitted);
            } finally {
                WAKING.set(depth);
            }
        }
        if (!admitted) {
            cell().limiter().refused(rank());
            cell().limiter().removeIfIdle(cell().key());
        }
    }

    @Override
    public boolean mayWait() {
        return true;
    }

    @Override
    public boolean await() throws InterruptedException {
        makeRoom();
        return cell().limiter().waitingRoom().await(turn, this::watch, this);
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        makeRoom();
        return cell().limiter().waitingRoom().awaitAsync(turn, this::watch, this);
    }

    /** A call of a worse class may have taken the last seat since this one found it free. */
    private void makeRoom() {
        if (state() == QUEUED) {
            cell().makeRoom(rank());
        }
    }

    /** Sets an alarm at the deadline, and before it at each end of a lease; returns a task that cancels the alarm. */
    private Runnable watch() {
        watched = true;
        setAlarm();
        return this::cancelAlarm;
    }

    /** Sets the alarm anew, because leases end at other times. */
    void resetAlarm() {
        if (watched) {
            setAlarm();
        }
    }

    /** Replaces the alarm, unless another thread, or the alarm itself by ringing at once, does so later. */
    private void setAlarm() {
        int number;
        synchronized (this) {
            number = ++alarms;
        }
        if (state() != QUEUED) {
            return;
        }
        Ticker ticker = cell().limiter().ticker();
        long now = ticker.nanos();
        Runnable replaced = ticker.schedule(now + Math.min(deadline - now, cell().nanosToLeaseEnd()), this::ring);
        synchronized (this) {
            if (number == alarms) {
                Runnable set = replaced;
                replaced = alarm;
                alarm = set;
            }
        }
        replaced.run();
        if (state() != QUEUED) {
            cancelAlarm();
        }
    }

    private void ring() {
        cell().endLeases();
        if (deadline - cell().limiter().ticker().nanos() <= 0) {
            crowdOut();
        } else {
            setAlarm();
        }
    }

    private void cancelAlarm() {
        Runnable last;
        synchronized (this) {
            last = alarm;
        }
        last.run();
    }

    @Override
    public @Nullable Object key() {
        return cell().key();
    }

    @Override
    public boolean mayGo() {
        return state() == ADMITTED;
    }

    /** Refuses the call, unless it was admitted meanwhile: it has waited for as long as it may, or there is no seat for it. */
    @Override
    public void crowdOut() {
        giveUp(true);
    }

    /**
     * Leaves the queue, unless admitted meanwhile.
     *
     * @param refused whether the caller did not leave it by himself
     */
    private void giveUp(boolean refused) {
        List<QueuedReservation> served = cell().leave(this);
        if (served == null) {
            return;
        }
        if (refused) {
            cell().limiter().refused(rank());
        }
        cancelAlarm();
        JointLocks.outside(() -> turn.complete(false)); // first, since the callbacks of the others may be slow
        served.forEach(QueuedReservation::wake);
        cell().limiter().removeIfIdle(cell().key());
    }

    @Override
    public void cancel() {
        if (state() == QUEUED) {
            giveUp(false);
        }
        release(End.CANCELLED);
    }
}
