package io.ratelimited.redis;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.redis.RedisBackendOptions.TimeSource;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.Health;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.LettuceConnector;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.Replies;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.Threads;
import io.ratelimited.redis.internals.limiter.LimiterContext;
import io.ratelimited.redis.internals.limiter.Nodes;
import io.ratelimited.redis.internals.limiter.RedisConcurrencyLimiter;
import io.ratelimited.redis.internals.limiter.RedisRateLimiter;
import io.ratelimited.redis.internals.script.PermitCost;
import io.ratelimited.redis.internals.script.ScriptFamily;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The limits of an application on Redis, with their own connections, and the number of nodes that share the limits. Connects
 * automatically, now or when Redis has recovered; until then, the {@link OnFailure} policy of each limit applies.
 * Thread-safe; close it with the application.
 */
public final class RedisBackend implements AutoCloseable {

    /** An application starts without Redis, but gives it a moment. */
    private static final long FIRST_CONNECT_MILLIS = 2_000;
    /** More of it while no attempt has failed: to connect for the first time takes a slow processor seconds. */
    private static final long SLOW_CONNECT_MILLIS = 8_000;

    /** Nodes learn of changes by the heartbeat. */
    private static final long HEARTBEAT_MILLIS = 1_000;

    private static final long EVICTIONS_MILLIS = 60_000;

    /** As Redis says it, and Redis 6.2 of a command of a script. */
    private static final Pattern NOT_PERMITTED = Pattern.compile("NOPERM|The user executing the script");

    private static final long SILENT_MICROS = 10_000_000;

    private final RedisBackendOptions options;
    private final Threads threads;
    private final GuardedConnection connection;
    private final LimiterContext context;
    private final Nodes nodes;
    private final String[] heartbeatKeys;
    private final SharedRecords records;
    private final SharedPauses pauses;
    private final SharedSettings settings;
    /** Completes when limits are decided by Redis for the first time. */
    private final CompletableFuture<?> begun;

    /** The last heartbeat was answered with an error. Guarded by this. */
    private boolean refused;

    private volatile boolean closed;

    private RedisBackend(
            RedisConnector connector,
            RedisBackendOptions options,
            UnaryOperator<String> testTime,
            Threads threads,
            Executor callers,
            String node,
            boolean waits) {
        this.options = options;
        this.threads = threads;
        this.nodes = new Nodes(node, options.expectedNodes());
        KeyNames keys = new KeyNames(options.keyPrefix());
        String nodesKey = keys.internal("nodes");
        String recordKey = keys.beside(nodesKey, "changes2");
        this.heartbeatKeys = new String[] {nodesKey, recordKey};
        this.connection = new GuardedConnection(
                connector,
                keys,
                options.timeout().toNanos(),
                options.ticker(),
                threads,
                options.timeSource() == TimeSource.NODE,
                testTime);
        if (waits) {
            connection.starting();
            connection.every(EVICTIONS_MILLIS, connection::lookForEvictions);
        }
        connection.health().describeShare(nodes::describeShare);
        this.context =
                new LimiterContext(connection, keys, options.ticker(), callers, nodes, RedisUnavailableException::new);
        this.records = new SharedRecords(context, recordKey, keys.beside(nodesKey, "latest2"));
        this.pauses = new SharedPauses(context, keys.internal("pauses"));
        // Another form of the texts has other names: instances with different forms always differ.
        this.settings =
                new SharedSettings(context, keys.beside(nodesKey, "settings"), keys.beside(nodesKey, "settings-texts"));
        this.begun = connection
                .connected()
                // Finds out whether scripts may ask for the time, so that no caller has to.
                .thenCompose(connected -> heartbeat())
                .handle((counted, failure) -> counted)
                .thenCompose(counted -> connection.connected());
        connection.every(HEARTBEAT_MILLIS, this::heartbeat);
        connection.onRecovery(() -> {
            nodes.recovered();
            connection.later(0, this::heartbeat);
        });
    }

