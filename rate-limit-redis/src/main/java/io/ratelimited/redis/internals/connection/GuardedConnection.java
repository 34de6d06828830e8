package io.ratelimited.redis.internals.connection;

import io.ratelimited.core.Ticker;
import io.ratelimited.redis.internals.connection.CommandSender.Redirection;
import io.ratelimited.redis.internals.connection.Deliveries.Delivery;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The one place where a command is sent to Redis. It holds for every command, whoever sends it:
 *
 * <ol>
 *   <li>Nothing is sent to a server whose breaker is open, except its probe and, once that is answered, the commands that
 *       have to come first.
 *   <li>A command runs at most once. Commands that are pending when a connection breaks fail. A command that has not run,
 *       because a cluster redirects it or no script can read its key, is sent again.
 *   <li>A reply that is later than the timeout is a failure, from the first of an outage.
 *   <li>The number of pending commands is bounded.
 *   <li>Connecting, discovering, probing and logging never wait for each other, and no thread ends because of a failure.
 * </ol>
 *
 * <p>Thread-safe.
 */
public final class GuardedConnection implements AutoCloseable {

    /** Pause between looks at servers that are away, and at the commands that are kept for them. */
    private static final long LOOK_MILLIS = 200;

    /** Commands that no caller waits for; those first that are sent first and, where too many are kept, dropped last. */
    public enum DeliveryKind {
        /** A call in flight has ended. Otherwise its place stays taken until its lease ends. */
        END(true),
        /** A call gives back permits that it has not used. Otherwise they stay spent until they lapse. */
        GIVE_BACK(false),
        /** Permits that were used without being reserved in Redis. Otherwise they are given away again. */
        CHARGE(false),
        /** A node has blocked a key by itself. Otherwise the block ends there and nowhere begins. */
        BLOCK(true),
        /** A call has offended. Otherwise its key is blocked by the next offence. */
        OFFENCE(false),
        /** A call in flight still runs. Its node says so again within seconds. */
        REGISTRATION(true);

        /** Running it twice does no harm, so that it is sent again when it may have been lost. */
        final boolean isRepeatable;

        DeliveryKind(boolean isRepeatable) {
            this.isRepeatable = isRepeatable;
        }
    }

    /** Permits of one key that were used without being reserved in Redis. Immutable. */
    public interface Charge {

        /** Returns the number of permits. Of too many charges the smallest are dropped. */
        long permits();

        /** This and a later charge of the same key, to be charged by one command. */
        Charge plus(Charge later);

        /**
         * The arguments of the command that charges them.
         *
         * @param time as scripts are given it
         */
        ScriptArguments arguments(String time);

        /** Redis has run that command. Must not block. */
        void charged(List<Object> reply);
    }

    private final RedisConnector connector;
    private final KeyNames keys;
    private final long timeoutNanos;
    private final Threads threads;
    private final Deadlines deadlines;
    private final Health health;
    private final ServerTime time;
    private final Primaries primaries;
    private final CommandSender sender;
    private final Deliveries deliveries;
    private final Evictions evictions;
    private final List<Runnable> onRecovery = new CopyOnWriteArrayList<>();
    private final CompletableFuture<Void> connected = new CompletableFuture<>();

    /**
     * @param ticker the time that a node gives to scripts, which a test may move by hand while the connection has the real one
     * @param threads time and threads of the connection itself
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
        this.threads = threads;
        this.deadlines = new Deadlines(threads, timeoutNanos);
        this.health = new Health(threads);
        this.time = new ServerTime(ticker, timeOfNode, this::plainTime, threads, deadlines);
        this.primaries = new Primaries(connector, threads, health, timeoutNanos, new Recovery());
        this.sender = new CommandSender(connector, primaries, threads, deadlines, health, time, testTime);
        this.deliveries = new Deliveries(sender, threads);
        this.evictions = new Evictions(primaries, sender, threads, health);
        primaries.discover();
        threads.every(LOOK_MILLIS, this::look);
    }

    private void reportBack() {
        if (connected.isDone() && !primaries.all().isEmpty() && primaries.away() == 0 && !primaries.areIncomplete()) {
            health.back();
        }
    }

    private void look() {
        primaries.look();
        time.look();
        deliveries.deliverKept();
        reportBack();
    }

    /** Completes when this node has been connected for the first time, and knows the time if it has to. */
    public CompletableFuture<Void> connected() {
        return connected.thenCompose(done -> time.isKnown() ? connected : time.firstKnown());
    }

    /** Returns whether there has been a connection. */
    public boolean isConnected() {
        return connected.isDone();
    }

