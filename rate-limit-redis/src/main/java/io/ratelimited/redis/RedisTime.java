package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import io.ratelimited.redis.RedisBackendOptions.TimeSource;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What scripts are told of the time: nothing while they may ask the server; else the time of Redis as this node knows it.
 * That is the ticker, set by a plain {@code TIME}: the one of five with the shortest round trip, which is wrong by half of
 * that at the most; anew every 30 seconds, and after an outage. Thread-safe.
 */
final class RedisTime {

    /** The log of transitions has the name of the class that users know. */
    private static final Logger LOG = System.getLogger(RedisBackend.class.getName());

    /** How scripts that may not ask for the time begin their answer; see {@code time.lua}. */
    private static final String REFUSED = "NOTIME";

    private static final int SAMPLES = 5;
    private static final long AGAIN_MILLIS = 30_000;
    private static final long AGAIN_AFTER_FAILURE_MILLIS = 500;

    private final Ticker ticker;
    private final long timeoutNanos;
    /** Which server of a cluster all nodes ask. */
    private final String key;

    private final Supplier<@Nullable RedisLink> link;
    private final ScheduledExecutorService housekeeping;
    private final CompletableFuture<Void> firstKnown = new CompletableFuture<>();

    private volatile boolean ofNode;
    /** Nanoseconds from the ticker to the time of Redis since 1970; null while unknown. */
    private volatile @Nullable Long offset;
    /** Why the time is unknown. */
    private volatile @Nullable Throwable failure;

    /** Samples are being taken. Guarded by this. */
    private boolean sampling;
    /** Guarded by this. */
    private @Nullable Future<?> next;

    RedisTime(
            RedisBackendOptions options,
            String key,
            Supplier<@Nullable RedisLink> link,
            ScheduledExecutorService housekeeping) {
        this.ticker = options.ticker();
        this.timeoutNanos = options.timeout().toNanos();
        this.key = key;
        this.link = link;
        this.housekeeping = housekeeping;
        this.ofNode = options.timeSource() == TimeSource.NODE;
    }

    /** Whether scripts can be told a time, or need none. */
    boolean isKnown() {
        return !ofNode || offset != null;
    }

    /** Completes when this node has known the time for the first time; never while scripts ask for it. */
    CompletableFuture<Void> firstKnown() {
        return firstKnown.copy();
    }

    /** Why {@link #isKnown} is false, as far as anybody has found out. */
    @Nullable
    Throwable failure() {
        return failure;
    }

    /** The first argument of every script. */
    String word() {
        Long current = offset;
        return !ofNode || current == null ? "" : Long.toString((ticker.nanos() + current) / 1000);
    }

    /** Whether a script has failed because it may not ask for the time: then none asks for it from now on. */
    boolean isRefused(Throwable cause) {
        String message = cause.getMessage();
        if (message == null || !message.startsWith(REFUSED)) {
            return false;
        }
        boolean first;
        synchronized (this) {
            first = !ofNode;
            ofNode = true;
        }
        if (first) {
            LOG.log(
                    Level.WARNING,
                    "Redis refuses TIME to scripts ({0}); they are told the time by this node''s clock, set by plain TIME commands",
                    message.substring(REFUSED.length()).strip());
            ask();
        }
        return true;
    }

    /** Asks Redis for the time, if this node keeps it. */
    void ask() {
        RedisLink current = link.get();
        synchronized (this) {
            if (!ofNode || sampling || current == null) {
                return;
            }
            sampling = true;
            if (next != null) {
                next.cancel(false);
            }
        }
        sample(current, SAMPLES, Long.MAX_VALUE, 0, null);
    }

    private void sample(RedisLink from, int left, long shortest, long best, @Nullable Throwable failed) {
        if (left == 0) {
            sampled(shortest == Long.MAX_VALUE ? null : best, failed);
            return;
        }
        long sentAt = ticker.nanos();
        time(from).whenComplete((time, unknown) -> {
            long trip = ticker.nanos() - sentAt;
            if (unknown != null) {
                sample(from, left - 1, shortest, best, Calls.unwrap(unknown));
            } else if (trip < shortest) {
                sample(from, left - 1, trip, time - sentAt - trip / 2, failed);
            } else {
                sample(from, left - 1, shortest, best, failed);
            }
        });
    }

    /** In nanoseconds since 1970. */
    private CompletableFuture<Long> time(RedisLink from) {
        try {
            return from.time(key)
                    .toCompletableFuture()
                    .orTimeout(timeoutNanos, TimeUnit.NANOSECONDS)
                    .thenApply(RedisTime::nanos);
        } catch (RuntimeException ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    private static long nanos(List<Object> time) {
        return Long.parseLong(time.get(0).toString()) * 1_000_000_000
                + Long.parseLong(time.get(1).toString()) * 1000;
    }

    /** What is known stays in use for as long as Redis does not tell anything better. */
    private void sampled(@Nullable Long found, @Nullable Throwable failed) {
        if (found != null) {
            offset = found;
            if (failure != null) {
                LOG.log(Level.WARNING, "Redis tells the time");
            }
            failure = null;
            firstKnown.complete(null);
        } else if (offset == null) {
            if (failure == null) {
                LOG.log(
                        Level.WARNING,
                        "Redis does not tell the time ({0}); limits decide as their on-failure says. If TIME is refused, allow it"
                                + " to the user of the limits, at least outside scripts",
                        String.valueOf(failed));
            }
            failure = failed;
        }
        synchronized (this) {
            sampling = false;
            next = housekeeping.schedule(
                    RedisBackend.guarded(this::ask),
                    found == null ? AGAIN_AFTER_FAILURE_MILLIS : AGAIN_MILLIS,
                    TimeUnit.MILLISECONDS);
        }
    }
}
