package io.ratelimited.redis.internals.connection;

import io.ratelimited.core.Ticker;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The time that scripts are given: none while they may ask the server, otherwise the time of Redis as this node knows it.
 * That is the ticker, set by a plain {@code TIME}: the one of five with the shortest round trip, or of those before a reply
 * that was lost, which is wrong by half of that trip at the most; anew every second, and after an outage. Thread-safe.
 */
final class ServerTime {

    /** Beginning of the answer of a script that may not ask for the time; see {@code time.lua}. */
    private static final String REFUSED = "NOTIME";

    private static final int SAMPLES = 5;
    /** Until all nodes know that the server's clock has stepped, calls of one node may refill what another has spent. */
    private static final long AGAIN_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final long AGAIN_AFTER_FAILURE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private final Ticker ticker;
    private final Deadlines deadlines;
    private final Supplier<CompletionStage<List<Object>>> plainTime;
    private final Threads threads;
    private final CompletableFuture<Void> firstKnown = new CompletableFuture<>();

    private volatile boolean ofNode;
    /** Nanoseconds from the ticker to the time of Redis since 1970; null while unknown. */
    private volatile @Nullable Long offset;
    /** Why the time is unknown. */
    private volatile @Nullable Throwable failure;

    /** Samples are being taken. */
    private final AtomicBoolean sampling = new AtomicBoolean();
    /** Time of the next samples: {@link Threads#nanos}. */
    private volatile long nextAt;

    /** @param plainTime sends a plain {@code TIME} to the server that all nodes ask */
    ServerTime(
            Ticker ticker,
            boolean ofNode,
            Supplier<CompletionStage<List<Object>>> plainTime,
            Threads threads,
            Deadlines deadlines) {
        this.ticker = ticker;
        this.deadlines = deadlines;
        this.plainTime = plainTime;
        this.threads = threads;
        this.ofNode = ofNode;
        this.nextAt = threads.nanos();
    }

    /** Returns whether scripts can be given a time, or need none. */
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

    /**
     * Gives scripts the time of this node from now on if one has failed because it may not ask for it.
     *
     * @return whether that is the cause
     */
    boolean handleRefusal(Throwable cause) {
        String message = cause.getMessage();
        if (message == null || !message.startsWith(REFUSED)) {
            return false;
        }
        if (turnsToNode()) {
            String reason = message.substring(REFUSED.length()).strip();
            threads.warn(() -> "Redis rejects TIME in scripts (" + reason
                    + "); scripts get the time from the clock of this instance, synchronized by plain TIME commands");
            ask();
        }
        return true;
    }

    private synchronized boolean turnsToNode() {
        boolean first = !ofNode;
        ofNode = true;
        return first;
    }

    /** Asks Redis for the time again when that is due. */
    void look() {
        if (ofNode && threads.nanos() - nextAt >= 0) {
            ask();
        }
    }

    /** Asks Redis for the time, if this node keeps it. */
    void ask() {
        if (ofNode && !sampling.getAndSet(true)) {
            sample(SAMPLES, Long.MAX_VALUE, 0);
        }
    }

    private void sample(int left, long shortest, long best) {
        if (left == 0) {
            sampled(best, null);
            return;
        }
        long sentAt = ticker.nanos();
        time().whenComplete((time, unknown) -> {
            long trip = ticker.nanos() - sentAt;
            if (unknown != null) {
                // A server that is silent is not asked again at once.
                sampled(shortest == Long.MAX_VALUE ? null : best, Replies.cause(unknown));
            } else if (trip < shortest) {
                sample(left - 1, trip, time - sentAt - trip / 2);
            } else {
                sample(left - 1, shortest, best);
            }
        });
    }

    /** In nanoseconds since 1970. */
    private CompletableFuture<Long> time() {
        CompletableFuture<List<Object>> reply = Replies.of(plainTime).copy();
        deadlines.limit(reply, () -> {});
        return reply.thenApply(ServerTime::nanos);
    }

    /** Throws a runtime exception for the reply to another command: those of scripts begin with a number. */
    private static long nanos(List<Object> time) {
        return Long.parseLong((String) time.get(0)) * 1_000_000_000 + Long.parseLong((String) time.get(1)) * 1000;
    }

    /** Takes a sample. The known time stays in use until Redis has a better reply. */
    private void sampled(@Nullable Long found, @Nullable Throwable failed) {
        if (found != null) {
            offset = found;
            if (failure != null) {
                threads.warn(() -> "Redis returns the time");
            }
            failure = null;
            firstKnown.complete(null);
        } else if (offset == null) {
            if (failure == null) {
                threads.warn(() -> "Redis does not return the time (" + failed
                        + "). The on-failure policy applies. If TIME is rejected, permit it for the Redis user of the"
                        + " limits, at least outside scripts");
            }
            failure = failed;
        }
        nextAt = threads.nanos() + (found == null ? AGAIN_AFTER_FAILURE_NANOS : AGAIN_NANOS);
        sampling.set(false);
    }
}
