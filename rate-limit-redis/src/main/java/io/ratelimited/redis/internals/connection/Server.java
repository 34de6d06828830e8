package io.ratelimited.redis.internals.connection;

import io.ratelimited.redis.internals.connection.CommandSender.Redirection;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * One primary: its connection and its breaker. A connection that breaks is replaced at once, and meanwhile calls wait for
 * the new one within their timeout. A server that refuses connections or breaks one after the other, is silent for the
 * timeout or answers with errors is away: its breaker is open until a probe is answered in time, on the old connection or
 * on a new one. Thread-safe.
 */
final class Server {

    /*
     * The states are two, and independent: the connection is there, is being made (callers wait for it) or is missing (callers
     * fail); the breaker is closed or open. A new server is being connected, and its breaker is closed, unless it takes over in
     * an outage: then nobody asks it before V4.
     *
     * V1 There is one connection in use. Another one is used only while there is none, or while the breaker is open: a
     *    connection that comes late, after another is in use, is closed.
     * V2 A call that waits for a connection is answered: by the next one, or with a failure when connecting fails, when the
     *    breaker is open as the connection breaks, and when the server is retired.
     * V3 The breaker opens by a refused connection, by silence for the whole timeout since a caller's command was sent, by a
     *    redirection where a single server was named, by an answer that the server takes no writes, and by failures in a row; one
     *    connection that breaks is one failure, however many calls were pending there. The owner hears once of each of these openings that is an outage. A single
     *    late reply is none: the server is probed at once, and the owner hears of it, if it is silent for a second timeout. A
     *    command that no caller waits for does not open the breaker before that.
     * V4 The breaker closes by nothing but an answered probe: the answer has to come within the timeout, recovered() passes one
     *    answer at a time, and the owner sends the commands that come first before it readmits callers.
     * V5 A connection has one probe at a time. One that is closed has none: an answer to its probe means nothing.
     * V6 While the server is away, each look asks again on the connection in use, and connects anew if that is silent, missing or
     *    perhaps to a server that is not the primary any more. No attempt waits for another, but the first few, which are four
     *    seconds apart.
     * V7 A connection that was replaced is closed after the timeout, since commands that are pending there may still
     *    be answered; or by the reply to its probe, which comes behind theirs.
     * V8 A retired server takes no connection into use, and is not readmitted.
     */

    /** Bounds the attempts that are pending together, so that one which hangs does not hold up the next. */
    private static final long CONNECT_MILLIS = 4_000;

    /** A connection that breaks after so long under no call is no fault of the server: it may close those that nobody uses. */
    private static final long LASTING_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The same for the first: a server that is silent ends it earlier, but a slow processor loads classes for seconds. */
    private static final long FIRST_CONNECT_MILLIS = 10_000;

    /** The first attempts to connect begin so long after each other. */
    private static final long FIRST_NANOS = TimeUnit.SECONDS.toNanos(4);

    /** Decides about the consequences of a server's changes. */
    interface Owner {

        /** Asks on a connection whether the server decides, about a key of the server if one is known. */
        CompletionStage<List<Object>> probe(RedisLink link, @Nullable String key);

        /** A new server has its first connection. */
        void connected();

        /** A connection was replaced without an outage: the server may be another one, or have restarted without data. */
        void reconnected();

        /** The breaker is open, and nobody asks the server any more. */
        void away(Throwable reason);

        /** The server could not be reached again, or has not passed its probe. */
        void stillAway(Throwable reason);

        /** The server answers. Sends the commands that have to come first, and then calls {@link #readmit}. */
        void answers(Server server);
    }

    private final String address;
    private final RedisConnector connector;
    private final Threads threads;
    private final long timeoutNanos;
    private final Owner owner;
    private final Breaker breaker = new Breaker();
    /** The connection; not done while one is made for those who wait, failed while there is none. */
    private volatile CompletableFuture<RedisLink> ready = new CompletableFuture<>();
    /** Time at which the connection came into use: {@link Threads#nanos}. Guarded by this. */
    private long usedSince;
    /** The last connection that broke. Guarded by this. */
    private @Nullable RedisLink lastLost;
    /** The last connection whose break has counted. Guarded by this. */
    private @Nullable RedisLink counted;
    /** Time at which the server last answered: {@link Threads#nanos}. */
    private volatile long heardAt;
    /** The shortest time of a reply on the connection: what the network takes, whatever the server has to do. */
    private volatile long roundTrip;

    private volatile @Nullable Throwable lastFailure;
    /** The outage of which the owner has heard. */
    private volatile @Nullable Object announced;
    /** A key that the server holds, for the probe. */
    private volatile @Nullable String key;
    /** Connections whose probe has not been answered. */
    private final Set<RedisLink> probed = ConcurrentHashMap.newKeySet();

    /** Whether there has been a connection. */
    private volatile boolean everUsed;
    /** Time of the last attempt to connect: {@link Threads#nanos}. */
    private volatile long attemptedAt;

