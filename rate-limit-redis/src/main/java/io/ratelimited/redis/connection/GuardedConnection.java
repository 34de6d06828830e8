package io.ratelimited.redis.connection;

import io.lettuce.core.RedisException;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.connection.Deliveries.Delivery;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The one place where a command is sent to Redis. It holds for every command, whoever sends it:
 *
 * <ol>
 *   <li>Nothing is sent to a server whose breaker is open, except its probe and, once that is answered, what has to come first.
 *   <li>A command is sent at most once. What is under way when a connection breaks fails; a redirection within a cluster is
 *       followed, because the command has not run.
 *   <li>A reply that is later than the timeout is a failure, from the first of an outage.
 *   <li>What is under way is bounded.
 *   <li>Connecting, discovering, probing and logging never wait for each other, and no thread ends because of a failure.
 * </ol>
 *
 * <p>Thread-safe.
 */
public final class GuardedConnection implements AutoCloseable {

    private static final int MOST_REDIRECTIONS = 5;
    private static final long DISCOVERY_MILLIS = 3_000;
    private static final int MOST_DISCOVERIES = 12;
    private static final long DISCOVERY_PAUSE_NANOS = 200_000_000;
    private static final long DISCOVER_AGAIN_MILLIS = 400;
    private static final long DELIVER_AGAIN_MILLIS = 200;

    private final RedisConnector connector;
    private final KeyNames keys;
    private final long timeoutNanos;
    private final UnaryOperator<String> testTime;
    private final Threads threads;
    private final EventLog log;
    private final Deadlines deadlines;
    private final ServerTime time;
    private final Deliveries deliveries = new Deliveries();
    private final AtomicBoolean deliveryIsDue = new AtomicBoolean();
    private final List<Runnable> onRecovery = new CopyOnWriteArrayList<>();

    private final Map<String, Server> servers = new ConcurrentHashMap<>();
    private final AtomicInteger discoveries = new AtomicInteger();
    private final AtomicLong discoveredAt;
    private final CompletableFuture<Void> connected = new CompletableFuture<>();

    private final LongAdder calls = new LongAdder();
    private final LongAdder timeouts = new LongAdder();
    private final LongAdder errors = new LongAdder();
    /** How many outages have ended. */
    private final AtomicInteger recoveries = new AtomicInteger();

    private volatile Instant since;
    private volatile @Nullable Throwable lastFailure;
    /** The log says that Redis does not decide. Guarded by this. */
    private boolean reportedAway;
    /** Guarded by this. */
    private boolean everConnected;

    private volatile boolean closed;

    /** A command on the connection that it is routed to. */
    private interface Command<T> {

        CompletionStage<T> sendOn(RedisLink link, boolean asking);
    }

    /**
     * @param ticker the time that a node tells to scripts
     * @param threads time and timer of the connection itself, which a test may leave as they are when it moves the ticker by hand
     * @param timeOfNode scripts are given the time by this node from the start
     * @param testTime replaces the time argument of scripts in tests; see {@code time.lua}
     */
    public GuardedConnection(
            RedisConnector connector,
            KeyNames keys,
            long timeoutNanos,
            Ticker ticker,
            Threads threads,
            boolean timeOfNode,
            UnaryOperator<String> testTime) {
        this.connector = connector;
        this.keys = keys;
        this.timeoutNanos = timeoutNanos;
        this.testTime = testTime;
        this.threads = threads;
        this.log = threads.log();
        this.since = threads.now();
        this.discoveredAt = new AtomicLong(threads.nanos() - DISCOVERY_PAUSE_NANOS);
        this.deadlines = new Deadlines(threads, timeoutNanos);
        this.time = new ServerTime(ticker, timeoutNanos, timeOfNode, this::plainTime, threads);
        connected.thenRun(time::ask);
        rehearse();
        discover();
    }

    /** Lets a reply that never comes expire, which loads the classes that the first callers of an outage would wait for. */
    private void rehearse() {
        Server silent = new Server("", connector, this::probe, timeoutNanos, threads, new Server.Listener() {
            @Override
            public void away(Server server, Throwable reason) {
                deadlines.giveUp(server, reason);
                Replies.text(reason);
            }

            @Override
            public void stillAway(Server server) {}

            @Override
            public void refused(Throwable reason) {}

            @Override
            public void recovering(Server server) {}

            @Override
            public void back(Server server) {}
        });
        long now = threads.nanos();
        PendingReply<Object> reply = new PendingReply<>(silent, now, () -> silent.timedOut(now, "", timeout()));
        deadlines.add(reply);
        silent.retire();
    }

