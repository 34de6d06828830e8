package io.ratelimited.redis.internals.connection;

import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Fails futures that Redis has not answered in time. All replies have the same time, so that a queue in order of arrival is
 * enough and nothing is scheduled for each. The timer looks at the queue at least four times as often as the timeout is
 * long, so that finished futures are not kept, and rests while the queue is empty. Thread-safe.
 */
final class Deadlines {

    private static final int ROUNDS_BEFORE_REST = 10;

    private static final long LONGEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(12);

    private final Queue<Timed> queue = new ConcurrentLinkedQueue<>();
    private final Threads threads;
    private final long timeoutNanos;
    private final long pause;
    /** The timer is going to look. */
    private final AtomicBoolean watched = new AtomicBoolean();
    /** Looks in a row that found nothing. Only the timer uses it. */
    private int quiet;

    /** Something that has to end in time. */
    interface Timed {

        boolean isDone();

        /** A value of {@link Deadlines#of}. */
        long deadline();

        /** Fails it, unless it is done. */
        void expire(TimeoutException reason);
    }

    private record TimedFuture(CompletableFuture<?> future, long deadline, Runnable late) implements Timed {

        @Override
        public boolean isDone() {
            return future.isDone();
        }

        @Override
        public void expire(TimeoutException reason) {
            if (future.completeExceptionally(reason)) {
                late.run();
            }
        }
    }

    Deadlines(Threads threads, long timeoutNanos) {
        this.threads = threads;
        this.timeoutNanos = timeoutNanos;
        this.pause = Math.max(100_000, Math.min(LONGEST_PAUSE, timeoutNanos / 4));
    }

    /** Returns the deadline of a wait that begins at a value of {@link Threads#nanos}. */
    long of(long begin) {
        return begin + timeoutNanos;
    }

    /** Fails a future that is not done in time, and then runs a task. */
    void limit(CompletableFuture<?> future, Runnable late) {
        add(new TimedFuture(future, of(threads.nanos()), late));
    }

    void add(Timed timed) {
        queue.add(timed);
        watch();
    }

    private void watch() {
        if (!watched.get() && !watched.getAndSet(true)) {
            threads.at(threads.nanos() + pause, this::look);
        }
    }

    private void look() {
        long now = threads.nanos();
        Timed head = queue.peek();
        quiet = head == null ? quiet + 1 : 0;
        while (head != null && (head.isDone() || head.deadline() - now <= 0)) {
            queue.remove();
            expire(head, timeoutNanos);
            head = queue.peek();
        }
        if (quiet <= ROUNDS_BEFORE_REST) {
            long left = head == null ? pause : head.deadline() - now;
            threads.at(now + Math.min(pause, left), this::look);
            return;
        }
        quiet = 0;
        watched.set(false);
        if (!queue.isEmpty()) {
            watch();
        }
    }

    /** Callbacks of callers may run here. The next caller waits for its own deadline, whatever they throw. */
    static void expire(Timed timed, long afterNanos) {
        if (timed.isDone()) {
            return;
        }
        try {
            timed.expire(
                    new TimeoutException("Redis did not respond within " + TimeUnit.NANOSECONDS.toMillis(afterNanos)
                            + " ms: the server, the network or this JVM was too slow"));
        } catch (RuntimeException | Error ex) {
            // A failure of the caller's own.
        }
    }
}
