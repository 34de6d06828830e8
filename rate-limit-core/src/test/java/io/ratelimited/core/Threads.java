package io.ratelimited.core;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Threads that start behind one gate and are judged on what they bring back. */
public final class Threads {

    /** A test that has not ended by then has lost a thread. */
    public static final Duration PATIENCE = Duration.ofMinutes(1);

    private Threads() {}

    /** What one thread does. */
    public interface Body<T> {
        T run(int thread) throws Exception;
    }

    /** Runs the body in so many threads at once and returns what they return, in the order of the threads. */
    public static <T> List<T> run(int threads, Body<T> body) throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        List<FutureTask<T>> tasks = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int thread = i;
            tasks.add(start(() -> {
                gate.await();
                return body.run(thread);
            }));
        }
        gate.countDown();
        List<T> results = new ArrayList<>();
        for (FutureTask<T> task : tasks) {
            results.add(get(task));
        }
        return results;
    }

    /** The sum of what the threads return. */
    public static long sum(int threads, Body<Long> body) throws Exception {
        return run(threads, body).stream().mapToLong(Long::longValue).sum();
    }

    /** Starts one thread. */
    public static <T> FutureTask<T> start(Callable<T> body) {
        FutureTask<T> task = new FutureTask<>(body);
        Thread thread = new Thread(task, "test");
        thread.setDaemon(true);
        thread.start();
        return task;
    }

    /** The result of a thread, or what it threw. */
    public static <T> T get(FutureTask<T> task) throws Exception {
        try {
            return task.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        } catch (ExecutionException ex) {
            if (ex.getCause() instanceof Error error) {
                throw error;
            }
            throw (Exception) ex.getCause();
        } catch (TimeoutException ex) {
            throw new AssertionError("a thread did not end", ex);
        }
    }

    /** What another thread brings about. */
    public interface State {
        boolean isReached() throws Exception;
    }

    /** What holds once another thread has brought it about. */
    public interface Assertion {
        void check() throws Exception;
    }

    /** Waits until another thread has come to a state that it must come to. */
    public static void until(State state) {
        if (!isReached(state)) {
            throw new AssertionError("a state was not reached");
        }
    }

    /** Waits until what another thread does has made an assertion hold, and fails as it does if that never happens. */
    public static void untilAsserted(Assertion assertion) {
        AssertionError[] last = new AssertionError[1];
        boolean reached = isReached(() -> {
            try {
                assertion.check();
                return true;
            } catch (AssertionError ex) {
                last[0] = ex;
                return false;
            }
        });
        if (!reached) {
            throw last[0];
        }
    }

    @SuppressWarnings("ThreadPriorityCheck") // waiting for another thread, not relying on when it runs
    private static boolean isReached(State state) {
        long begin = System.nanoTime();
        try {
            while (!state.isReached()) {
                long waited = System.nanoTime() - begin;
                if (waited > PATIENCE.toNanos()) {
                    return false;
                }
                if (waited < 1_000_000) {
                    Thread.yield();
                } else {
                    Thread.sleep(2);
                }
            }
            return true;
        } catch (RuntimeException ex) {
            throw ex;
        } catch (Exception ex) {
            throw new IllegalStateException(ex);
        }
    }
}
