package io.ratelimited.redis;

import io.lettuce.core.RedisClient;
import io.lettuce.core.cluster.RedisClusterClient;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The limits of an application on Redis: one dedicated connection for all of them, the timeout and the circuit breaker
 * in front of it, and the count of the nodes that share the limits. Connects by itself, now or when Redis is back;
 * until then limits decide as their {@link OnFailure} says. Thread-safe; close it with the application.
 */
public final class RedisBackend implements AutoCloseable {

    private static final Logger LOG = System.getLogger(RedisBackend.class.getName());
    /** An application starts without Redis, but gives it a moment. */
    private static final long FIRST_CONNECT_MILLIS = 2_000;

    private static final long HEARTBEAT_MILLIS = 3_000;
    private static final long SILENT_MICROS = 10_000_000;

    private final Supplier<RedisLink> connector;
    private final RedisBackendOptions options;
    private final RedisKeys keys;
    private final Deadlines deadlines;
    private final ScheduledExecutorService housekeeping;
    private final String node = UUID.randomUUID().toString();
    private final Set<InFlight> inFlight = ConcurrentHashMap.newKeySet();
    /** Microseconds to use as the time of Redis; null for its own. */
    private final @Nullable LongSupplier testTime;

    private final LongAdder calls = new LongAdder();
    private final LongAdder timeouts = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private final AtomicInteger openBreakers = new AtomicInteger();
    private volatile @Nullable RedisLink link;
    private volatile Breaker[] breakers = {new Breaker()};
    private volatile Instant since = Instant.now();
    private volatile @Nullable String lastError;
    private volatile int countedNodes;
    /** How many outages have ended. */
    private final AtomicInteger recoveries = new AtomicInteger();

    private volatile boolean closed;

