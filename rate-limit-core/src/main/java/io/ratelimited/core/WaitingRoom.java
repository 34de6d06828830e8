package io.ratelimited.core;

import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The wait queue of one limit: callers wait for a time, or for their turn. At most {@link Limit#maxWaiting} callers wait; the
 * next one is rejected. Callers with the same key take at most half of the queue positions, rounded up, so that no single
 * caller fills the queue; those without a key count as one caller. If a caller is interrupted, or its future is cancelled,
 * its permits are refunded. Used by the reservations of every backend, and by outgoing calls. Thread-safe.
 */
public final class WaitingRoom {

    /** Stands for the callers without a key. */
    private static final Object NO_KEY = new Object();

    private final Ticker ticker;
    private final IntSupplier seats;
    private final AtomicInteger waiting = new AtomicInteger();
    /** Number of waiting callers of each key; a key without waiting callers has no entry. */
    private final ConcurrentHashMap<Object, Integer> waitingByKey = new ConcurrentHashMap<>();
    /** Whether any caller has had a key. */
    private volatile boolean keyed;
    /** Ends each wait that has not ended, and returns at once for one that has. */
    private final Set<Runnable> ends = ConcurrentHashMap.newKeySet();

    private volatile boolean closed;

    /** A reservation that waits. */
    public interface Waiter {

        /** Returns the key of the reservation; null without a key. */
        @Nullable
        Object key();

        /** Returns whether the reservation is still valid when its time has come. */
        boolean mayGo();

        /** Rejects the reservation because too many callers wait already. */
        void crowdOut();

        /** Cancels the reservation, like {@link Reservation#cancel}. */
        void cancel();
    }

    /** @param seats the maximum number of waiting callers, read for each caller */
    public WaitingRoom(Ticker ticker, IntSupplier seats) {
        this.ticker = ticker;
        this.seats = seats;
    }

    /** Returns the number of waiting callers. */
    public int size() {
        return waiting.get();
    }

    /**
     * Returns the maximum wait of a new caller, in nanoseconds.
     *
     * @param key the key of the caller; null without a key
     * @return the given maximum wait; 0 if the queue is full, or callers with the key take half of it
     */
    public long longestWait(@Nullable Object key, long maxWaitNanos) {
        if (maxWaitNanos <= 0) {
            return 0;
        }
        if (key != null && !keyed) {
            keyed = true;
        }
        int capacity = seats.getAsInt();
        int capacityOfKey = seatsOfOneKey(capacity);
        int now = waiting.get();
        boolean full = now >= capacity
                // While fewer callers wait in all, no key can have so many.
                || (now >= capacityOfKey && keyed && waitingByKey.getOrDefault(orNoKey(key), 0) >= capacityOfKey);
        return full ? 0 : longestWait(maxWaitNanos);
    }

    /** Returns the maximum wait, in nanoseconds, of a caller that takes the queue position of another one. */
    public static long longestWait(long maxWaitNanos) {
        return Math.min(Limit.LONGEST, maxWaitNanos);
    }

    /**
     * Waits until a time.
     *
     * @param deadline a value of {@link Ticker#nanos}
     * @return whether the call can proceed
     * @throws InterruptedException if the thread is interrupted; the waiter has been cancelled
     * @throws RateLimiterClosedException if the queue is closed; the waiter has been cancelled
     */
    public boolean await(long deadline, Waiter waiter) throws InterruptedException {
        if (isOver(deadline)) {
            return waiter.mayGo();
        }
        if (!tryEnter(waiter.key())) {
            waiter.crowdOut();
            return false;
        }
        Sleep sleep = new Sleep(Thread.currentThread());
        try {
            endWhenClosed(sleep);
            ticker.sleepUntil(deadline);
        } catch (InterruptedException ex) {
            if (!sleep.isOver()) {
                waiter.cancel();
                throw ex;
            }
        } finally {
            ends.remove(sleep);
            leave(waiter.key());
        }
        if (sleep.isOver()) {
            waiter.cancel();
            throw new RateLimiterClosedException();
        }
        return waiter.mayGo();
    }

    /** Then no seat is needed, as by a call that asks a second time. */
    private boolean isOver(long deadline) {
        return deadline - ticker.nanos() <= 0;
    }

    /** A waiting thread, which closing the room wakes up by an interrupt that nobody else sees. */
    private static final class Sleep implements Runnable {

        private final Thread thread;
        private boolean awake;
        private boolean ended;

        private Sleep(Thread thread) {
            this.thread = thread;
        }

        @Override
        public synchronized void run() {
            if (!awake) {
                ended = true;
                thread.interrupt();
            }
        }

        /** Bars later interrupts. Returns whether one has come, and forgets it. */
        private synchronized boolean isOver() {
            if (!awake && ended) {
                Thread.interrupted();
            }
            awake = true;
            return ended;
        }
    }

    /**
     * Ends every wait immediately: it fails with a {@link RateLimiterClosedException}, and its permits are refunded. The same
     * applies to later waits.
     */
    public void close() {
        closed = true;
        ends.forEach(Runnable::run);
    }

    private void endWhenClosed(Runnable end) {
        ends.add(end);
        if (closed) {
            end.run();
        }
    }

    /**
     * {@link #await(long, Waiter)} without blocking a thread. When the future completes, the queue position is free, and the
     * permits of a failed wait are refunded. A caller that completes or cancels the future ends the wait.
     */
    public CompletableFuture<Boolean> awaitAsync(long deadline, Waiter waiter) {
        if (isOver(deadline)) {
            return CompletableFuture.completedFuture(waiter.mayGo());
        }
        if (!tryEnter(waiter.key())) {
            waiter.crowdOut();
            return CompletableFuture.completedFuture(false);
        }
        CompletableFuture<Boolean> future = new CompletableFuture<>();
        return seated(future, () -> ticker.sleepUntil(deadline, () -> future.complete(waiter.mayGo())), waiter);
    }

    /**
     * Waits for a turn in the queue.
     *
     * @param turn completes with true if the call can proceed, and also completes after {@link Waiter#crowdOut}; the end
     *     of the wait does not complete it
     * @param alarm starts the timeout of the wait, and returns a task that stops it
     */
    public boolean await(CompletableFuture<Boolean> turn, Supplier<Runnable> alarm, Waiter waiter)
            throws InterruptedException {
        CompletableFuture<Boolean> wait = awaitAsync(turn, alarm, waiter);
        try {
            return wait.get();
        } catch (InterruptedException ex) {
            wait.cancel(false);
            // The turn may have come meanwhile; its permits must not be lost.
            waiter.cancel();
            throw ex;
        } catch (ExecutionException ex) {
            if (ex.getCause() instanceof RuntimeException failure) {
                throw failure;
            }
            if (ex.getCause() instanceof Error failure) {
                throw failure;
            }
            throw new IllegalStateException(ex.getCause());
        }
    }

    /**
     * {@link #await(CompletableFuture, Supplier, Waiter)} without blocking a thread; the future is like that of {@link
     * #awaitAsync(long, Waiter)}.
     *
     * @param <T> the result of the turn
     */
    public <T> CompletableFuture<T> awaitAsync(CompletableFuture<T> turn, Supplier<Runnable> alarm, Waiter waiter) {
        if (!tryEnter(waiter.key())) {
            waiter.crowdOut();
            return turn.copy();
        }
        return seated(turn, alarm, waiter);
    }

    /**
     * Returns a future with the same result that the caller can cancel: a decision that arrives after the cancellation is
     * refunded.
     */
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

    private <T> CompletableFuture<T> seated(CompletableFuture<T> turn, Supplier<Runnable> alarm, Waiter waiter) {
        Wait<T> wait = new Wait<>(waiter);
        wait.set(alarm);
        turn.whenComplete(wait::end);
        // The caller can also end it by methods that Wait does not override, such as completeAsync.
        wait.whenComplete(wait::end);
        if (!wait.hasEnded()) {
            endWhenClosed(wait);
            if (wait.hasEnded()) {
                ends.remove(wait);
            }
        }
        return wait;
    }

    /**
     * A wait without a thread. It ends once: by its turn, because the room is closed, or by its caller, for example with a
     * timeout. The seat is freed and a failed waiter is cancelled before callbacks run, because these may take any time, and ask
     * the limiter again.
     */
    private final class Wait<T> extends CompletableFuture<T> implements Runnable {

        private final Waiter waiter;
        private final AtomicBoolean ended = new AtomicBoolean();
        /** Set before others know this wait. */
        private Runnable stopAlarm = () -> {};

        private Wait(Waiter waiter) {
            this.waiter = waiter;
        }

        /** Sets an alarm. Without it, as where no thread can be started, the wait might never end: it fails. */
        private void set(Supplier<Runnable> alarm) {
            try {
                stopAlarm = alarm.get();
            } catch (RuntimeException | Error ex) {
                end(null, ex);
            }
        }

        private boolean hasEnded() {
            return ended.get();
        }

        private boolean end(@Nullable T result, @Nullable Throwable failure) {
            if (!ended.compareAndSet(false, true)) {
                return false;
            }
            ends.remove(this);
            leave(waiter.key());
            attempt(stopAlarm, failure);
            if (failure != null) {
                attempt(waiter::cancel, failure);
            }
            return failure == null ? super.complete(result) : super.completeExceptionally(failure);
        }

        /** Whatever a step throws, the wait ends. */
        private static void attempt(Runnable step, @Nullable Throwable failure) {
            try {
                step.run();
            } catch (RuntimeException | Error ex) {
                if (failure != null && failure != ex) {
                    failure.addSuppressed(ex);
                }
            }
        }

        /** Closes the room for this wait. */
        @Override
        public void run() {
            end(null, new RateLimiterClosedException());
        }

        @Override
        public boolean complete(@Nullable T result) {
            return end(result, null);
        }

        @Override
        public boolean completeExceptionally(Throwable failure) {
            return end(null, Objects.requireNonNull(failure));
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            return end(null, new CancellationException()) || isCancelled();
        }
    }

    private boolean tryEnter(@Nullable Object key) {
        int capacity = seats.getAsInt();
        if (!tryEnterOfKey(orNoKey(key), keyed || key != null ? seatsOfOneKey(capacity) : capacity)) {
            return false;
        }
        if (waiting.getAndUpdate(seated -> seated < capacity ? seated + 1 : seated) < capacity) {
            return true;
        }
        leaveOfKey(orNoKey(key));
        return false;
    }

    private boolean tryEnterOfKey(Object key, int capacity) {
        while (true) {
            Integer seated = waitingByKey.putIfAbsent(key, 1);
            if (seated == null) {
                return true;
            }
            if (seated >= capacity) {
                return false;
            }
            if (waitingByKey.replace(key, seated, seated + 1)) {
                return true;
            }
        }
    }

    private void leave(@Nullable Object key) {
        waiting.decrementAndGet();
        leaveOfKey(orNoKey(key));
    }

    private void leaveOfKey(Object key) {
        waitingByKey.computeIfPresent(key, (same, seated) -> seated == 1 ? null : seated - 1);
    }

    private static int seatsOfOneKey(int seats) {
        return seats - seats / 2;
    }

    private static Object orNoKey(@Nullable Object key) {
        return key == null ? NO_KEY : key;
    }
}
