package io.ratelimited.core.threads;

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
 * Runs what may be followed by code of callers, which may block or throw. A few threads run all of it while it is short. For
 * each task that still waits after {@value #LOOK_MILLIS} milliseconds, 8 at the most, one more thread is started, so that
 * nobody waits for a caller who blocks. So there are a few threads more than tasks that block at the same time.
 *
 * <p>Platform threads, also where the JDK has virtual ones: their carriers are shared with the application, whose virtual
 * threads may fill them by calculating or, up to JDK 23, by blocking within {@code synchronized}. Thread-safe.
 */
public final class CallbackThreads implements Executor {

    /** Those of all limits. */
    public static final CallbackThreads SHARED =
            new CallbackThreads(Math.max(1, Runtime.getRuntime().availableProcessors() - 1));

    static final long LOOK_MILLIS = 4;

    /** So that tasks which are late because the machine is busy do not start thousands. */
    private static final int MOST_STARTS_AT_A_LOOK = 64;

    private static final int IDLE_LOOKS_BEFORE_REST = 10;
    private static final long IDLE_SECONDS = 1;

    /** The threads that are started at once when there is a task. */
    private final int few;

    private final BlockingQueue<Runnable> waiting = new LinkedBlockingQueue<>();
    private final AtomicInteger threads = new AtomicInteger();
    /** Tasks given to this executor since it was made. */
    private final AtomicLong given = new AtomicLong();

    private final LongAdder ended = new LongAdder();
    /** The next look is scheduled. */
    private final AtomicBoolean watched = new AtomicBoolean();
    /** {@link #given} at the last look. Only looks use it. */
    private long givenBefore;
    /** Looks in a row that found no task. Only looks use it. */
    private int idleLooks;

    CallbackThreads(int few) {
        this.few = few;
    }

    @Override
    public void execute(Runnable task) {
        given.incrementAndGet();
        waiting.add(task);
        if (threads.get() < few) {
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
            // Also after a task that throws: its thread ends, and the handler of uncaught exceptions hears of it.
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
            ended.increment();
        }
    }

    /** The next task; null when there has been none for a while. */
    private @Nullable Runnable next() {
        while (true) {
            try {
                return waiting.poll(IDLE_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException ex) {
                // Left behind by the last task.
            }
        }
    }

    /** Whether all tasks that were given have ended. */
    public boolean isQuiescent() {
        return ended.sum() == given.get();
    }

    private void watch() {
        if (!watched.get() && watched.compareAndSet(false, true)) {
            Alarms.look(LOOK_MILLIS, this::look);
        }
    }

    /** Gives threads to the tasks that were there at the last look already. */
    private void look() {
        long taken = given.get() - waiting.size();
        long late = Math.min(MOST_STARTS_AT_A_LOOK, givenBefore - taken);
        for (int i = 0; i < late; i++) {
            start();
        }
        givenBefore = given.get();
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
