package io.ratelimited.redis.connection;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * One primary: its connection and its breaker. A connection that breaks is replaced at once, and meanwhile calls wait for
 * the new one within their timeout. A server that refuses connections, is silent for the timeout or answers with errors
 * is away: its breaker is open until a probe is answered in time, on the old connection or on a new one. Thread-safe.
 */
final class Server {

    private static final long FIRST_PAUSE_MILLIS = 100;
    private static final long LONGEST_PAUSE_MILLIS = 250;
    private static final long CONNECT_MILLIS = 5_000;
    /** Attempts to connect that may be under way at the same time, so that one which hangs does not hold up the next. */
    private static final int MOST_ATTEMPTS = 20;

    /** Hears of the changes of a server, in the order in which they happen. */
    interface Listener {

        /** The breaker is open, and nobody asks the server any more. */
        void away(Server server, Throwable reason);

        /** The server is still away. */
        void stillAway(Server server);

        /** A probe has failed for a reason. */
        void refused(Throwable reason);

        /** The server answers. The breaker closes when this returns, so that what is sent here comes first. */
        void recovering(Server server);

        /** The breaker is closed. */
        void back(Server server);
    }

    private final String address;
    private final RedisConnector connector;
    private final BiFunction<RedisLink, @Nullable String, CompletionStage<?>> probe;
    private final long timeoutNanos;
    private final Threads threads;
    private final Listener listener;
    private final Breaker breaker = new Breaker();
    private final AtomicInteger attempts = new AtomicInteger();

    private volatile @Nullable RedisLink link;
    /** Completes with {@link #link}, or fails when the server cannot be connected to. */
    private volatile CompletableFuture<RedisLink> ready = new CompletableFuture<>();
    /** When the server last answered: {@link Threads#nanos}. */
    private volatile long heardAt;

    private volatile @Nullable Throwable lastFailure;
    /** A key that the server holds, for the probe. */
    private volatile @Nullable String key;

    private final Object recovery = new Object();
    private volatile boolean retired;
    private volatile long pause = FIRST_PAUSE_MILLIS;
    /** The next look at a server that is away. Guarded by this. */
    private @Nullable Runnable cancelNext;
    /** Connections whose probe has not been answered. Guarded by this. */
    private final Set<RedisLink> probed = new HashSet<>(2);

    /** @param probe asks on a connection whether the server decides, about a key if one is known */
    Server(
            String address,
            RedisConnector connector,
            BiFunction<RedisLink, @Nullable String, CompletionStage<?>> probe,
            long timeoutNanos,
            Threads threads,
            Listener listener) {
        this.address = address;
        this.connector = connector;
        this.probe = probe;
        this.timeoutNanos = timeoutNanos;
        this.threads = threads;
        this.listener = listener;
        this.heardAt = threads.nanos();
    }

    String address() {
        return address;
    }

    boolean isAway() {
        return breaker.isOpen();
    }

    /** The connection, or the one that is being made. */
    CompletableFuture<RedisLink> ready() {
        return ready;
    }

    void connect() {
        if (retired || attempts.get() >= MOST_ATTEMPTS) {
            return;
        }
        attempts.incrementAndGet();
        threads.call(() -> connector.connect(address), CONNECT_MILLIS, RedisLink::close)
                .whenComplete((made, failure) -> {
                    attempts.decrementAndGet();
                    if (failure != null) {
                        notConnected(Replies.cause(failure));
                    } else if (retired || (link != null && !breaker.isOpen())) {
                        // Late: another connection is in use, perhaps to the primary that was promoted meanwhile.
                        made.close();
                    } else if (breaker.isOpen()) {
                        probe(made);
                    } else {
                        use(made);
                    }
                });
    }

    private void notConnected(Throwable reason) {
        if (link == null && !retired) {
            lastFailure = reason;
            if (breaker.open()) {
                away(reason);
            }
            ready.completeExceptionally(new NotSentException("not connected to Redis"));
        }
    }

    private void use(RedisLink made) {
        RedisLink before;
        CompletableFuture<RedisLink> awaited;
        synchronized (this) {
            before = link;
            link = made;
            awaited = ready;
            if (awaited.isDone()) {
                ready = CompletableFuture.completedFuture(made);
            }
        }
        if (!awaited.complete(made)) {
            synchronized (this) {
                if (link == made) {
                    ready = CompletableFuture.completedFuture(made);
                }
            }
        }
        made.onBreak(() -> lost(made));
        if (before != null && before != made) {
            // What is under way there may still be answered.
            threads.later(TimeUnit.NANOSECONDS.toMillis(timeoutNanos), before::close);
        }
    }