    private RedisBackend awaitBegin() {
        try {
            if (hasBegunWithin(FIRST_CONNECT_MILLIS)
                    || (connection.lastError() == null && hasBegunWithin(SLOW_CONNECT_MILLIS))) {
                decideOnce();
            } else {
                connection.health().late(FIRST_CONNECT_MILLIS);
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        } finally {
            connection.started();
        }
        return this;
    }

    private boolean hasBegunWithin(long millis) throws InterruptedException {
        try {
            begun.get(millis, TimeUnit.MILLISECONDS);
            return true;
        } catch (ExecutionException | TimeoutException ex) {
            return false;
        }
    }

    /** Sends the script and loads the classes of a decision, so that the first caller need not wait for them. */
    private void decideOnce() throws InterruptedException {
        Limit limit = Limit.of("~start", Algorithm.TOKEN_BUCKET).rate("1000/s").build();
        RedisRateLimiter limiter = new RedisRateLimiter(context, limit, "", failure -> null, 0, 1);
        try {
            limiter.decideOnce().get(FIRST_CONNECT_MILLIS, TimeUnit.MILLISECONDS);
            limiter.reserve(null, 1, 0);
            connection.lookForEvictions().get(FIRST_CONNECT_MILLIS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException | TimeoutException ex) {
            // The first caller is told.
        }
    }

    /**
     * Creates a backend on a server, on a server that Sentinel discovers, or on a cluster. Blocks until it is connected, for
     * at most two seconds, or ten if no connection attempt has failed by then, as with a silent server.
     */
    public static RedisBackend of(RedisClientSettings client, RedisBackendOptions options) {
        return of(
                LettuceConnector.of(client.resources(), client.options(), client.uris()),
                options,
                UnaryOperator.identity());
    }

    /** @param testTime replaces the time argument of scripts; see {@code time.lua} */
    static RedisBackend of(RedisConnector connector, RedisBackendOptions options, UnaryOperator<String> testTime) {
        Executor callers = CallersExecutor.of(options.executor());
        String node = UUID.randomUUID().toString();
        return new RedisBackend(connector, options, testTime, Threads.real(), callers, node, true).awaitBegin();
    }

    /**
     * A backend that takes everything from outside and waits for nothing, so that it can run in a single thread.
     *
     * @param threads the time and the threads of the connection
     * @param callers runs the code that callers have attached to asynchronous decisions
     * @param node the name of this process, unique in the cluster
     */
    static RedisBackend of(
            RedisConnector connector, RedisBackendOptions options, Threads threads, Executor callers, String node) {
        return new RedisBackend(connector, options, UnaryOperator.identity(), threads, callers, node, false);
    }

    /**
     * Checks whether Redis supports a limit, without asking it.
     *
     * @throws IllegalArgumentException if it does not, as with ADAPTIVE and with priorities; the message names the setting
     */
    public void check(Limit limit) {
        ScriptFamily.of(limit, PermitCost.of(limit.rate()), options.ticker());
    }

    /**
     * Creates a limiter. Limiters with the same name and tier share their state, on this and on all other nodes.
     *
     * @throws IllegalArgumentException if Redis does not support the limit, as {@link #check} says
     */
    public RateLimiter limiter(Limit limit, RedisLimitOptions limitOptions) {
        Function<Throwable, @Nullable Boolean> fallback = failure -> switch (limitOptions.onFailure()) {
            case LOCAL -> null;
            case ALLOW -> true;
            case DENY -> false;
            case THROW ->
                throw new RedisUnavailableException("limit '" + limit.name() + "' could not be decided", failure);
        };
        return limit.algorithm().countsCallsInFlight()
                ? new RedisConcurrencyLimiter(context, limit, limitOptions.tier(), fallback)
                : new RedisRateLimiter(
                        context,
                        limit,
                        limitOptions.tier(),
                        fallback,
                        limitOptions.maxOvershoot(),
                        limitOptions.maximumKeys());
    }

    /** Returns the health of the backend that this node knows. Sends nothing to Redis. */
    public RedisHealth health() {
        Health health = connection.health();
        return new RedisHealth(
                connection.isUp()
                        ? RedisHealth.State.UP
                        : connection.isDown() ? RedisHealth.State.DOWN : RedisHealth.State.DEGRADED,
                health.since(),
                connection.lastError(),
                health.calls(),
                health.timeouts(),
                health.errors(),
                nodes.known(),
                health.problems());
    }

    /** Unregisters this node and closes the connection. From now on, the {@link OnFailure} policy of each limit applies. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            ScriptArguments leave = new ScriptArguments()
                    .add(connection.time())
                    .add("")
                    .add(SILENT_MICROS)
                    .add(nodes.self());
            connection.await(connection.evalInBackground(Script.HEARTBEAT, heartbeatKeys, leave));
        } catch (ExecutionException ex) {
            // The others notice that this node is silent.
        }
        connection.close();
    }

    /** Returns the records that the nodes share in addition to the state of limits. */
    public SharedRecords records() {
        return records;
    }

    /** Returns the pauses that the nodes share. */
    public SharedPauses pauses() {
        return pauses;
    }

    /** Returns the settings that the nodes compare. */
    public SharedSettings settings() {
        return settings;
    }

    LimiterContext context() {
        return context;
    }

    private CompletableFuture<?> heartbeat() {
        // Before there is a connection nobody can answer, and the first heartbeat comes with it.
        if (closed || !connection.isConnected()) {
            return CompletableFuture.completedFuture(null);
        }
        ScriptArguments args =
                new ScriptArguments().add(connection.time()).add(nodes.self()).add(SILENT_MICROS);
        CompletableFuture<Void> heard = connection
                .evalInBackground(Script.HEARTBEAT, heartbeatKeys, args)
                .thenCompose(reply -> {
                    if (reply.get(0) instanceof Long count && reply.get(1) instanceof Long first) {
                        if (nodes.count(count.intValue(), first, threads.nanos())) {
                            connection.later(Nodes.COUNT_MILLIS, this::heartbeat);
                        }
                    }
                    return reply.get(2) instanceof Long version
                            ? records.catchUp(version)
                            : CompletableFuture.failedFuture(new IllegalStateException(String.valueOf(reply.get(2))));
                });
        return heard.whenComplete((done, failure) -> report(Replies.error(failure)));
    }

    /** @param error twice in a row it is no accident, such as the first of an outage */
    private synchronized void report(@Nullable String error) {
        if (error == null || refused) {
            connection
                    .health()
                    .problem(
                            "heartbeat",
                            error == null
                                    ? null
                                    : "Redis rejects access to shared records (" + error
                                            + "): this instance may not know the changes"
                                            + " of other instances, nor their number."
                                            + (NOT_PERMITTED.matcher(error).find()
                                                    ? " Give the Redis user permission for the commands of rate"
                                                            + " limits on all keys that start with "
                                                            + options.keyPrefix()
                                                    : ""));
        }
        refused = error != null;
    }
}