    /** Blocks until done, at the longest for the timeout, after which the future has failed. Keeps an interrupt for later. */
    public <T> T await(CompletableFuture<T> future) throws ExecutionException {
        if (!future.isDone() && sender.catchWaitForItself()) {
            future.completeExceptionally(Replies.notSent("called on the thread that reads the replies"));
        }
        return threads.await(future, timeoutNanos);
    }

    /** Returns whether this thread reads a reply, and may run code of callers that never blocks. */
    public boolean mayRunCallersHere() {
        return sender.mayRunCallers();
    }

    /** Fails a future that is not done within the timeout, and then runs a task that does not block. */
    public void limitTime(CompletableFuture<?> future, Runnable late) {
        deadlines.limit(future, late);
    }

    public Health health() {
        return health;
    }

    /** Returns whether a script must have all its keys in one slot. */
    public boolean separatesSlots() {
        return connector.separatesSlots();
    }

    /** The first argument of every script. */
    public String time() {
        return sender.time();
    }

    /**
     * Runs a task before Redis decides again after an outage, or on a new connection; commands that it delivers come first. Must
     * not block.
     */
    public void onRecovery(Runnable task) {
        onRecovery.add(task);
    }

    /** Ends the runs of a task of {@link #onRecovery}. */
    public void forget(Runnable task) {
        onRecovery.remove(task);
    }

    /** Runs a task that does not block after a time. */
    public void later(long millis, Runnable task) {
        threads.later(millis, task);
    }

    /** Runs a task that does not block again and again. */
    public void every(long millis, Runnable task) {
        threads.every(millis, task);
    }

    /** Returns whether a command for a key would be refused. */
    public boolean isDown(String key) {
        return sender.available(key) == null;
    }

    /** Returns whether commands for a key are refused, and for more than a single late reply. */
    public boolean isOut(String key) {
        Server server = primaries.of(key);
        return isDown() || server == null || server.isOut();
    }

    /** Returns whether the server that has a key is too far for a call to wait for two replies, one after the other. */
    public boolean isFar(String key) {
        Server server = primaries.of(key);
        return server != null && server.isFar();
    }

    /** The address of the server that has a key; empty where there is a single primary, or none is known. */
    public String address(String key) {
        Server server = primaries.of(key);
        return server == null ? "" : server.address();
    }

    /** Returns whether a primary is known at an address. */
    public boolean isPrimary(String address) {
        return primaries.isKnown(address);
    }

    /**
     * The present outage for a key: two calls return the same object only if no command for the key would have been sent
     * in between. Null while one would be sent.
     */
    public @Nullable Object outage(String key) {
        Object found = primaries.found();
        Server server = primaries.of(key);
        if (sender.isClosed()) {
            return this;
        }
        if (server == null) {
            return found;
        }
        Object outage = server.outage();
        return outage != null ? outage : time.isKnown() ? null : time;
    }

    /**
     * Runs a script on the keys' server, once. Fails when the server is away or does not answer in time, or answers with an
     * error.
     */
    public CompletableFuture<List<Object>> eval(Script script, String[] on, ScriptArguments args) {
        return eval(script, on, args, reply -> {});
    }

    /**
     * Runs a script in the same way.
     *
     * @param late is given the reply if it comes after the future has failed, on a thread of the connection: it must not block
     */
    public CompletableFuture<List<Object>> eval(
            Script script, String[] on, ScriptArguments args, Consumer<List<Object>> late) {
        return sender.send(on, true, new CommandSender.Command<>() {
            @Override
            public CompletionStage<List<Object>> sendOn(RedisLink link, boolean asking) {
                return link.eval(script, on, args, asking);
            }

            @Override
            public void late(List<Object> reply) {
                late.accept(reply);
            }
        });
    }

    /** {@link #eval} for a script that no caller waits for: callers still ask a server that is only late with its reply. */
    public CompletableFuture<List<Object>> evalInBackground(Script script, String[] on, ScriptArguments args) {
        return sender.send(on, false, (link, asking) -> link.eval(script, on, args, asking));
    }

    /** Looks whether servers remove keys when their memory is full. Completes when all have replied or failed. */
    public CompletableFuture<Void> lookForEvictions() {
        return evictions.look();
    }

    /** Gives Redis at least two seconds for each reply until {@link #started}; callers wait no longer than the timeout. */
    public void starting() {
        sender.starting();
    }

    /** Ends the time in which Redis has longer for its replies. */
    public void started() {
        sender.started();
    }