    private RedisBackend(Supplier<RedisLink> connector, RedisBackendOptions options, @Nullable LongSupplier testTime) {
        this.connector = connector;
        this.options = options;
        this.testTime = testTime;
        this.keys = new RedisKeys(options.keyPrefix());
        this.deadlines = new Deadlines(options.timeout().toNanos());
        this.housekeeping = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "rate-limit-redis-housekeeping");
            thread.setDaemon(true);
            return thread;
        });
        Future<?> connected = housekeeping.submit(guarded(this::connect));
        try {
            connected.get(FIRST_CONNECT_MILLIS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException ex) {
            LOG.log(Level.DEBUG, "not connected yet", ex);
        }
        housekeeping.scheduleWithFixedDelay(guarded(this::heartbeat), 0, HEARTBEAT_MILLIS, TimeUnit.MILLISECONDS);
        long lease = RedisTerms.NODE_LEASE.toMillis() / 3;
        housekeeping.scheduleWithFixedDelay(
                guarded(() -> inFlight.forEach(InFlight::renew)), lease, lease, TimeUnit.MILLISECONDS);
    }

    /** A backend on a standalone server or behind Sentinel. The client stays the caller's, to be shut down after this. */
    public static RedisBackend of(RedisClient client, RedisBackendOptions options) {
        return new RedisBackend(() -> LettuceLink.to(client), options, null);
    }

    /** A backend on Redis Cluster. The client stays the caller's, to be shut down after this. */
    public static RedisBackend of(RedisClusterClient client, RedisBackendOptions options) {
        return new RedisBackend(() -> LettuceLink.to(client), options, null);
    }

    /** @param testTime microseconds to use as the time of Redis; null for its own */
    static RedisBackend of(
            Supplier<RedisLink> connector, RedisBackendOptions options, @Nullable LongSupplier testTime) {
        return new RedisBackend(connector, options, testTime);
    }

    /** Whether keys of different callers can be in one script call: not in a cluster. */
    boolean joinsCallers() {
        RedisLink current = link;
        return current != null && current.parts() == 1;
    }

    /** A limiter of this backend. Limiters of one name share their budgets, here and in the whole cluster. */
    public RateLimiter limiter(Limit limit, RedisLimitOptions limitOptions) {
        return new RedisRateLimiter(this, limit, limitOptions);
    }

    /** How the backend is doing, as of now. Asks nobody. */
    public RedisHealth health() {
        int open = openBreakers.get();
        RedisHealth.State state = link == null || open == breakers.length
                ? RedisHealth.State.DOWN
                : open > 0 ? RedisHealth.State.DEGRADED : RedisHealth.State.UP;
        int nodes = options.expectedNodes() > 0 ? options.expectedNodes() : countedNodes;
        return new RedisHealth(state, since, lastError, calls.sum(), timeouts.sum(), errors.sum(), nodes);
    }

    /** Leaves the cluster and closes the connection. Limiters decide as their {@link OnFailure} says from now on. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        housekeeping.shutdownNow();
        RedisLink last = link;
        if (last != null) {
            try {
                last.eval(Script.HEARTBEAT, new String[] {keys.internal("nodes")}, "", text(SILENT_MICROS), node)
                        .toCompletableFuture()
                        .get(options.timeout().toMillis(), TimeUnit.MILLISECONDS);
            } catch (InterruptedException ex) {
                Thread.currentThread().interrupt();
            } catch (Exception ex) {
                LOG.log(Level.DEBUG, "could not leave the list of nodes", ex);
            }
            last.close();
        }
        deadlines.close();
    }

    Ticker ticker() {
        return options.ticker();
    }

    Executor executor() {
        return options.executor();
    }

    long timeoutNanos() {
        return options.timeout().toNanos();
    }

    RedisKeys keys() {
        return keys;
    }

    Deadlines deadlines() {
        return deadlines;
    }

    String node() {
        return node;
    }

    /** Calls in flight whose permits in Redis have to be kept from lapsing. */
    Set<InFlight> inFlight() {
        return inFlight;
    }

    /** The first argument of every deciding script. */
    String time() {
        return testTime == null ? "" : Long.toString(testTime.getAsLong());
    }

    /** Among how many nodes a limit is divided while Redis is away. */
    int nodes() {
        return options.expectedNodes() > 0 ? options.expectedNodes() : Math.max(1, countedNodes);
    }

    int recoveries() {
        return recoveries.get();
    }

    /** Whether asking Redis about a key would be in vain. */
    boolean isDown(String key) {
        RedisLink current = link;
        return current == null || closed || breaker(current, key).isOpen();
    }

    /**
     * Runs a script on a key's node, once. Fails when Redis does not answer in time, or answers with an error; both are
     * counted by the breaker of the key.
     */
    CompletableFuture<List<Object>> eval(Script script, String[] on, String... args) {
        RedisLink current = link;
        if (current == null || closed) {
            return CompletableFuture.failedFuture(new TimeoutException("not connected to Redis"));
        }
        calls.increment();
        return timed(current, on[0], () -> current.eval(script, on, args));
    }

    /** Removes a key, as {@link #eval} would. */
    CompletableFuture<Long> delete(String key) {
        RedisLink current = link;
        if (current == null || closed) {
            return CompletableFuture.failedFuture(new TimeoutException("not connected to Redis"));
        }
        return timed(current, key, () -> current.delete(key));
    }

    private <T> CompletableFuture<T> timed(RedisLink current, String key, Supplier<CompletionStage<T>> command) {
        Answer<T> answer = new Answer<>(System.nanoTime() + timeoutNanos());
        try {
            CompletableFuture<T> sent = command.get().toCompletableFuture();
            answer.sent = sent;
            sent.whenComplete((reply, failure) -> {
                Breaker breaker = breaker(current, key);
                if (failure == null) {
                    breaker.succeeded();
                    answer.complete(reply);
                } else if (!answer.isDone()) {
                    // Counted before it is told, so that who hears of it finds the breaker as it is now.
                    errors.increment();
                    failed(breaker, key, Calls.unwrap(failure));
                    answer.completeExceptionally(Calls.unwrap(failure));
                }
            });
        } catch (RuntimeException ex) {
            errors.increment();
            failed(breaker(current, key), key, ex);
            answer.completeExceptionally(ex);
            return answer;
        }
        answer.onTimeout = () -> {
            timeouts.increment();
            failed(
                    breaker(current, key),
                    key,
                    new TimeoutException(
                            "Redis did not answer in " + options.timeout().toMillis() + " ms"));
        };
        deadlines.add(answer);
        return answer;
    }

    /** A reply that is waited for. */
    private static final class Answer<T> extends CompletableFuture<T> implements Deadlines.Timed {

        private final long deadline;
        private volatile @Nullable CompletableFuture<T> sent;
        private volatile @Nullable Runnable onTimeout;

        private Answer(long deadline) {
            this.deadline = deadline;
        }

        @Override
        public long deadline() {
            return deadline;
        }

        @Override
        public void expire() {
            if (isDone()) {
                return;
            }
            Runnable count = onTimeout;
            if (count != null) {
                count.run();
            }
            completeExceptionally(new TimeoutException("Redis did not answer in time"));
            CompletableFuture<T> command = sent;
            if (command != null) {
                command.cancel(false);
            }
        }
    }

    private Breaker breaker(RedisLink current, String key) {
        Breaker[] all = breakers;
        return all[all.length == 1 ? 0 : current.part(key)];
    }

    private void failed(Breaker breaker, String key, Throwable failure) {
        lastError = failure.toString();
        if (breaker.failed()) {
            if (openBreakers.getAndIncrement() == 0) {
                since = Instant.now();
                LOG.log(
                        Level.WARNING,
                        "Redis does not decide ({0}); limits decide as their on-failure says",
                        failure.toString());
            }
            probeLater(breaker, key);
        }
    }

    private void probeLater(Breaker breaker, String key) {
        if (closed) {
            return;
        }
        long pause = breaker.nextPause();
        long jitter = ThreadLocalRandom.current().nextLong(-pause / 5, pause / 5);
        housekeeping.schedule(guarded(() -> probe(breaker, key)), pause + jitter, TimeUnit.MILLISECONDS);
    }

    private void probe(Breaker breaker, String key) {
        RedisLink current = link;
        if (current == null || closed) {
            return;
        }
        CompletionStage<List<Object>> sent = current.eval(Script.PROBE, new String[] {keys.beside(key, "probe")});
        CompletableFuture<List<Object>> probe = new CompletableFuture<>();
        sent.whenComplete((reply, failure) -> {
            if (failure == null) {
                probe.complete(reply);
            } else {
                probe.completeExceptionally(failure);
            }
        });
        probe.orTimeout(timeoutNanos(), TimeUnit.NANOSECONDS).whenComplete((reply, failure) -> {
            if (failure == null) {
                recovered(breaker);
                return;
            }
            Throwable cause = Calls.unwrap(failure);
            lastError = cause.toString();
            sent.toCompletableFuture().cancel(false);
            if (current.isStale(cause)) {
                housekeeping.execute(guarded(() -> reconnect(current)));
            }
            current.rediscover();
            probeLater(breaker, key);
        });
    }

    private void recovered(Breaker breaker) {
        recoveries.incrementAndGet();
        breaker.close();
        if (openBreakers.decrementAndGet() == 0) {
            since = Instant.now();
            LOG.log(Level.WARNING, "Redis decides again");
        }
    }

    /** The client would reconnect too, but later with each attempt. */
    private void reconnect(RedisLink stale) {
        if (link != stale || closed) {
            return;
        }
        RedisLink made = connector.get();
        link = made;
        stale.close();
        if (closed) {
            made.close();
        }
    }

    /** Tries once, and again later by itself. */
    private void connect() {
        if (closed) {
            return;
        }
        try {
            RedisLink made = connector.get();
            Breaker[] all = new Breaker[made.parts()];
            for (int i = 0; i < all.length; i++) {
                all[i] = new Breaker();
            }
            breakers = all;
            link = made;
            since = Instant.now();
            if (lastError != null) {
                LOG.log(Level.WARNING, "Redis decides: connected");
            }
            if (closed) {
                made.close();
            }
        } catch (RuntimeException ex) {
            if (lastError == null) {
                LOG.log(
                        Level.WARNING,
                        "Redis cannot be reached ({0}); limits decide as their on-failure says",
                        ex.toString());
            }
            lastError = ex.toString();
            housekeeping.schedule(guarded(this::connect), 1, TimeUnit.SECONDS);
        }
    }

    private void heartbeat() {
        String key = keys.internal("nodes");
        if (isDown(key)) {
            return;
        }
        eval(Script.HEARTBEAT, new String[] {key}, node, text(SILENT_MICROS)).thenAccept(reply -> {
            if (reply.get(0) instanceof Long count) {
                countedNodes = count.intValue();
            }
        });
    }

    private static String text(long number) {
        return Long.toString(number);
    }

    private static Runnable guarded(Runnable task) {
        return () -> {
            try {
                task.run();
            } catch (RuntimeException ex) {
                LOG.log(Level.DEBUG, "housekeeping failed", ex);
            }
        };
    }
}
