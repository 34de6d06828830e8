package io.ratelimited.core;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/**
 * The callers of one limit that wait, until a time or until their turn comes. At most {@link Limit#maxWaiting} wait; the
 * next one is refused. A caller that is interrupted, or whose future is cancelled, gives back what it reserved. Used by
 * the reservations of every backend. Thread-safe.
 */
public final class WaitingRoom {

    private final Ticker ticker;
    private final IntSupplier seats;
    private final AtomicInteger taken = new AtomicInteger();

    /** A reservation that waits. */
    public interface Waiter {

        /** Whether the reservation is still in force when its time has come. */
        boolean mayGo();

        /** Refuses the reservation because too many wait already. */
        void crowdOut();

        /** As {@link Reservation#cancel}. */
        void cancel();
    }

    /** @param seats the number of callers that may wait, read anew for each */
    public WaitingRoom(Ticker ticker, IntSupplier seats) {
        this.ticker = ticker;
        this.seats = seats;
    }

    /** How many callers wait. */
    public int size() {
        return taken.get();
    }

    /** The longest wait of a new caller in nanoseconds: the one it asks for, or 0 when all seats are taken. */
    public long longestWait(long maxWaitNanos) {
        return maxWaitNanos <= 0 || taken.get() >= seats.getAsInt() ? 0 : Math.min(Limit.LONGEST, maxWaitNanos);
    }

    /**
     * Sleeps until a time.
     *
     * @param deadline a value of {@link Ticker#nanos}
     * @return whether the call may go
     * @throws InterruptedException when interrupted; the waiter has been cancelled
     */
    public boolean await(long deadline, Waiter waiter) throws InterruptedException {
        if (!enter()) {
            waiter.crowdOut();
            return false;
        }
        try {
            ticker.sleepUntil(deadline);
            return waiter.mayGo();
        } catch (InterruptedException ex) {
            waiter.cancel();
            throw ex;
        } finally {
            leave();
        }
    }

    /** {@link #await(long, Waiter)} without a thread. */
    public CompletableFuture<Boolean> awaitAsync(long deadline, Waiter waiter) {
        if (!enter()) {
            waiter.crowdOut();
            return CompletableFuture.completedFuture(false);
        }
        CompletableFuture<Boolean> future = new CompletableFuture<>();
        return seated(future, ticker.sleepUntil(deadline, () -> future.complete(waiter.mayGo())), waiter);
    }

    /**
     * Waits for a turn.
     *
     * @param turn used by this caller only; completes with whether the call may go, also after {@link Waiter#crowdOut}
     * @param alarm starts the alarm that ends the wait, and returns what stops the alarm
     */
    public boolean await(CompletableFuture<Boolean> turn, Supplier<Runnable> alarm, Waiter waiter)
            throws InterruptedException {
        try {
            return awaitAsync(turn, alarm, waiter).get();
        } catch (InterruptedException ex) {
            turn.cancel(false);
            // The turn may have come in between; its permits must not be lost.
            waiter.cancel();
            throw ex;
        } catch (ExecutionException ex) {
            if (ex.getCause() instanceof RuntimeException failure) {
                throw failure;
            }
            throw new IllegalStateException(ex.getCause());
        }
    }

    /** {@link #await(CompletableFuture, Supplier, Waiter)} without a thread. */
    public CompletableFuture<Boolean> awaitAsync(
            CompletableFuture<Boolean> turn, Supplier<Runnable> alarm, Waiter waiter) {
        if (!enter()) {
            waiter.crowdOut();
            return turn;
        }
        return seated(turn, alarm.get(), waiter);
    }

    /** The same result for a caller who may cancel: what comes after that is given back, since nobody else could do it. */
    public static <T> CompletableFuture<T> orGivenBack(CompletableFuture<T> decided, Consumer<T> giveBack) {
        if (decided.isDone()) {
            return decided;
        }
        CompletableFuture<T> result = new CompletableFuture<>();
        decided.whenComplete((decision, failure) -> {
            if (failure != null) {
                result.completeExceptionally(failure);
            } else if (!result.complete(decision)) {
                giveBack.accept(decision);
            }
        });
        return result;
    }

    /** Frees the seat when the future ends, and cancels the waiter with the future. */
    private CompletableFuture<Boolean> seated(CompletableFuture<Boolean> future, Runnable stopAlarm, Waiter waiter) {
        future.whenComplete((admitted, failure) -> {
            leave();
            stopAlarm.run();
            if (failure != null) {
                waiter.cancel();
            }
        });
        return future;
    }

    private boolean enter() {
        int most = seats.getAsInt();
        return taken.getAndUpdate(seated -> seated < most ? seated + 1 : seated) < most;
    }

    private void leave() {
        taken.decrementAndGet();
    }
}
