package io.ratelimited.redis;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Ends what Redis has not answered in time. All have the same time, so that a queue in order of arrival is enough and
 * nothing is scheduled; one thread, which looks four times as often as the timeout is long or more, so that what is done
 * is not kept, and sleeps while there is nothing to look at.
 */
final class Deadlines implements Runnable, AutoCloseable {

    private static final int ROUNDS_BEFORE_SLEEP = 100;

    private static final long LONGEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(12);

    private final Queue<Timed> queue = new ConcurrentLinkedQueue<>();
    private final long pause;
    private final Thread thread;
    private volatile boolean asleep;
    private volatile boolean closed;

    /** Something that has to end in time. */
    interface Timed {

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

    void add(Timed timed) {
        queue.add(timed);
        if (asleep) {
            LockSupport.unpark(thread);
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
                head.expire();
            } else {
                LockSupport.parkNanos(this, Math.min(pause, left));
            }
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
