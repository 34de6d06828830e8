package io.ratelimited.redis.internals.connection;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The outcomes of commands, and the time since which Redis decides or does not. Logs each change once, but of a server that
 * comes and goes so few in a minute that the log can be read. Thread-safe.
 */
public final class Health {

    private static final long LOG_PAUSE = TimeUnit.MINUTES.toNanos(1);
    private static final int LOGGED_CHANGES = 10;

    private final Threads threads;
    private final LongAdder calls = new LongAdder();
    private final LongAdder timeouts = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private volatile @Nullable Throwable lastFailure;
    private final Map<String, String> problems = new ConcurrentSkipListMap<>();
    private volatile Instant since;
    /** The log says that Redis does not decide. Guarded by this. */
    private boolean away;
    /** Redis has decided before. Guarded by this. */
    private boolean everBack;

    /** Guarded by this. */
    private long corruptLoggedAt;
    /** Time of the first of the {@link #changes} that are counted together. Guarded by this. */
    private long changesSince;
    /** Guarded by this. */
    private int changes;

    /** Description of local limits meanwhile, for the log. */
    private volatile Supplier<String> share = () -> "";

    Health(Threads threads) {
        this.threads = threads;
        this.corruptLoggedAt = threads.nanos() - LOG_PAUSE;
        this.changesSince = threads.nanos() - LOG_PAUSE;
        this.since = threads.now();
    }

    /** Sets the description of local limits while Redis does not decide, for the log. */
    public void describeShare(Supplier<String> text) {
        share = text;
    }

    /** Commands sent. */
    public long calls() {
        return calls.sum();
    }

    /** Commands that were not answered in time, and calls whose commands were not in time together. */
    public long timeouts() {
        return timeouts.sum();
    }

    /** Commands that failed otherwise. */
    public long errors() {
        return errors.sum();
    }

    /** Returns the time at which Redis began to decide, or ceased to. */
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

    /** Counts a command that was not answered in time, or a call whose commands were not in time together. */
    public void timedOut() {
        timeouts.increment();
    }

    void failed(Throwable reason) {
        errors.increment();
        lastFailure = reason;
    }

    /** A probe or an attempt to connect has failed. */
    synchronized void stillAway(Throwable reason) {
        lastFailure = reason;
        if (away && changes > LOGGED_CHANGES && threads.nanos() - changesSince >= LOG_PAUSE) {
            Instant begin = since.truncatedTo(ChronoUnit.SECONDS);
            logChange(
                    threads::warn,
                    () -> "Redis has been unavailable since " + begin + " (" + Replies.text(reason)
                            + "). The on-failure policy applies" + share.get() + remedy(reason) + " [RL-301]");
        }
    }

    /** Notes keys with contents that no limit has written, and that are removed. Logged once a minute. */
    synchronized void corrupt(String[] keys, Throwable reason) {
        long now = threads.nanos();
        if (now - corruptLoggedAt >= LOG_PAUSE) {
            corruptLoggedAt = now;
            threads.warn(() -> "Redis has unreadable data under "
                    + String.join(", or ", keys) + "; it is treated as a new key ("
                    + Replies.text(reason) + ")");
        }
    }

    /** Returns the reasons why this node does not know all that nodes share, though Redis decides. */
    public List<String> problems() {
        return List.copyOf(problems.values());
    }

    /**
     * Notes that something that nodes share is not known here. Logged when it begins.
     *
     * @param subject the subject, which has one problem at a time
     * @param text null if there is none
     */
    public synchronized void problem(String subject, @Nullable String text) {
        if (text == null) {
            problems.remove(subject);
        } else if (problems.put(subject, text) == null) {
            threads.warn(() -> text);
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
            logChange(
                    threads::warn,
                    () -> "Redis is unavailable (" + Replies.text(reason) + "). The on-failure policy applies"
                            + share.get() + remedy(reason) + " [RL-301]");
        }
    }

    /** A reply is late for a slow server, a slow network or a JVM that has too little processor time. */
    private static String remedy(Throwable reason) {
        return reason instanceof TimeoutException
                ? ". Check the connection, the load of this JVM, and rate-limit.redis.timeout."
                : ". Check the connection.";
    }

    /** A server whose answers take about as long as the timeout comes and goes several times a second. */
    private void logChange(Consumer<Supplier<String>> log, Supplier<String> text) {
        long now = threads.nanos();
        if (now - changesSince >= LOG_PAUSE) {
            changesSince = now;
            changes = 0;
        }
        changes++;
        if (changes < LOGGED_CHANGES) {
            log.accept(text);
        } else if (changes == LOGGED_CHANGES) {
            log.accept(() ->
                    text.get() + "; this changes often, so it is not logged for a minute: see the health endpoint");
        }
    }

    /** Logs that the application goes on without having reached Redis. */
    public synchronized void late(long millis) {
        if (!away && !everBack) {
            away = true;
            threads.warn(() -> "Redis has not been reached within " + millis
                    + " ms; attempts continue. The on-failure policy applies" + share.get()
                    + ". [RL-301]");
        }
    }

    /** All of Redis decides. */
    synchronized void back() {
        if (away || !everBack) {
            since = threads.now();
        }
        if (away && everBack) {
            logChange(threads::warn, () -> "Redis is available again");
        } else if (away) {
            logChange(threads::info, () -> "Redis is available: connected");
        }
        away = false;
        everBack = true;
    }
}
