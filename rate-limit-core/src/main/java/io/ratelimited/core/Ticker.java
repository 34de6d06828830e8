package io.ratelimited.core;

/**
 * Time, and waiting for it. The core uses no other clock. Implementations are thread-safe. Use {@link
 * #system()} in production and {@link io.ratelimited.core.testing.ManualTicker} in tests.
 */
public interface Ticker {

    /** Monotonic time in nanoseconds; only differences have a meaning, and it may be negative or wrap. */
    long nanos();

    /**
     * Wall-clock time in nanoseconds since 1970-01-01T00:00Z, for windows that follow the calendar; may step. The clock of
     * the system is exact to the millisecond.
     */
    long epochNanos();

    /**
     * Sleeps until {@link #nanos()} has reached the deadline, spurious wake-ups notwithstanding. Holds no lock and does
     * not pin a virtual thread.
     *
     * @param deadline a value of {@link #nanos()}
     * @throws InterruptedException when the thread is interrupted before or during the sleep
     */
    void sleepUntil(long deadline) throws InterruptedException;

    /**
     * {@link #sleepUntil(long)} without a thread: runs a short task once {@link #nanos()} has reached the deadline. A caller
     * waits for this task, while the tasks of {@link #schedule} are alarms.
     *
     * @return cancels the task if it has not begun
     */
    default Runnable sleepUntil(long deadline, Runnable task) {
        return schedule(deadline, task);
    }

    /**
     * Runs a short task that does not block once {@link #nanos()} has reached the deadline.
     *
     * @return cancels the task if it has not begun
     */
    Runnable schedule(long deadline, Runnable task);

    /** {@link System#nanoTime()}, the system clock, and parking. */
    static Ticker system() {
        return SystemTicker.INSTANCE;
    }
}