    /** Completes when this node has been connected for the first time, and knows the time if it has to. */
    public CompletableFuture<Void> connected() {
        return connected.thenCompose(done -> time.isKnown() ? connected : time.firstKnown());
    }

    public long timeoutNanos() {
        return timeoutNanos;
    }

    /** Fails a future that is not done within the timeout. */
    public void limitTime(CompletableFuture<?> future) {
        long deadline = deadlines.next();
        deadlines.add(new Deadlines.Timed() {
            @Override
            public boolean isDone() {
                return future.isDone();
            }

            @Override
            public long deadline() {
                return deadline;
            }

            @Override
            public void expire() {
                if (!future.isDone()) {
                    future.completeExceptionally(new TimeoutException("Redis did not decide in time"));
                }
            }
        });
    }

    public boolean isCluster() {
        return connector.isCluster();
    }

    /** The first argument of every script. */
    public String time() {
        return testTime.apply(time.word());
    }

    /** How many outages have ended. */
    public int recoveries() {
        return recoveries.get();
    }

    /** Runs before Redis decides again after an outage; what is delivered there comes first. Must not block. */
    public void onRecovery(Runnable task) {
        onRecovery.add(task);
    }

    /** Runs a task that does not block after a time, or again and again. */
    public void later(long millis, Runnable task) {
        threads.later(millis, task);
    }

    /** Runs a task that does not block again and again. */
    public void every(long millis, Runnable task) {
        threads.every(millis, task);
    }

    /** Logs that the application goes on without a connection, unless that has been logged. */
    public synchronized void reportLate(long millis) {
        if (!connected.isDone() && !reportedAway) {
            reportedAway = true;
            log.warn("Redis has not been reached within " + millis
                    + " ms and is still tried; limits decide as their on-failure says");
        }
    }

    /** Whether a command for a key would be refused. */
    public boolean isDown(String key) {
        return refusal(server(key)) != null;
    }

    private @Nullable String refusal(@Nullable Server server) {
        if (closed) {
            return "the connection is closed";
        }
        if (server == null) {
            return "not connected to Redis";
        }
        if (server.isAway()) {
            return "not asked, because it has just failed";
        }
        return time.isKnown() ? null : "Redis does not tell the time";
    }

    private @Nullable Server server(String key) {
        if (servers.isEmpty()) {
            return null;
        }
        String address = connector.address(key);
        Server server = address == null ? null : servers.get(address);
        if (server == null && discoveries.get() == 0) {
            // No primary is known for the slot, or one that was not discovered.
            discover();
        }
        return server;
    }

    /**
     * Runs a script on the keys' server, once. Fails when the server is away or does not answer in time, or answers with an
     * error.
     */
    public CompletableFuture<List<Object>> eval(Script script, String[] on, ScriptArguments args) {
        return send(on[0], (link, asking) -> link.eval(script, on, args, asking));
    }

    /** Removes a key, as {@link #eval} would. */
    public CompletableFuture<Long> delete(String key) {
        return send(key, (link, asking) -> link.delete(key));
    }

    /**
     * Runs a script that nobody waits for, now or as the first thing after an outage.
     *
     * @param arguments makes the arguments when the script is sent; null when there is nothing to send any more
     * @param repeatable running the script twice does no harm
     */
    public void deliver(Script script, String key, Supplier<@Nullable ScriptArguments> arguments, boolean repeatable) {
        deliver(new Delivery(script, key, arguments, repeatable, 0));
    }

    private void deliver(Delivery delivery) {
        Server server = server(delivery.key());
        if (server == null || refusal(server) != null) {
            keep(delivery);
        } else {
            send(server, delivery);
        }
    }

    private void send(Server server, Delivery delivery) {
        String[] on = {delivery.key()};
        ScriptArguments args = delivery.arguments().get();
        if (args == null) {
            return;
        }
        send(server, delivery.key(), (link, asking) -> link.eval(delivery.script(), on, args, asking))
                .whenComplete((reply, failure) -> {
                    if (failure != null && delivery.isWantedAfter(Replies.cause(failure))) {
                        keep(delivery.again());
                    }
                });
    }

    private void keep(Delivery delivery) {
        if (!closed) {
            deliveries.keep(delivery);
            deliverLater();
        }
    }

