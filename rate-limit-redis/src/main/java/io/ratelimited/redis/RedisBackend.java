package io.ratelimited.redis;

import io.lettuce.core.RedisClient;
import io.lettuce.core.cluster.RedisClusterClient;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/**
 * The limits of an application on Redis: one dedicated connection for all of them, with a timeout and a circuit breaker,
 * and the count of the nodes that share the limits. Connects by itself, now or when Redis is back; until then limits
 * decide as their {@link OnFailure} says. Thread-safe; close it with the application.
 */
public final class RedisBackend implements AutoCloseable {

    private static final Logger LOG = System.getLogger(RedisBackend.class.getName());
    /** An application starts without Redis, but gives it a moment. */
    private static final long FIRST_CONNECT_MILLIS = 2_000;

    private static final long HEARTBEAT_MILLIS = 3_000;
    private static final long SILENT_MICROS = 10_000_000;

    private final RedisBackendOptions options;
    private final RedisKeys keys;
    private final Circuit circuit;
    private final ScheduledExecutorService housekeeping;
    private final String node = UUID.randomUUID().toString();
    private final Set<InFlight> inFlight = ConcurrentHashMap.newKeySet();
    /** What tests tell scripts of the time instead of what they would be told. */
    private final UnaryOperator<String> testTime;

    private final Executor executor;

    private volatile int countedNodes;
    private volatile boolean closed;

    private RedisBackend(Supplier<RedisLink> connector, RedisBackendOptions options, UnaryOperator<String> testTime) {
        this.options = options;
        this.testTime = testTime;
        this.executor = hidden(options.executor());
        this.keys = new RedisKeys(options.keyPrefix());
        this.housekeeping = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "rate-limit-redis-housekeeping");
            thread.setDaemon(true);
            return thread;
        });
        this.circuit = new Circuit(connector, keys, options, housekeeping);
        try {
            begin(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(FIRST_CONNECT_MILLIS));
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException ex) {
            circuit.tellLate(FIRST_CONNECT_MILLIS);
        }
        housekeeping.scheduleWithFixedDelay(
                guarded(this::heartbeat), HEARTBEAT_MILLIS, HEARTBEAT_MILLIS, TimeUnit.MILLISECONDS);
        long lease = RedisTerms.NODE_LEASE.toMillis() / 3;
        housekeeping.scheduleWithFixedDelay(
                guarded(() -> inFlight.forEach(InFlight::renew)), lease, lease, TimeUnit.MILLISECONDS);
    }

    /** Connects, and lets the first heartbeat find out whether scripts may ask for the time, rather than a caller. */
    private void begin(long end) throws InterruptedException, ExecutionException, TimeoutException {
        housekeeping.submit(guarded(circuit::connect)).get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        RedisTime time = circuit.time();
        if (circuit.parts() > 0 && !time.isKnown()) {
            time.firstKnown().get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
        heartbeat().handle((counted, failure) -> counted).get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        if (!time.isKnown()) {
            time.firstKnown().get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
    }

    /** A backend on a standalone server or behind Sentinel. The client stays the caller's, to be shut down after this. */
    public static RedisBackend of(RedisClient client, RedisBackendOptions options) {
        return new RedisBackend(() -> LettuceLink.to(client), options, UnaryOperator.identity());
    }

    /** A backend on Redis Cluster. The client stays the caller's, to be shut down after this. */
    public static RedisBackend of(RedisClusterClient client, RedisBackendOptions options) {
        return new RedisBackend(() -> LettuceLink.to(client), options, UnaryOperator.identity());
    }

    /** @param testTime what to tell scripts of the time instead of what they would be told; see {@code time.lua} */
    static RedisBackend of(Supplier<RedisLink> connector, RedisBackendOptions options, UnaryOperator<String> testTime) {
        return new RedisBackend(connector, options, testTime);
    }

    /** Whether keys of different callers can be in one script call: not in a cluster. */
    boolean joinsCallers() {
        return circuit.parts() == 1;
    }

    /** A limiter of this backend. Limiters of one name and tier share their budgets, here and in the whole cluster. */
    public RateLimiter limiter(Limit limit, RedisLimitOptions limitOptions) {
        return new RedisRateLimiter(this, limit, limitOptions);
    }

    /** How the backend is doing, as of now. Asks nobody. */
    public RedisHealth health() {
        return circuit.health(options.expectedNodes() > 0 ? options.expectedNodes() : countedNodes);
    }

    /** Leaves the cluster and closes the connection. Limiters decide as their {@link OnFailure} says from now on. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        String list = keys.internal("nodes");
        try {
            if (!circuit.isDown(list)) {
                Calls.await(
                        circuit.eval(
                                Script.HEARTBEAT,
                                new String[] {list},
                                new Words()
                                        .add(time())
                                        .add("")
                                        .add(SILENT_MICROS)
                                        .add(node)),
                        timeoutNanos());
            }
        } catch (ExecutionException ex) {
            LOG.log(Level.DEBUG, "could not leave the list of nodes", ex);
        }
        circuit.close();
        housekeeping.shutdownNow();
    }

    Ticker ticker() {
        return options.ticker();
    }

    /** Where asynchronous callers are told. */
    Executor executor() {
        return executor;
    }

    /**
     * Futures of JDK 17 that are given a common pool of one thread, as machines of two processors have, start a thread for
     * each task instead: so it is hidden from them. They may have it where a property leaves it none.
     */
    private static Executor hidden(Executor executor) {
        int threads = Integer.getInteger("java.util.concurrent.ForkJoinPool.common.parallelism", 1);
        return threads == 0 ? executor : task -> executor.execute(task);
    }

    long timeoutNanos() {
        return options.timeout().toNanos();
    }

    RedisKeys keys() {
        return keys;
    }

    Deadlines deadlines() {
        return circuit.deadlines();
    }

    String node() {
        return node;
    }

    /** Calls in flight whose permits in Redis have to be kept from lapsing. */
    Set<InFlight> inFlight() {
        return inFlight;
    }

    /** The first argument of every script. */
    String time() {
        return testTime.apply(circuit.time().word());
    }

    /** Among how many nodes a limit is divided while Redis is away. */
    int nodes() {
        return options.expectedNodes() > 0 ? options.expectedNodes() : Math.max(1, countedNodes);
    }

    int recoveries() {
        return circuit.recoveries();
    }

    /** Whether asking Redis about a key would be in vain. */
    boolean isDown(String key) {
        return circuit.isDown(key);
    }

    /** As {@link Circuit#eval}. */
    CompletableFuture<List<Object>> eval(Script script, String[] on, Words args) {
        return circuit.eval(script, on, args);
    }

    /** As {@link Circuit#delete}. */
    CompletableFuture<Long> delete(String key) {
        return circuit.delete(key);
    }

    private CompletableFuture<?> heartbeat() {
        String key = keys.internal("nodes");
        if (closed || isDown(key)) {
            return CompletableFuture.completedFuture(null);
        }
        return eval(
                        Script.HEARTBEAT,
                        new String[] {key},
                        new Words().add(time()).add(node).add(SILENT_MICROS))
                .thenAccept(reply -> {
                    if (reply.get(0) instanceof Long count) {
                        countedNodes = count.intValue();
                    }
                });
    }

    /** Whose failure does not end what runs it. */
    static Runnable guarded(Runnable task) {
        return () -> {
            try {
                task.run();
            } catch (RuntimeException | Error ex) {
                LOG.log(Level.DEBUG, "housekeeping failed", ex);
            }
        };
    }
}
