package io.ratelimited.core.internals.threads;

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Alarms of all limits, kept by one thread that ends a second after the last one. Thread-safe. */
public final class Alarms {

    private static final long IDLE_SECONDS = 1;
    private static final ScheduledThreadPoolExecutor TIMER = timer();

    private Alarms() {}

    private static ScheduledThreadPoolExecutor timer() {
        ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(null, task, "rate-limit-timer", 0, false);
            thread.setDaemon(true);
            thread.setContextClassLoader(Alarms.class.getClassLoader());
            return thread;
        });
        timer.setRemoveOnCancelPolicy(true);
        timer.setKeepAliveTime(IDLE_SECONDS, TimeUnit.SECONDS);
        timer.allowCoreThreadTimeOut(true);
        return timer;
    }

    /**
     * Runs a task in {@link CallbackThreads}, so that it may block, after a time.
     *
     * @return cancels the alarm if it has not gone off
     */
    public static Runnable after(long nanos, Runnable task) {
        Future<?> alarm = TIMER.schedule(() -> CallbackThreads.SHARED.execute(task), nanos, TimeUnit.NANOSECONDS);
        return () -> alarm.cancel(false);
    }

    /** Runs a task of this package in the thread that keeps time. */
    static void look(long millis, Runnable task) {
        TIMER.schedule(task, millis, TimeUnit.MILLISECONDS);
    }
}
