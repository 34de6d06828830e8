package io.ratelimited.core.internals.threads;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * Runs tasks that may call code of callers, which may block or throw. A few core threads run short tasks. For each task
 * that still waits after {@value #LOOK_MILLIS} to 8 milliseconds one more thread is started, so that no task waits for a
 * caller who blocks. So there are as many threads as tasks that block at the same time, and a few more.
 *
 * <p>Platform threads, also where the JDK has virtual ones: their carriers are shared with the application, whose virtual
 * threads may fill them by calculating or, up to JDK 23, by blocking within {@code synchronized}. Thread-safe.
 */
public final class CallbackThreads implements Executor {

    /** The threads of all limits. */
    public static final CallbackThreads SHARED =
            new CallbackThreads(Math.max(1, Runtime.getRuntime().availableProcessors() - 1));

    static final long LOOK_MILLIS = 4;

    /** Bounds the threads that start when tasks are late only because the machine is busy. */
    private static final int MAX_STARTS_PER_LOOK = 64;

    private static final int IDLE_LOOKS_BEFORE_REST = 10;
    private static final long IDLE_SECONDS = 1;

    /** Number of threads that are started at once when there are tasks. */
    private final int coreThreads;

    private final BlockingQueue<Runnable> waiting = new LinkedBlockingQueue<>();
    private final AtomicInteger threads = new AtomicInteger();
    /** Number of tasks that this executor has been given since it was made. */
    private final AtomicLong submitted = new AtomicLong();

    private final LongAdder completed = new LongAdder();
    /** Whether the next look is scheduled. */
    private final AtomicBoolean watched = new AtomicBoolean();
    /** {@link #submitted} at the last look. Only looks use it. */
    private long submittedBefore;
    /** Looks in a row that found no task. Only looks use it. */
    private int idleLooks;

    CallbackThreads(int coreThreads) {
        this.coreThreads = coreThreads;
    }

    @Override
    public void execute(Runnable task) {
        submitted.incrementAndGet();
        waiting.add(task);
        if (threads.get() < coreThreads) {
            start();
        }
        watch();
    }

    private void start() {
        threads.incrementAndGet();
        // Threads outlive the call that starts them: they take nothing from its thread.
        Thread thread = new Thread(null, this::work, "rate-limit-callbacks", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(CallbackThreads.class.getClassLoader());
        try {
            thread.start();
        } catch (OutOfMemoryError ex) {
            // The system has no more threads. The next look tries again.
            threads.decrementAndGet();
        }
    }

    private void work() {
        try {
            for (Runnable task = next(); task != null; task = next()) {
                run(task);
            }
        } finally {
            // A task that throws ends its thread, too; the handler of uncaught exceptions reports the exception.
            threads.decrementAndGet();
            if (!waiting.isEmpty()) {
                start();
            }
        }
    }

    private void run(Runnable task) {
        try {
            task.run();
        } finally {
            completed.increment();
        }
    }

    /** The next task; null when there has been none for a while. */
    private @Nullable Runnable next() {
        while (true) {
            try {
                return waiting.poll(IDLE_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException ex) {
                // The last task has left the interrupt behind.
            }
        }
    }

    /** Returns whether all submitted tasks have completed. */
    public boolean isQuiescent() {
        return completed.sum() == submitted.get();
    }

    private void watch() {
        if (!watched.get() && watched.compareAndSet(false, true)) {
            Alarms.look(LOOK_MILLIS, this::look);
        }
    }

    /** Starts a thread for each task that has waited since the last look. */
    private void look() {
        long begun = submitted.get() - waiting.size();
        long late = Math.min(MAX_STARTS_PER_LOOK, submittedBefore - begun);
        for (int i = 0; i < late; i++) {
            start();
        }
        submittedBefore = submitted.get();
        idleLooks = waiting.isEmpty() ? idleLooks + 1 : 0;
        if (idleLooks <= IDLE_LOOKS_BEFORE_REST) {
            Alarms.look(LOOK_MILLIS, this::look);
            return;
        }
        idleLooks = 0;
        watched.set(false);
        if (!waiting.isEmpty()) {
            watch();
        }
    }
}
