package io.ratelimited.core.testing;

import io.ratelimited.core.Ticker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Time that moves only when told to: {@code ticker.advance(Duration.ofSeconds(1))} wakes every caller whose wait is over
 * by then, in order. Starts at 0, with the wall clock at 1970-01-01T00:00Z unless told otherwise. Thread-safe.
 */
public final class ManualTicker implements Ticker {

    private static final long SECOND = 1_000_000_000L;

    private final List<Alarm> alarms = new ArrayList<>();
    private long nanos;
    private long epochNanos;
    private boolean autoAdvance;

    public ManualTicker() {}

    /**
     * @param nanos the monotonic time to start at; any value, as of {@link System#nanoTime()}
     * @param wallClock the wall-clock time to start at
     */
    public ManualTicker(long nanos, Instant wallClock) {
        this.nanos = nanos;
        setWallClock(wallClock);
    }

    /**
     * From now on a caller who sleeps moves the time instead of waiting for someone else to: for tests in one thread.
     *
     * @return this
     */
    public synchronized ManualTicker autoAdvance() {
        autoAdvance = true;
        return this;
    }

    /** Moves both clocks forward; negative to step back, as a clock read before losing a race would. */
    public void advance(Duration duration) {
        advanceNanos(duration.toNanos());
    }

    /** {@link #advance} in nanoseconds. */
    public void advanceNanos(long duration) {
        List<Alarm> due = new ArrayList<>();
        synchronized (this) {
            nanos += duration;
            epochNanos += duration;
            alarms.removeIf(alarm -> alarm.deadline - nanos <= 0 && due.add(alarm));
        }
        due.sort(Comparator.comparingLong(alarm -> alarm.deadline - due.get(0).deadline));
        due.forEach(alarm -> alarm.task.run());
    }

    /** Sets the wall clock alone, as an operator or a time server would. */
    public synchronized void setWallClock(Instant time) {
        epochNanos = time.getEpochSecond() * SECOND + time.getNano();
    }

    @Override
    public synchronized long nanos() {
        return nanos;
    }

    @Override
    public synchronized long epochNanos() {
        return epochNanos;
    }

    /** How many callers and tasks wait for the time to move: lets a test see that a caller sleeps. */
    public synchronized int sleeping() {
        return alarms.size();
    }

    @Override
    public void sleepUntil(long deadline) throws InterruptedException {
        long left;
        synchronized (this) {
            left = autoAdvance ? deadline - nanos : 0;
        }
        if (left > 0) {
            advanceNanos(left);
        }
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        CountDownLatch awake = new CountDownLatch(1);
        Runnable cancel = schedule(deadline, awake::countDown);
        try {
            awake.await();
        } finally {
            cancel.run();
        }
    }

    @Override
    public Runnable schedule(long deadline, Runnable task) {
        Alarm alarm = new Alarm(deadline, task);
        synchronized (this) {
            if (deadline - nanos > 0) {
                alarms.add(alarm);
                return () -> remove(alarm);
            }
        }
        task.run();
        return () -> {};
    }

    private synchronized void remove(Alarm alarm) {
        alarms.remove(alarm);
    }

    private static final class Alarm {

        private final long deadline;
        private final Runnable task;

        private Alarm(long deadline, Runnable task) {
            this.deadline = deadline;
            this.task = task;
        }
    }
}