    private final Object recovery = new Object();
    private volatile boolean retired;

    Server(String address, RedisConnector connector, Threads threads, long timeoutNanos, Owner owner) {
        this.address = address;
        this.connector = connector;
        this.threads = threads;
        this.timeoutNanos = timeoutNanos;
        this.owner = owner;
        this.heardAt = threads.nanos();
    }

    String address() {
        return address;
    }

    boolean isAway() {
        return breaker.isOpen();
    }

    /** Returns whether the server is away for more than a single late reply. */
    boolean isOut() {
        Object outage = breaker.outage();
        return outage != null && outage == announced;
    }

    /** Tells the owner of an outage, once. */
    private void announce(Throwable reason) {
        synchronized (recovery) {
            Object outage = breaker.outage();
            if (retired || outage == null || outage == announced) {
                return;
            }
            announced = outage;
        }
        owner.away(reason);
    }

    /** See {@link Breaker#outage}. */
    @Nullable
    Object outage() {
        return breaker.outage();
    }

    /** The connection, or the one that is being made. */
    CompletableFuture<RedisLink> ready() {
        return ready;
    }

    /** The connection; null while there is none. */
    @Nullable
    RedisLink link() {
        CompletableFuture<RedisLink> current = ready;
        return current.isCompletedExceptionally() ? null : current.getNow(null);
    }

    /** Opens the breaker: nobody asks the server before it has got the commands that come first after an outage. */
    void takeOver() {
        breaker.open();
        announced = breaker.outage();
    }