    private void lost(RedisLink broken) {
        synchronized (this) {
            if (link != broken) {
                return;
            }
            link = null;
            ready = new CompletableFuture<>();
        }
        broken.close();
        if (!breaker.isOpen()) {
            connect();
        } else {
            ready.completeExceptionally(new NotSentException("not connected to Redis"));
        }
    }

    /** The server has answered as it should. */
    void answered() {
        heardAt = threads.nanos();
        breaker.succeeded();
    }

    /** The server has answered when nobody waited any more: it may be back. */
    void answeredLate() {
        heardAt = threads.nanos();
        RedisLink current = link;
        if (breaker.isOpen() && current != null) {
            probe(current);
        }
    }

    /** The server has answered with an error, or a command could not be sent. */
    void failed(Throwable reason, String failedKey) {
        heardAt = threads.nanos();
        key = failedKey;
        lastFailure = reason;
        if (breaker.failed()) {
            away(reason);
        }
    }

    /**
     * The server has not answered a command in time. Nothing else heard since then: the server is silent, and the next
     * caller would wait in vain too.
     */
    void timedOut(long sentAt, String askedKey, TimeoutException reason) {
        key = askedKey;
        lastFailure = reason;
        boolean silent = heardAt - sentAt <= 0;
        if (silent ? breaker.open() : breaker.failed()) {
            away(reason);
        }
    }

    private void away(Throwable reason) {
        pause = FIRST_PAUSE_MILLIS;
        listener.away(this, reason);
        later();
    }

    private synchronized void later() {
        long current = pause;
        pause = Math.min(LONGEST_PAUSE_MILLIS, 2 * current);
        // Nodes that begin together must not ask together.
        long jitter = Math.floorMod(threads.nanos(), 2 * current / 5) - current / 5;
        if (cancelNext != null) {
            cancelNext.run();
        }
        cancelNext = threads.later(current + jitter, this::lookAgain);
    }

    private void lookAgain() {
        if (retired || !breaker.isOpen()) {
            return;
        }
        try {
            RedisLink current = link;
            if (current != null) {
                probe(current);
            }
            if (current == null || needsAnother(lastFailure)) {
                connect();
            }
            listener.stillAway(this);
        } finally {
            later();
        }
    }

    /** Whether another connection may help: to a server that is silent here, or to the primary of now. */
    private static boolean needsAnother(@Nullable Throwable failure) {
        return failure instanceof TimeoutException
                || (failure != null && String.valueOf(failure.getMessage()).startsWith("READONLY"));
    }

    /** Asks on a connection, once at a time. */
    private void probe(RedisLink asked) {
        synchronized (this) {
            if (!probed.add(asked)) {
                return;
            }
        }
        long sentAt = threads.nanos();
        CompletionStage<?> sent;
        try {
            sent = probe.apply(asked, key);
        } catch (RuntimeException | Error ex) {
            sent = CompletableFuture.failedFuture(ex);
        }
        if (asked != link) {
            threads.later(CONNECT_MILLIS, () -> closeUnused(asked));
        }
        sent.whenComplete((reply, failure) -> {
            synchronized (this) {
                probed.remove(asked);
            }
            if (failure != null) {
                Throwable reason = Replies.cause(failure);
                if (asked == link) {
                    // What another connection says must not end the search for one that replaces a silent one.
                    lastFailure = reason;
                }
                listener.refused(reason);
                closeUnused(asked);
            } else if (threads.nanos() - sentAt <= timeoutNanos) {
                recovered(asked);
            } else if (asked == link && breaker.isOpen()) {
                // Late, as after a freeze: it may be in time now.
                probe(asked);
            } else {
                closeUnused(asked);
            }
        });
    }

    private void closeUnused(RedisLink asked) {
        if (asked != link) {
            asked.close();
        }
    }

    private void recovered(RedisLink good) {
        boolean closed;
        synchronized (recovery) {
            if (retired || !breaker.isOpen()) {
                closeUnused(good);
                return;
            }
            if (good != link) {
                use(good);
            }
            heardAt = threads.nanos();
            try {
                listener.recovering(this);
            } finally {
                closed = breaker.close();
            }
        }
        if (closed) {
            listener.back(this);
            if (link == null) {
                // Broken meanwhile. A failure to connect opens the breaker again.
                connect();
            }
        }
    }

    /** Is not used any more. Closes the connection after what is under way has had its time. */
    void retire() {
        retired = true;
        RedisLink last;
        synchronized (this) {
            last = link;
            link = null;
        }
        ready.completeExceptionally(new NotSentException("not connected to Redis"));
        if (last != null) {
            threads.later(TimeUnit.NANOSECONDS.toMillis(timeoutNanos), last::close);
        }
    }
}