    /** Removes a key, as {@link #eval} would. */
    public CompletableFuture<Long> delete(String key) {
        return sender.send(new String[] {key}, true, (link, asking) -> link.delete(key));
    }

    /**
     * Runs the script with arguments that nobody waits for, now or as the first thing after an outage.
     *
     * @param on keys of one server
     * @param arguments makes the arguments when the script is sent; null when there is nothing to send any more
     * @param delivered is given the reply on the thread of the connection: it must not block
     */
    public void deliver(
            DeliveryKind kind,
            List<String> on,
            Supplier<@Nullable ScriptArguments> arguments,
            Consumer<List<Object>> delivered) {
        if (!sender.isClosed()) {
            deliveries.deliver(new Delivery(kind, on, arguments, delivered, 0));
        }
    }

    /** Charges permits of a key now, or as soon as its server decides. Not repeated when the reply is lost. */
    public void charge(String key, Charge charge) {
        deliver(DeliveryKind.CHARGE, List.of(key), () -> charge.arguments(time()), charge::charged);
    }

    /**
     * Charges permits of a key some time later, together with others of it, or first of all after an outage.
     *
     * @return all that is owed for the key now
     */
    public Charge owe(String key, Charge charge) {
        return deliveries.owe(key, charge);
    }

    /** Changes the charge that is owed for a key, if there is one. Null if nothing is owed any more. */
    public void changeCharge(String key, UnaryOperator<@Nullable Charge> change) {
        deliveries.changeCharge(key, change);
    }

    private CompletionStage<List<Object>> plainTime() {
        Server server = primaries.of(keys.internal("nodes"));
        // Without the time no probe succeeds, so that it may be asked for while the server is away.
        RedisLink link = server == null || (server.isAway() && time.isKnown()) ? null : server.link();
        return link == null ? CompletableFuture.failedFuture(Replies.notSent("not connected to Redis")) : link.time();
    }

    /** Reacts to the changes of a server. */
    private final class Recovery implements Server.Owner {

        @Override
        public CompletionStage<List<Object>> probe(RedisLink link, @Nullable String key) {
            String on = keys.beside(key == null ? keys.internal("nodes") : key, "probe");
            return link.eval(Script.PROBE, new String[] {on}, new ScriptArguments().add(time.word()), false)
                    .handle((reply, failure) -> {
                        Throwable cause = failure == null ? null : Replies.cause(failure);
                        // A server of a cluster that redirects has answered.
                        if (cause != null && !(connector.isCluster() && Redirection.of(cause, "") != null)) {
                            time.handleRefusal(cause);
                            throw new CompletionException(Redirection.asFailure(cause));
                        }
                        return reply;
                    });
        }

        @Override
        public void away(Throwable reason) {
            if (!sender.isClosed()) {
                health.away(reason);
            }
        }

        @Override
        public void stillAway(Throwable reason) {
            health.stillAway(reason);
        }

        @Override
        public void connected() {
            if (connected.complete(null)) {
                time.ask();
            }
            reportBack();
        }

        @Override
        public void reconnected() {
            onRecovery.forEach(threads::run);
        }

        @Override
        public void answers(Server server) {
            try {
                // Ends of calls come first: they must not be dropped for calls that were admitted locally.
                deliveries.deliverKept(server);
                onRecovery.forEach(threads::run);
                deliveries.deliverKept(server);
            } finally {
                server.readmit();
            }
            // Commands that were answered meanwhile have made room.
            deliveries.deliverKept();
            connected();
            time.ask();
        }
    }

    /** Returns whether all primaries decide, for every key that was asked for; a single late reply is no outage. */
    public boolean isUp() {
        return !isDown() && primaries.out() == 0 && !primaries.areIncomplete();
    }

    /** Returns whether calls of some key are not sent now, be it for a single late reply. */
    public boolean isHeldUp() {
        return isDown() || primaries.away() > 0 || primaries.areIncomplete();
    }

    /** Returns whether no primary decides. */
    public boolean isDown() {
        return sender.isClosed()
                || !connected.isDone()
                || !time.isKnown()
                || primaries.out() == primaries.all().size();
    }

    /** The last failure in one line; null if there was none. */
    public @Nullable String lastError() {
        Throwable failure = time.failure() == null ? health.lastFailure() : time.failure();
        return failure == null ? null : Replies.text(failure);
    }

    /** Closes the connection; every command fails from now on. */
    @Override
    public void close() {
        sender.close();
        primaries.all().forEach(Server::retire);
        threads.close();
        // Closes all connections, too.
        connector.close();
    }
}
