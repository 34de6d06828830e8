package io.ratelimited.redis.connection;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Ends what Redis has not answered in time. All replies have the same time, so that a queue in order of arrival is enough
 * and nothing is scheduled. One thread looks at the queue at least four times as often as the timeout is long, so that
 * what is done is not kept, and sleeps while the queue is empty. Whatever an entry throws, the thread goes on.
 */
public final class Deadlines implements Runnable, AutoCloseable {

    private static final int ROUNDS_BEFORE_SLEEP = 100;

    private static final long LONGEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(12);

    private final Queue<Timed> queue = new ConcurrentLinkedQueue<>();
    private final long pause;
    private final Thread thread;
    private volatile boolean asleep;
    private volatile boolean closed;

    /** Something that has to end in time. */
    public interface Timed {

        boolean isDone();

        /** A value of {@link System#nanoTime}. */
        long deadline();

        /** Fails it, unless it is done. */
        void expire();
    }

    Deadlines(long timeoutNanos) {
        this.pause = Math.max(100_000, Math.min(LONGEST_PAUSE, timeoutNanos / 4));
        this.thread = new Thread(this, "rate-limit-redis-deadlines");
        this.thread.setDaemon(true);
        this.thread.start();
    }

    public void add(Timed timed) {
        queue.add(timed);
        if (asleep) {
            LockSupport.unpark(thread);
        }
    }

    /** Fails all replies that a server owes: it is silent, and nobody waits for it any longer. */
    void giveUp(Server server, Throwable reason) {
        for (Timed timed : queue) {
            if (timed instanceof PendingReply<?> reply && reply.server() == server) {
                quietly(() -> reply.giveUp(reason));
            }
        }
    }

    @Override
    public void run() {
        int quiet = 0;
        while (!closed) {
            Timed head = queue.peek();
            if (head == null) {
                sleep(++quiet > ROUNDS_BEFORE_SLEEP);
                continue;
            }
            quiet = 0;
            long left = head.deadline() - System.nanoTime();
            if (head.isDone() || left <= 0) {
                queue.remove();
                quietly(head::expire);
            } else {
                LockSupport.parkNanos(this, Math.min(pause, left));
            }
        }
    }

    /** Callbacks of callers may run here. */
    @SuppressWarnings("CatchAndPrintStackTrace")
    private static void quietly(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException | Error ex) {
            // The next caller waits for its own deadline.
        }
    }

    private void sleep(boolean forLong) {
        if (!forLong) {
            LockSupport.parkNanos(this, pause);
            return;
        }
        asleep = true;
        if (queue.isEmpty() && !closed) {
            LockSupport.park(this);
        }
        asleep = false;
    }

    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
    }
}
