package io.ratelimited.redis;

import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Runs what callers have attached to asynchronous decisions on an executor that may block or throw, without holding up
 * the threads of the connection: only a fork-join pool is given tasks by them, any other executor by threads of its own.
 * What an executor rejects runs in the common pool, so that every caller is answered.
 */
final class CallersExecutor {

    private static final int MOST_THREADS = 16;

    private CallersExecutor() {}

    /**
     * Futures of JDK 17 that are given a common pool of one thread, as machines of two processors have, start a thread for
     * each task instead; so it is hidden from them. They need that where a property leaves the pool no thread.
     */
    static Executor of(Executor executor) {
        if (!(executor instanceof ForkJoinPool)) {
            ThreadPoolExecutor threads = new ThreadPoolExecutor(
                    MOST_THREADS, MOST_THREADS, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
                        Thread thread = new Thread(task, "rate-limit-redis-callers");
                        thread.setDaemon(true);
                        return thread;
                    });
            threads.allowCoreThreadTimeOut(true);
            Executor safe = orElse(executor, ForkJoinPool.commonPool());
            return task -> threads.execute(() -> safe.execute(task));
        }
        // Starts a thread that the first caller of an outage would wait for.
        executor.execute(() -> {});
        int threads = Integer.getInteger("java.util.concurrent.ForkJoinPool.common.parallelism", 1);
        return threads == 0 && executor == ForkJoinPool.commonPool()
                ? executor
                : orElse(executor, ForkJoinPool.commonPool());
    }

    /** Whatever an executor rejects runs on another one. */
    static Executor orElse(Executor executor, Executor other) {
        return task -> {
            try {
                executor.execute(task);
            } catch (RuntimeException | Error ex) {
                // Whether or not the task has begun: a future runs its task once only.
                other.execute(task);
            }
        };
    }
}
