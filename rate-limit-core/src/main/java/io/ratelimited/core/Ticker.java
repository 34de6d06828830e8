package io.ratelimited.core;

/**
 * Time, and waiting for it. The core uses no other clock. Implementations are thread-safe. Use {@link
 * #system()} in production and {@link io.ratelimited.core.testing.ManualTicker} in tests.
 */
public interface Ticker {

    /** Returns the monotonic time in nanoseconds. Only differences are meaningful; the value can be negative or wrap around. */
    long nanos();

    /**
     * Returns the wall-clock time in nanoseconds since 1970-01-01T00:00Z, for windows that follow the calendar. It can step.
     * The system clock has a resolution of a millisecond.
     */
    long epochNanos();

    /**
     * Sleeps until {@link #nanos()} has reached the deadline, regardless of spurious wake-ups. Holds no lock and does not pin
     * a virtual thread.
     *
     * @param deadline a value of {@link #nanos()}
     * @throws InterruptedException if the thread is interrupted before or during the sleep
     */
    void sleepUntil(long deadline) throws InterruptedException;

    /**
     * {@link #sleepUntil(long)} without blocking a thread: runs a short task when {@link #nanos()} has reached the deadline.
     * A caller waits for this task, whereas the tasks of {@link #schedule} are timeouts.
     *
     * @return a handle that cancels the task if it has not started
     */
    default Runnable sleepUntil(long deadline, Runnable task) {
        return schedule(deadline, task);
    }

    /**
     * Runs a short task that does not block when {@link #nanos()} has reached the deadline.
     *
     * @return a handle that cancels the task if it has not started
     */
    Runnable schedule(long deadline, Runnable task);

    /** Returns the ticker of the system: {@link System#nanoTime()}, the system clock, and parking. */
    static Ticker system() {
        return SystemTicker.INSTANCE;
    }
}
