package io.ratelimited.core.testing;

import io.ratelimited.core.Ticker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/**
 * A manual clock for tests: {@code ticker.advance(Duration.ofSeconds(1))} wakes each caller whose wait ends within that
 * second, in order, and runs each asynchronous task at its own time. By default, it starts at 0, with the wall clock at
 * 1970-01-01T00:00Z. Thread-safe.
 */
public final class ManualTicker implements Ticker {

    private static final long SECOND = 1_000_000_000L;

    private final List<Alarm> alarms = new ArrayList<>();
    private final long startEpochNanos;
    private long startNanos;
    private long nanos;
    private long epochNanos;
    private boolean autoAdvance;

    public ManualTicker() {
        this(0, Instant.EPOCH);
    }

    /**
     * @param nanos the initial monotonic time, any value, as for {@link System#nanoTime()}
     * @param wallClock the initial wall-clock time
     */
    public ManualTicker(long nanos, Instant wallClock) {
        this.startNanos = nanos;
        this.startEpochNanos = epochNanos(wallClock);
        this.nanos = nanos;
        this.epochNanos = startEpochNanos;
    }

    /**
     * From now on, a caller that waits for its time advances the time itself, whether it blocks a thread or not. A caller
     * that waits for a call in flight waits as in production: after its maximum wait, in real time, the time advances to the
     * end of that wait.
     *
     * @return this
     */
    public ManualTicker autoAdvance() {
        return autoAdvance(true);
    }

    /**
     * Enables {@link #autoAdvance()}; or disables it, so that callers wait until {@link #advance} is called.
     *
     * @return this
     */
    public synchronized ManualTicker autoAdvance(boolean on) {
        autoAdvance = on;
        return this;
    }

    /**
     * Restarts the clock for the next test: ends the waits of all callers and tasks, sets the wall clock to its initial time,
     * and resets {@link #elapsed}. The monotonic time continues.
     */
    public void restart() {
        long longest = 0;
        synchronized (this) {
            for (Alarm alarm : alarms) {
                longest = Math.max(longest, alarm.deadline - nanos);
            }
        }
        advanceNanos(longest);
        synchronized (this) {
            startNanos = nanos;
            epochNanos = startEpochNanos;
        }
    }

    /** Returns the time since the ticker was created, or since {@link #restart}. */
    public synchronized Duration elapsed() {
        return Duration.ofNanos(nanos - startNanos);
    }

    /** Advances both clocks. A negative duration steps back, like the older reading of a clock by a thread that lost a race. */
    public void advance(Duration duration) {
        advanceNanos(duration.toNanos());
    }

    /** {@link #advance} in nanoseconds. */
    public void advanceNanos(long duration) {
        long left = duration;
        Step step;
        do {
            step = step(left);
            left -= step.nanos;
            step.run();
        } while (step.due != null);
    }

    /** Moves the time forward to a value of {@link #nanos}, if it is not there yet. */
    private void advanceTo(long deadline) {
        Step step;
        do {
            synchronized (this) {
                step = step(Math.max(0, deadline - nanos));
            }
            step.run();
        } while (step.due != null);
    }

    /** Moves the time to the next alarm within the duration, or to its end. */
    private synchronized Step step(long duration) {
        Alarm due = firstWithin(duration);
        long step = due == null ? duration : Math.max(0, due.deadline - nanos);
        nanos += step;
        epochNanos += step;
        alarms.remove(due);
        return new Step(step, due);
    }

    /** The alarm that is due first, if it is within the duration; of several at one time the one set first. */
    private @Nullable Alarm firstWithin(long duration) {
        Alarm first = null;
        for (Alarm alarm : alarms) {
            if (alarm.deadline - nanos <= duration && (first == null || alarm.deadline - first.deadline < 0)) {
                first = alarm;
            }
        }
        return first;
    }

    /** Sets only the wall clock, as an operator or a time server does. */
    public synchronized void setWallClock(Instant time) {
        epochNanos = epochNanos(time);
    }

    private static long epochNanos(Instant time) {
        return time.getEpochSecond() * SECOND + time.getNano();
    }

    @Override
    public synchronized long nanos() {
        return nanos;
    }

    @Override
    public synchronized long epochNanos() {
        return epochNanos;
    }

    /** Returns the number of callers and tasks that wait for the time. */
    public synchronized int sleeping() {
        return alarms.size();
    }

    /**
     * Waits until at least this number of callers sleeps in other threads, so that a test only advances the time then.
     *
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public synchronized void awaitSleeping(int callers) throws InterruptedException {
        while (alarms.size() < callers) {
            wait();
        }
    }

    @Override
    public void sleepUntil(long deadline) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        CountDownLatch awake = new CountDownLatch(1);
        Runnable cancel = sleepUntil(deadline, awake::countDown);
        try {
            awake.await();
        } finally {
            cancel.run();
        }
    }

    @Override
    public Runnable sleepUntil(long deadline, Runnable task) {
        if (isAutoAdvancing()) {
            advanceTo(deadline);
        }
        return set(deadline, task);
    }

    @Override
    public Runnable schedule(long deadline, Runnable task) {
        Runnable cancel = set(deadline, task);
        if (!isAutoAdvancing()) {
            return cancel;
        }
        Ticker real = Ticker.system();
        Runnable cancelInRealTime = real.schedule(real.nanos() + deadline - nanos(), () -> advanceTo(deadline));
        return () -> {
            cancelInRealTime.run();
            cancel.run();
        };
    }

    private synchronized boolean isAutoAdvancing() {
        return autoAdvance;
    }

    private Runnable set(long deadline, Runnable task) {
        Alarm alarm = new Alarm(deadline, task);
        synchronized (this) {
            if (deadline - nanos > 0) {
                alarms.add(alarm);
                notifyAll();
                return () -> remove(alarm);
            }
        }
        task.run();
        return () -> {};
    }

    private synchronized void remove(Alarm alarm) {
        alarms.remove(alarm);
    }

    private record Alarm(long deadline, Runnable task) {}

    /** A step of the time: its length, and the alarm that is due at its end. */
    private record Step(long nanos, @Nullable Alarm due) {

        private void run() {
            if (due != null) {
                due.task.run();
            }
        }
    }
}