    private void deliverLater() {
        if (!deliveryIsDue.getAndSet(true)) {
            threads.later(DELIVER_AGAIN_MILLIS, this::deliverAgain);
        }
    }

    private void deliverAgain() {
        deliveryIsDue.set(false);
        deliveries.take(key -> !isDown(key)).forEach(this::deliver);
        if (!deliveries.isEmpty()) {
            deliverLater();
        }
    }

    private CompletionStage<List<Object>> plainTime() {
        Server server = server(keys.internal("nodes"));
        // Without the time no probe succeeds, so that it may be asked for while the server is away.
        boolean refused = server == null || (server.isAway() && time.isKnown());
        RedisLink link = server == null || refused || server.ready().isCompletedExceptionally()
                ? null
                : server.ready().getNow(null);
        return link == null
                ? CompletableFuture.failedFuture(new NotSentException("not connected to Redis"))
                : link.time();
    }

    private <T> CompletableFuture<T> send(String key, Command<T> command) {
        Server server = server(key);
        String refusal = refusal(server);
        return refusal != null || server == null
                ? CompletableFuture.failedFuture(new NotSentException(String.valueOf(refusal)))
                : send(server, key, command);
    }

    private <T> CompletableFuture<T> send(Server server, String key, Command<T> command) {
        calls.increment();
        long sentAt = threads.nanos();
        PendingReply<T> reply = new PendingReply<>(server, sentAt + timeoutNanos, () -> {
            timeouts.increment();
            server.timedOut(sentAt, key, timeout());
        });
        send(server, key, command, reply, false, MOST_REDIRECTIONS);
        deadlines.add(reply);
        return reply;
    }

    private TimeoutException timeout() {
        return new TimeoutException("Redis did not answer in " + timeoutNanos / 1_000_000 + " ms");
    }

    private <T> void send(
            Server server, String key, Command<T> command, PendingReply<T> reply, boolean asking, int redirections) {
        server.ready().whenComplete((link, unconnected) -> {
            if (unconnected != null) {
                reply.completeExceptionally(Replies.cause(unconnected));
                return;
            }
            if (reply.isDone()) {
                return;
            }
            CompletableFuture<T> sent;
            try {
                sent = command.sendOn(link, asking).toCompletableFuture();
            } catch (RuntimeException | Error ex) {
                sent = CompletableFuture.failedFuture(ex);
            }
            reply.of(sent);
            sent.whenComplete((value, failure) -> {
                if (failure == null) {
                    server.answered();
                    if (!reply.complete(value)) {
                        server.answeredLate();
                    }
                } else {
                    failed(server, key, command, reply, redirections, Replies.cause(failure));
                }
            });
        });
    }

    private <T> void failed(
            Server server, String key, Command<T> command, PendingReply<T> reply, int redirections, Throwable cause) {
        Redirection redirection = connector.isCluster() ? Redirection.of(cause, server.address()) : null;
        if (redirection != null && redirections > 0 && !reply.isDone()) {
            server.answered();
            if (!redirection.once()) {
                discover();
            }
            Server other = servers.computeIfAbsent(redirection.address(), this::connect);
            send(other, key, command, reply, redirection.once(), redirections - 1);
            return;
        }
        if (reply.isDone()) {
            return;
        }
        // Counted before the failure is reported, so that whoever hears of it finds the breaker as it is now.
        if (!(cause instanceof NotSentException)) {
            errors.increment();
            lastFailure = cause;
            boolean broken = cause.getClass() == RedisException.class;
            // The keys of a script are on two servers while their slot moves: no fault of either.
            boolean moving = String.valueOf(cause.getMessage()).startsWith("TRYAGAIN");
            if (!broken && !moving && !time.isRefused(cause)) {
                server.failed(cause, key);
            }
        }
        reply.completeExceptionally(cause);
    }

    private Server connect(String address) {
        Server server = new Server(address, connector, this::probe, timeoutNanos, threads, new Transitions());
        server.connect();
        return server;
    }

    private CompletionStage<?> probe(RedisLink link, @Nullable String key) {
        String on = keys.beside(key == null ? keys.internal("nodes") : key, "probe");
        return link.eval(Script.PROBE, new String[] {on}, new ScriptArguments().add(time.word()), false)
                .handle((reply, failure) -> {
                    // A server that redirects has answered.
                    if (failure != null && Redirection.of(Replies.cause(failure), "") == null) {
                        throw new CompletionException(Replies.cause(failure));
                    }
                    return reply;
                });
    }

