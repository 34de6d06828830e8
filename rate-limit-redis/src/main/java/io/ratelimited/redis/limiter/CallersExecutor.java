package io.ratelimited.redis.limiter;

import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Runs what callers have attached to asynchronous decisions on an executor that may block or throw, without holding up
 * the threads of the connection: only a fork-join pool is given tasks by them, any other executor by a thread of its own.
 * What an executor rejects runs in the common pool, so that every caller is answered.
 */
public final class CallersExecutor implements Executor {

    private final Executor executor;
    private final Executor handOver;

    private CallersExecutor(Executor executor) {
        this.executor = executor;
        this.handOver = executor instanceof ForkJoinPool ? Runnable::run : oneThread();
    }

    /**
     * Futures of JDK 17 that are given a common pool of one thread, as machines of two processors have, start a thread for
     * each task instead; so it is hidden from them. They need that where a property leaves the pool no thread.
     */
    public static Executor of(Executor executor) {
        int threads = Integer.getInteger("java.util.concurrent.ForkJoinPool.common.parallelism", 1);
        return threads == 0 && executor == ForkJoinPool.commonPool() ? executor : new CallersExecutor(executor);
    }

    private static Executor oneThread() {
        ThreadPoolExecutor thread =
                new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
                    Thread made = new Thread(task, "rate-limit-redis-callers");
                    made.setDaemon(true);
                    return made;
                });
        thread.allowCoreThreadTimeOut(true);
        return thread;
    }

    @Override
    public void execute(Runnable task) {
        handOver.execute(() -> run(task));
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
