package io.ratelimited.redis.connection;

import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/** What has become of the commands, and since when Redis decides or does not. Logs each change once. Thread-safe. */
public final class Health {

    private static final long CORRUPT_LOG_PAUSE = TimeUnit.MINUTES.toNanos(1);

    private final Threads threads;
    private final LongAdder calls = new LongAdder();
    private final LongAdder timeouts = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private volatile @Nullable Throwable lastFailure;
    private volatile Instant since;
    /** The log says that Redis does not decide. Guarded by this. */
    private boolean away;
    /** Redis has decided before. Guarded by this. */
    private boolean everBack;

    /** Guarded by this. */
    private long corruptLoggedAt;

    Health(Threads threads) {
        this.threads = threads;
        this.corruptLoggedAt = threads.nanos() - CORRUPT_LOG_PAUSE;
        this.since = threads.now();
    }

    /** Commands sent. */
    public long calls() {
        return calls.sum();
    }

    /** Commands that were not answered in time. */
    public long timeouts() {
        return timeouts.sum();
    }

    /** Commands that failed otherwise. */
    public long errors() {
        return errors.sum();
    }

    /** When Redis began to decide, or ceased to. */
    public Instant since() {
        return since;
    }

    @Nullable
    Throwable lastFailure() {
        return lastFailure;
    }

    void called() {
        calls.increment();
    }

    void timedOut() {
        timeouts.increment();
    }

    void failed(Throwable reason) {
        errors.increment();
        lastFailure = reason;
    }

    /** A probe or an attempt to connect has failed. */
    void stillAway(Throwable reason) {
        lastFailure = reason;
    }

    /** Keys held what no limit has written, and are removed. Logged once a minute. */
    synchronized void corrupt(String[] keys, Throwable reason) {
        long now = threads.nanos();
        if (now - corruptLoggedAt >= CORRUPT_LOG_PAUSE) {
            corruptLoggedAt = now;
            // Callers may have put control characters into keys.
            threads.warn(() -> "Redis held what no limit has written under "
                    + String.join(", or ", keys).replaceAll("\\p{Cntrl}", "?") + "; the budget begins anew ("
                    + Replies.text(reason) + ")");
        }
    }

    /** Redis does not decide, or part of it. */
    synchronized void away(Throwable reason) {
        lastFailure = reason;
        if (!away) {
            away = true;
            if (everBack) {
                since = threads.now();
            }
            String begin = everBack ? "Redis does not decide (" : "Redis cannot be reached (";
            threads.warn(() -> begin + Replies.text(reason) + "); limits decide as their on-failure says");
        }
    }

    /** The application goes on without having reached Redis. */
    public synchronized void late(long millis) {
        if (!away && !everBack) {
            away = true;
            threads.warn(() -> "Redis has not been reached within " + millis
                    + " ms and is still tried; limits decide as their on-failure says");
        }
    }

    /** All of Redis decides. */
    synchronized void back() {
        if (away || !everBack) {
            since = threads.now();
        }
        if (away) {
            String text = everBack ? "Redis decides again" : "Redis decides: connected";
            threads.warn(() -> text);
        }
        away = false;
        everBack = true;
    }
}
