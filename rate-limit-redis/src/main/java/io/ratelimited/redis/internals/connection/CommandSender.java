package io.ratelimited.redis.internals.connection;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Sends a command to the server of its keys, unless that is away. A command that has not run is sent again: to another server
 * where the cluster says so, and once to the same one where a script could not read its keys. A reply that is late or
 * an error counts against the server that the command was last sent to, unless it says that the keys are not together.
 * Thread-safe.
 *
 * <p>All limits share the threads that read replies. Code of callers who have promised not to block runs on them, until one
 * of them waits for Redis there.
 */
final class CommandSender {

    private static final int MAX_REDIRECTIONS = 5;

    /**
     * Least time for a reply while the application starts: classes are loaded meanwhile, and scripts sent for the first time.
     */
    private static final long FIRST_REPLY_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final RedisConnector connector;
    private final Primaries primaries;
    private final Threads threads;
    private final Deadlines deadlines;
    private final Health health;
    private final ServerTime time;
    private final UnaryOperator<String> testTime;
    /** Depth of replies in this thread: within one, it may send a command whose reply is there already. */
    private final ThreadLocal<Integer> reading = ThreadLocal.withInitial(() -> 0);
    /** Whether a caller has waited for Redis on a thread that reads replies: no code of callers runs there again. */
    private volatile boolean deceived;

    private volatile boolean closed;
    /** Whether replies have at least {@link #FIRST_REPLY_NANOS}; callers wait no longer for that. */
    private volatile boolean starting;

    /** A command on the connection that it is routed to. */
    interface Command<T> {

        CompletionStage<T> sendOn(RedisLink link, boolean asking);

        /** Is given a reply that has come after its caller was decided without it, on a thread of the connection. */
        default void late(T reply) {}
    }

    /** @param testTime replaces the time argument of scripts in tests */
    CommandSender(
            RedisConnector connector,
            Primaries primaries,
            Threads threads,
            Deadlines deadlines,
            Health health,
            ServerTime time,
            UnaryOperator<String> testTime) {
        this.connector = connector;
        this.primaries = primaries;
        this.threads = threads;
        this.deadlines = deadlines;
        this.health = health;
        this.time = time;
        this.testTime = testTime;
    }

    /** The first argument of every script. */
    String time() {
        return testTime.apply(time.word());
    }

    void starting() {
        starting = true;
    }

    void started() {
        starting = false;
    }

    /** Refuses every command from now on. */
    void close() {
        closed = true;
    }

    boolean isClosed() {
        return closed;
    }

    /** Returns the reason why a command for a server is not sent; null if it is. */
    private @Nullable String refusal(@Nullable Server server) {
        if (closed) {
            return "the connection is closed";
        }
        if (server == null) {
            return "not connected to Redis";
        }
        if (server.isAway()) {
            return "not called, because it has just failed";
        }
        return time.isKnown() ? null : "Redis does not return the time";
    }

    /** The server that has a key; null while it is not available. */
    @Nullable
    Server available(String key) {
        Server server = primaries.of(key);
        return refusal(server) == null ? server : null;
    }

    /** The server that has a key, if that is the one which is about to decide again. */
    @Nullable
    Server recovering(String key, Server server) {
        return time.isKnown() && primaries.of(key) == server ? server : null;
    }

    /**
     * @param keys of the command, all of them on one server
     * @param awaited whether a caller may wait for it
     */
    <T> CompletableFuture<T> send(String[] keys, boolean awaited, Command<T> command) {
        Server server = primaries.of(keys[0]);
        String refusal = refusal(server);
        return refusal != null || server == null
                ? CompletableFuture.failedFuture(Replies.notSent(String.valueOf(refusal)))
                : send(server, keys, awaited, command);
    }

    /** Returns whether this thread reads a reply, and may run code of callers that never blocks. */
    boolean mayRunCallers() {
        return !deceived && reading.get() > 0;
    }

    /**
     * Looks whether this thread is about to wait for a reply that it has to read itself. If so, warns of the caller once, and
     * no caller runs on these threads any more.
     *
     * @return whether the wait would never end
     */
    boolean catchWaitForItself() {
        if (reading.get() == 0) {
            return false;
        }
        if (!deceived) {
            deceived = true;
            threads.warn(
                    () -> "Blocking rate limit call on a Redis I/O thread; see the stack. The on-failure policy was"
                            + " applied, and callbacks no longer run on these threads. Call it asynchronously,"
                            + " or on another thread, such as with publishOn(Schedulers.boundedElastic())",
                    new Throwable("blocks a thread that reads the replies of Redis"));
        }
        return true;
    }

    /** A command that no caller waits for, whose keys are all on the server. */
    <T> CompletableFuture<T> send(Server server, String[] keys, Command<T> command) {
        return send(server, keys, false, command);
    }

    private <T> CompletableFuture<T> send(Server server, String[] keys, boolean awaited, Command<T> command) {
        health.called();
        Reply<T> reply = new Reply<>(keys, awaited, command, server);
        reply.sendTo(server, false);
        long first = reply.sentAt + FIRST_REPLY_NANOS;
        if (starting && first - reply.deadline > 0) {
            threads.at(first, () -> Deadlines.expire(reply, FIRST_REPLY_NANOS));
        } else {
            deadlines.add(reply);
        }
        return reply;
    }