    void connect() {
        if (retired) {
            return;
        }
        attemptedAt = threads.nanos();
        threads.call(
                        () -> connector.connect(address),
                        everUsed ? CONNECT_MILLIS : FIRST_CONNECT_MILLIS,
                        RedisLink::close)
                .whenComplete((made, failure) -> {
                    if (failure != null) {
                        notConnected(Replies.cause(failure));
                    } else if (retired || (link() != null && !breaker.isOpen())) {
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
        if (link() == null && !retired) {
            lastFailure = reason;
            breaker.open();
            if (isOut()) {
                owner.stillAway(reason);
            } else {
                announce(reason);
            }
            ready.completeExceptionally(Replies.notSent("not connected to Redis"));
        }
    }

    private void use(RedisLink made) {
        RedisLink before;
        CompletableFuture<RedisLink> awaited;
        boolean again;
        synchronized (this) {
            if (retired) {
                made.close();
                return;
            }
            again = everUsed;
            before = link();
            awaited = ready;
            ready = CompletableFuture.completedFuture(made);
            usedSince = threads.nanos();
            roundTrip = Long.MAX_VALUE;
            everUsed = true;
        }
        if (again && !breaker.isOpen()) {
            owner.reconnected();
        }
        awaited.complete(made);
        made.onBreak(() -> lost(made));
        if (before != null && before != made) {
            closeLater(before);
        }
    }

    /** Closes a connection after the timeout: commands that are pending there may still be answered. */
    private void closeLater(RedisLink unused) {
        threads.at(threads.nanos() + timeoutNanos, () -> closeUnused(unused));
    }

    private void lost(RedisLink broken) {
        CompletableFuture<RedisLink> next = new CompletableFuture<>();
        boolean lasted;
        synchronized (this) {
            if (link() != broken) {
                return;
            }
            ready = next;
            lastLost = broken;
            lasted = threads.nanos() - usedSince >= LASTING_NANOS;
        }
        close(broken);
        if (!lasted) {
            count(broken);
        }
        if (breaker.isOpen() || retired) {
            next.completeExceptionally(Replies.notSent("not connected to Redis"));
        } else {
            connect();
        }
    }

    /** Notes that a command has failed because its connection broke. */
    void failedBy(RedisLink broken) {
        boolean inUse;
        synchronized (this) {
            // The others were closed here.
            inUse = broken == link() || broken == lastLost;
        }
        if (inUse) {
            count(broken);
        }
    }

    /** A connection that broke counts once, however many calls were pending there. */
    private void count(RedisLink broken) {
        synchronized (this) {
            if (broken == counted) {
                return;
            }
            counted = broken;
        }
        if (!retired && breaker.failed()) {
            Throwable reason = new IOException("the connection breaks repeatedly");
            lastFailure = reason;
            announce(reason);
        }
    }

    /** Returns whether two replies, one after the other, are hardly there within the timeout. */
    boolean isFar() {
        long shortest = roundTrip;
        return shortest > timeoutNanos / 3 && shortest != Long.MAX_VALUE;
    }

    /** Notes that the server has answered a command that was sent at a value of {@link Threads#nanos}. */
    void answered(long sentAt) {
        answered();
        roundTrip = Math.min(roundTrip, heardAt - sentAt);
    }

    /** Notes that the server has answered a command. */
    void answered() {
        heardAt = threads.nanos();
        breaker.succeeded();
    }

    /**
     * A command has failed. If the server has been silent for the whole timeout since, the next caller would wait in vain
     * too.
     *
     * @param awaited whether a caller may have waited for it
     */
    void failed(String failedKey, long sentAt, Throwable reason, boolean awaited) {
        key = failedKey;
        lastFailure = reason;
        boolean late = reason instanceof TimeoutException;
        long now = threads.nanos();
        boolean silent = late && heardAt - sentAt <= 0 && now - sentAt >= timeoutNanos;
        if (!late) {
            heardAt = now;
        }
        if (retired) {
            return;
        }
        if (!silent) {
            boolean certain = isOneOfSeveral(reason) || Replies.takesNoWrites(reason);
            if (certain ? breaker.open() : breaker.failed()) {
                announce(reason);
            }
        } else if (!awaited || breaker.open()) {
            suspect(reason);
        }
    }

    /** Returns whether the only server that was named redirects: it never decides the keys of others. */
    private boolean isOneOfSeveral(Throwable failure) {
        return !connector.isCluster() && Redirection.of(failure, address) != null;
    }

    /** Asks a silent server once more; it is away if it stays silent for another timeout. */
    private void suspect(Throwable reason) {
        Object outage = breaker.outage();
        long since = threads.nanos();
        threads.at(since + timeoutNanos, () -> {
            if (breaker.outage() == outage && heardAt - since < 0 && !retired) {
                breaker.open();
                announce(reason);
            }
        });
        RedisLink current = link();
        if (current != null) {
            // Answered as soon as the server goes on, so that a pause is an outage only while it lasts.
            probe(current);
        }
    }

    /** Looks again for a connection, if there is none, and whether the server is back, if it is away. */
    void look() {
        RedisLink current = link();
        boolean away = breaker.isOpen();
        boolean silent = away && current != null && probed.contains(current);
        if (away && current != null) {
            probe(current);
        }
        // An attempt that hangs holds up no other one. The first loads many classes, for which it needs the processor.
        boolean first = !everUsed && !away && threads.nanos() - attemptedAt < FIRST_NANOS;
        if ((current == null && !first) || silent || (away && needsAnother(lastFailure))) {
            connect();
        }
    }

    /** Returns whether another connection may help: to a server that is silent here, or to the primary of now. */
    private static boolean needsAnother(@Nullable Throwable failure) {
        return failure instanceof TimeoutException
                || (failure != null && (Replies.isNotSent(failure) || Replies.isNoPrimary(failure)));
    }

    /** Asks on a connection, once at a time. */
    private void probe(RedisLink asked) {
        if (!probed.add(asked)) {
            return;
        }
        long sentAt = threads.nanos();
        if (asked != link()) {
            threads.later(CONNECT_MILLIS, () -> closeUnused(asked));
        }
        Replies.of(() -> owner.probe(asked, key)).whenComplete((reply, failure) -> {
            if (!probed.remove(asked)) {
                return;
            }
            boolean inUse = asked == link();
            if (failure != null && breaker.isOpen() && !Replies.isNotSent(failure)) {
                if (isOut()) {
                    owner.stillAway(Replies.cause(failure));
                } else {
                    announce(Replies.cause(failure));
                }
            }
            if (failure == null && threads.nanos() - sentAt <= timeoutNanos) {
                recovered(asked);
            } else if (failure == null && inUse && breaker.isOpen()) {
                // Late, as after a freeze: it may be in time now.
                probe(asked);
            } else if (failure != null && (inUse || (link() == null && !retired))) {
                // A failure of another connection must not end the search for one that replaces a silent one.
                lastFailure = Replies.cause(failure);
                if (!inUse) {
                    // A server that refuses scripts the time is asked for it on a connection in use.
                    use(asked);
                }
            } else {
                closeUnused(asked);
            }
        });
    }

    private void closeUnused(RedisLink asked) {
        if (asked != link()) {
            close(asked);
        }
    }

    /** Forgets the probe, which fails with its connection and says nothing about the server then. */
    private void close(RedisLink unused) {
        probed.remove(unused);
        // At the end the client closes all, and warns of one that is closed already.
        threads.run(unused::close);
    }

    private void recovered(RedisLink good) {
        synchronized (recovery) {
            heardAt = threads.nanos();
            if (retired || !breaker.isOpen()) {
                closeUnused(good);
                return;
            }
            if (good != link()) {
                use(good);
            }
            owner.answers(this);
        }
    }

    /** Callers may ask the server again. */
    void readmit() {
        breaker.close();
        if (link() == null) {
            // Broken meanwhile. A failure to connect opens the breaker again.
            connect();
        }
    }

    /** Ends the use of this server. */
    void retire() {
        RedisLink last;
        CompletableFuture<RedisLink> awaited;
        synchronized (this) {
            retired = true;
            last = link();
            awaited = ready;
            ready = CompletableFuture.failedFuture(Replies.notSent("not connected to Redis"));
        }
        awaited.completeExceptionally(Replies.notSent("not connected to Redis"));
        if (last != null) {
            closeLater(last);
        }
    }
}
