package io.ratelimited.redis.limiter;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Runs what callers have attached to asynchronous decisions on an executor that may block or throw, without holding up
 * the threads of the connection: only a fork-join pool is given tasks by them, any other executor by a thread of its own,
 * or by another one while that is stuck in the executor. What an executor rejects runs in the common pool, so that every
 * caller is answered. Thread-safe.
 */
public final class CallersExecutor implements Executor {

    private static final long STUCK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long IDLE_MILLIS = 1_000;
    private static final int MOST_THREADS = 16;

    private final Executor executor;
    /** What waits to be given to the executor. */
    private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
    /** Guarded by this. */
    private int threads;
    /** When a thread last took a task. Guarded by this. */
    private long activeAt;

    private CallersExecutor(Executor executor) {
        this.executor = executor;
    }

    /**
     * Futures of JDK 17 that are given a common pool of one thread, as machines of two processors have, start a thread for
     * each task instead; so it is hidden from them. They need that where a property leaves the pool no thread.
     */
    public static Executor of(Executor executor) {
        if (executor instanceof ForkJoinPool) {
            // Starts a thread that the first caller of an outage would wait for.
            executor.execute(() -> {});
        }
        int threads = Integer.getInteger("java.util.concurrent.ForkJoinPool.common.parallelism", 1);
        return threads == 0 && executor == ForkJoinPool.commonPool() ? executor : new CallersExecutor(executor);
    }

    @Override
    public void execute(Runnable task) {
        if (executor instanceof ForkJoinPool) {
            run(task);
            return;
        }
        synchronized (this) {
            tasks.add(task);
            boolean stuck = tasks.size() > 1 && System.nanoTime() - activeAt > STUCK_NANOS;
            if (threads == 0 || (stuck && threads < MOST_THREADS)) {
                threads++;
                activeAt = System.nanoTime();
                Thread thread = new Thread(this::handOver, "rate-limit-redis-callers");
                thread.setDaemon(true);
                thread.start();
            }
        }
    }

    private void handOver() {
        while (true) {
            Runnable task = next();
            if (task != null) {
                run(task);
            } else if (ends()) {
                return;
            }
        }
    }

    private @Nullable Runnable next() {
        try {
            Runnable task = tasks.poll(IDLE_MILLIS, TimeUnit.MILLISECONDS);
            synchronized (this) {
                activeAt = System.nanoTime();
            }
            return task;
        } catch (InterruptedException ex) {
            // Only an executor that runs tasks itself could interrupt this thread.
            return null;
        }
    }

    private synchronized boolean ends() {
        boolean idle = tasks.isEmpty();
        if (idle) {
            threads--;
        }
        return idle;
    }

    private void run(Runnable task) {
        try {
            executor.execute(task);
        } catch (RuntimeException | Error ex) {
            // Whether or not the task has begun: a future runs its task once only.
            ForkJoinPool.commonPool().execute(task);
        }
    }
}
