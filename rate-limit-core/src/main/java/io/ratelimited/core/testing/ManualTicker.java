package io.ratelimited.core.testing;

import io.ratelimited.core.Ticker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/**
 * Time that moves only by hand: {@code ticker.advance(Duration.ofSeconds(1))} wakes each caller whose wait ends within that
 * second, in order, and runs each asynchronous task at its own time. Starts at 0, with the wall clock at
 * 1970-01-01T00:00Z, unless constructed otherwise. Thread-safe.
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
     * From now on a caller that sleeps moves the time itself: for tests in one thread. Asynchronous waits, and waits for a
     * call in flight to end, still need {@link #advance}.
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
        long left = duration;
        Alarm due;
        do {
            synchronized (this) {
                due = firstWithin(left);
                long step = due == null ? left : Math.max(0, due.deadline - nanos);
                nanos += step;
                epochNanos += step;
                left -= step;
                alarms.remove(due);
            }
            if (due != null) {
                due.task.run();
            }
        } while (due != null);
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

    /** How many callers and tasks wait for the time to move. */
    public synchronized int sleeping() {
        return alarms.size();
    }

    /**
     * Waits until at least so many callers sleep in other threads, so that a test moves the time only when they do.
     *
     * @throws InterruptedException when interrupted while waiting
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
        long left;
        synchronized (this) {
            left = autoAdvance ? deadline - nanos : 0;
        }
        if (left > 0) {
            advanceNanos(left);
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
}
