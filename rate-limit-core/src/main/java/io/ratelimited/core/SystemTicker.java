package io.ratelimited.core;

import io.ratelimited.core.internals.threads.Alarms;
import java.util.concurrent.locks.LockSupport;

/** The one class that reads the system's clocks. */
enum SystemTicker implements Ticker {
    INSTANCE;

    @Override
    public long nanos() {
        return System.nanoTime();
    }

    @Override
    public long epochNanos() {
        return System.currentTimeMillis() * 1_000_000L;
    }

    @Override
    public void sleepUntil(long deadline) throws InterruptedException {
        for (long left; (left = deadline - System.nanoTime()) > 0; ) {
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
            LockSupport.parkNanos(this, left);
        }
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }

    @Override
    public Runnable schedule(long deadline, Runnable task) {
        return Alarms.after(deadline - System.nanoTime(), task);
    }
}