    /** Looks for the primaries, unless that has just begun. */
    private void discover() {
        long last = discoveredAt.get();
        long now = threads.nanos();
        if (closed
                || now - last < DISCOVERY_PAUSE_NANOS
                || discoveries.get() >= MOST_DISCOVERIES
                || !discoveredAt.compareAndSet(last, now)) {
            return;
        }
        discoveries.incrementAndGet();
        threads.call(connector::discover, DISCOVERY_MILLIS, found -> {}).whenComplete((found, failure) -> {
            discoveries.decrementAndGet();
            if (failure == null) {
                discovered(found);
            }
            if (servers.isEmpty()) {
                lastFailure = failure == null
                        ? new IllegalStateException("no primary of the cluster has slots")
                        : Replies.cause(failure);
                reportAway(lastFailure);
                threads.later(DISCOVER_AGAIN_MILLIS, this::discover);
            }
        });
    }

    private void discovered(Set<String> primaries) {
        primaries.forEach(address -> servers.computeIfAbsent(address, this::connect));
        servers.values().forEach(server -> {
            if (!primaries.contains(server.address())) {
                servers.remove(server.address());
                server.retire();
            }
        });
        CompletableFuture.anyOf(servers.values().stream().map(Server::ready).toArray(CompletableFuture<?>[]::new))
                .thenRun(this::firstConnected);
        reportBack();
    }

    private void firstConnected() {
        if (connected.complete(null)) {
            since = threads.now();
            reportBack();
        }
    }

    private synchronized void reportAway(Throwable reason) {
        if (!reportedAway && !closed) {
            reportedAway = true;
            if (connected.isDone()) {
                since = threads.now();
                log.warn(
                        "Redis does not decide (" + Replies.text(reason) + "); limits decide as their on-failure says");
            } else {
                log.warn("Redis cannot be reached (" + Replies.text(reason)
                        + "); limits decide as their on-failure says");
            }
        }
    }

    private synchronized void reportBack() {
        if (reportedAway && connected.isDone() && servers.values().stream().noneMatch(Server::isAway)) {
            reportedAway = false;
            log.warn(everConnected ? "Redis decides again" : "Redis decides: connected");
            since = threads.now();
        }
        everConnected |= connected.isDone();
    }

    /** What follows from the changes of a server. */
    private final class Transitions implements Server.Listener {

        @Override
        public void away(Server server, Throwable reason) {
            lastFailure = reason;
            deadlines.giveUp(server, new TimeoutException("Redis did not answer in time"));
            reportAway(reason);
        }

        @Override
        public void stillAway(Server server) {
            if (connector.isCluster()) {
                discover();
            }
        }

        @Override
        public void refused(Throwable reason) {
            lastFailure = reason;
            time.isRefused(reason);
        }

        @Override
        public void recovering(Server server) {
            recoveries.incrementAndGet();
            // What ended comes first: it must not be dropped for what was admitted locally.
            deliverKept(server);
            for (Runnable task : onRecovery) {
                try {
                    task.run();
                } catch (RuntimeException | Error ex) {
                    log.debug("a task after an outage failed", ex);
                }
            }
            deliverKept(server);
        }

        private void deliverKept(Server server) {
            if (time.isKnown()) {
                deliveries.take(key -> server(key) == server).forEach(delivery -> send(server, delivery));
            }
        }

        @Override
        public void back(Server server) {
            firstConnected();
            time.ask();
            reportBack();
        }
    }

    /** Whether every primary answers, some or none. */
    public enum State {
        UP,
        DEGRADED,
        DOWN
    }

    public State state() {
        long away = servers.values().stream().filter(Server::isAway).count();
        if (closed || !connected.isDone() || !time.isKnown() || away == servers.size()) {
            return State.DOWN;
        }
        return away > 0 ? State.DEGRADED : State.UP;
    }

    /** When the state became what it is. */
    public Instant since() {
        return since;
    }

    /** The last failure in one line; null if there was none. */
    public @Nullable String lastError() {
        Throwable failure = time.failure() == null ? lastFailure : time.failure();
        return failure == null ? null : Replies.text(Objects.requireNonNull(failure));
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

    /** Closes the connection; everything fails from now on. */
    @Override
    public void close() {
        closed = true;
        servers.values().forEach(Server::retire);
        threads.close();
        // Closes all connections, too.
        connector.close();
    }

    /**
     * Another server of a cluster to send a command to, which has not run.
     *
     * @param once for this command only, while a slot moves
     */
    private record Redirection(String address, boolean once) {

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
