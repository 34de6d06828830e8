package io.ratelimited.redis.connection;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The threads that read replies. All limits share them, and callers who have promised not to block run on them. A caller that
 * holds one up all the same is warned of with its stack, and for a minute no caller runs on these threads. Thread-safe.
 */
final class Readers {

    private static final long DISTRUST_MILLIS = 60_000;

    /** After a pause of the whole process the timer may run first: the thread gets the time until the next look. */
    private static final int LATE_LOOKS = 2;

    private final Threads threads;
    private final long timeoutNanos;
    private final Map<Thread, Reading> readings = new ConcurrentHashMap<>();
    /** Whether callers may run on the threads that read. */
    private volatile boolean trusting = true;
    /** A caller has waited for Redis on such a thread: no caller runs there again. */
    private volatile boolean deceived;

    /** What one thread is at. */
    static final class Reading {

        private static final long IDLE = Long.MIN_VALUE;

        private final Thread thread;
        /** When the thread began with the present reply; {@link #IDLE} when there is none. Only the thread writes it. */
        private volatile long since = IDLE;
        /** {@link #since} at the last look. Only looks use it. */
        private long sinceAtLook = IDLE;
        /** Looks in a row that found the same reply late. Only looks use it. */
        private int lateLooks;

        private Reading(Thread thread) {
            this.thread = thread;
        }

        void end() {
            since = IDLE;
        }
    }

    /** @param timeoutNanos the longest time that callers wait, and so the longest that one may hold up the others */
    Readers(Threads threads, long timeoutNanos) {
        this.threads = threads;
        this.timeoutNanos = timeoutNanos;
    }

    /** This thread is about to complete what waits for a reply. To be ended. */
    Reading begin() {
        Thread thread = Thread.currentThread();
        Reading reading = readings.get(thread);
        if (reading == null) {
            reading = new Reading(thread);
            readings.put(thread, reading);
        }
        reading.since = threads.nanos();
        return reading;
    }

    private boolean isReading() {
        Reading reading = readings.get(Thread.currentThread());
        return reading != null && reading.since != Reading.IDLE;
    }

    /** Whether this thread reads a reply, and may run callers that never block. */
    boolean mayRunCallers() {
        return trusting && isReading();
    }

    /**
     * Looks whether this thread is about to wait for a reply that it has to read itself. If so, warns of the caller once, and
     * no caller runs on these threads any more.
     *
     * @return whether the wait would never end
     */
    boolean catchWaitForItself() {
        if (!isReading()) {
            return false;
        }
        trusting = false;
        if (!deceived) {
            deceived = true;
            threads.warn(
                    () ->
                            "A caller asks a limit on Redis and waits for it on a thread that reads the replies of Redis; see"
                                    + " the stack. The limit decides as its on-failure says, and no caller runs on these threads"
                                    + " from now on. Ask asynchronously there, or go on elsewhere before, as by"
                                    + " publishOn(Schedulers.boundedElastic())",
                    new Throwable("waits for Redis on a thread that reads its replies"));
        }
        return true;
    }

    /** Looks for a thread that has been held up. Called by one thread at a time, while callers wait. */
    void look() {
        for (Reading reading : readings.values()) {
            long since = reading.since;
            boolean late = since != Reading.IDLE && threads.nanos() - since > timeoutNanos;
            reading.lateLooks = !late ? 0 : since == reading.sinceAtLook ? reading.lateLooks + 1 : 1;
            reading.sinceAtLook = since;
            if (reading.lateLooks >= LATE_LOOKS && trusting) {
                heldUp(reading.thread);
            }
        }
    }

    private void heldUp(Thread thread) {
        trusting = false;
        threads.later(DISTRUST_MILLIS, this::trustAgain);
        Throwable culprit = new Throwable("what thread " + thread.getName() + " is at");
        culprit.setStackTrace(thread.getStackTrace());
        threads.warn(
                () -> "A caller holds up thread " + thread.getName()
                        + ", which reads the replies of Redis for all limits,"
                        + " for more than " + timeoutNanos / 1_000_000
                        + " ms; see the stack. For a minute no caller runs"
                        + " on such a thread, and other limits go on by another connection. What follows a limit in a"
                        + " reactive chain must not block: go on elsewhere before, as by"
                        + " publishOn(Schedulers.boundedElastic())",
                culprit);
    }

    private void trustAgain() {
        for (Reading reading : readings.values()) {
            if (reading.lateLooks >= LATE_LOOKS && reading.since == reading.sinceAtLook) {
                threads.later(DISTRUST_MILLIS, this::trustAgain);
                return;
            }
        }
        trusting = !deceived;
    }
}