    /**
     * The reply to one command. Fails when it is late; the command is then taken back if it has not been sent, and gets its reply
     * all the same if it has.
     */
    private final class Reply<T> extends CompletableFuture<T> implements Deadlines.Timed {

        private final String[] keys;
        /** The first of them. */
        private final String key;

        private final boolean awaited;
        private final Command<T> command;
        private int redirections;
        /** Whether the keys have been removed because no script could read them. */
        private boolean repaired;
        /** The server that the command was last sent to, and when. */
        private volatile Server server;

        private volatile long sentAt = threads.nanos();
        private final long deadline = deadlines.of(sentAt);
        private volatile @Nullable Runnable takeBack;

        private Reply(String[] keys, boolean awaited, Command<T> command, Server server) {
            this.keys = keys;
            this.key = keys[0];
            this.awaited = awaited;
            this.command = command;
            this.server = server;
        }

        private void sendTo(Server target, boolean asking) {
            server = target;
            target.ready().whenComplete((link, unconnected) -> {
                if (unconnected != null) {
                    completeExceptionally(Replies.cause(unconnected));
                } else if (!isDone()) {
                    sendOn(link, target, asking);
                }
            });
        }

        private void sendOn(RedisLink link, Server target, boolean asking) {
            CompletableFuture<T> answer = Replies.of(() -> command.sendOn(link, asking));
            takeBack = () -> link.takeBack(answer);
            if (isDone()) {
                // It has expired while it was sent.
                link.takeBack(answer);
            }
            answer.whenComplete((value, failure) -> {
                if (failure != null) {
                    failed(link, target, Replies.cause(failure));
                } else {
                    target.answered(sentAt);
                    reading.set(reading.get() + 1);
                    try {
                        if (!complete(value)) {
                            command.late(value);
                        }
                    } finally {
                        reading.set(reading.get() - 1);
                    }
                }
            });
        }

        private void failed(RedisLink link, Server target, Throwable failure) {
            if (isDone()) {
                return;
            }
            Throwable cause = connector.isCluster() ? failure : Redirection.asFailure(failure);
            if (!repaired && Replies.isCorruptKey(cause)) {
                repaired = true;
                repair(link, target, cause);
                return;
            }
            Redirection redirection = connector.isCluster() ? Redirection.of(cause, target.address()) : null;
            if (redirection != null && redirections++ < MAX_REDIRECTIONS) {
                redirect(target, redirection);
                return;
            }
            // Counted before the failure is reported: its listeners must find the breaker as the failure leaves it.
            if (Replies.areKeysApart(cause)) {
                // The caller divides the command.
                target.answered();
            } else if (!Replies.isNotSent(cause)) {
                health.failed(cause);
                if (Replies.isBreak(cause)) {
                    target.failedBy(link);
                } else if (!time.handleRefusal(cause)) {
                    target.failed(key, sentAt, cause, awaited);
                }
            }
            completeExceptionally(cause);
        }

        /** Removes a key that no script can read, before any later command on the connection. */
        private void repair(RedisLink link, Server target, Throwable cause) {
            target.answered();
            health.corrupt(keys, cause);
            for (String corrupt : keys) {
                link.delete(corrupt);
            }
            sendOn(link, target, false);
        }

        private void redirect(Server target, Redirection redirection) {
            target.answered();
            if (!redirection.once()) {
                primaries.discover();
            }
            @Nullable Server other = primaries.at(redirection.address());
            if (other == null || other.isAway()) {
                completeExceptionally(Replies.notSent("not called, because it has just failed"));
            } else {
                sentAt = threads.nanos();
                sendTo(other, redirection.once());
            }
        }

        @Override
        public long deadline() {
            return deadline;
        }

        @Override
        public void expire(TimeoutException reason) {
            health.timedOut();
            server.failed(key, sentAt, reason, awaited);
            if (completeExceptionally(reason)) {
                Runnable unsent = takeBack;
                if (unsent != null) {
                    unsent.run();
                }
            }
        }
    }

    /**
     * Another server of a cluster to send a command to, which has not run.
     *
     * @param once for this command only, while a slot moves
     */
    record Redirection(String address, boolean once) {

        /**
         * Returns the failure to report where a single server was named; failures that are no redirections stay as they are. It
         * begins with the reply, by which a command has changed nothing.
         */
        static Throwable asFailure(Throwable failure) {
            return of(failure, "") == null
                    ? failure
                    : new IllegalStateException(failure.getMessage()
                            + " (the address is a node of a cluster: name two of its nodes, or one twice)");
        }

        /** From {@code MOVED <slot> <address>} and {@code ASK <slot> <address>}; null for other failures. */
        static @Nullable Redirection of(Throwable failure, String from) {
            String message = String.valueOf(failure.getMessage());
            if (!message.startsWith("MOVED ") && !message.startsWith("ASK ")) {
                return null;
            }
            String address = message.substring(message.lastIndexOf(' ') + 1);
            // Without a host it is that of the server which answered.
            String host = address.startsWith(":") ? from.substring(0, Math.max(0, from.lastIndexOf(':'))) : "";
            return new Redirection(host + address, message.startsWith("ASK "));
        }
    }
}
