package io.ratelimited.redis;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The way to Redis: one connection, the timeout of every call, and a breaker for each part that fails alone. A call is
 * made once. While a breaker is open nobody asks but a probe, which first looks for the server anew. Thread-safe.
 */
final class Circuit implements AutoCloseable {

    /** The log of transitions has the name of the class that users know. */
    private static final Logger LOG = System.getLogger(RedisBackend.class.getName());

    private static final long CONNECT_AGAIN_MILLIS = 500;

    private final Supplier<RedisLink> connector;
    private final RedisKeys keys;
    private final long timeoutNanos;
    private final Deadlines deadlines;
    private final RedisTime time;
    private final ScheduledExecutorService housekeeping;

    private final LongAdder calls = new LongAdder();
    private final LongAdder timeouts = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private final AtomicInteger openBreakers = new AtomicInteger();
    /** How many outages have ended. */
    private final AtomicInteger recoveries = new AtomicInteger();

    private volatile @Nullable RedisLink link;
    private volatile Breaker[] breakers = {new Breaker()};
    private volatile Instant since = Instant.now();
    private volatile @Nullable Throwable lastFailure;
    /** The log says that there is no connection. Guarded by this. */
    private boolean toldAway;

    private volatile boolean closed;

    Circuit(
            Supplier<RedisLink> connector,
            RedisKeys keys,
            RedisBackendOptions options,
            ScheduledExecutorService housekeeping) {
        this.connector = connector;
        this.keys = keys;
        this.timeoutNanos = options.timeout().toNanos();
        this.housekeeping = housekeeping;
        this.deadlines = new Deadlines(timeoutNanos);
        this.time = new RedisTime(options, keys.internal("nodes"), () -> link, housekeeping);
    }

    RedisTime time() {
        return time;
    }

    Deadlines deadlines() {
        return deadlines;
    }

    int recoveries() {
        return recoveries.get();
    }

    /** Parts that fail each on its own: 1 but in a cluster; 0 when not connected yet. */
    int parts() {
        RedisLink current = link;
        return current == null ? 0 : current.parts();
    }

    RedisHealth health(int nodes) {
        int open = openBreakers.get();
        RedisHealth.State state = link == null || !time.isKnown() || open == breakers.length
                ? RedisHealth.State.DOWN
                : open > 0 ? RedisHealth.State.DEGRADED : RedisHealth.State.UP;
        Throwable failure = time.failure() == null ? lastFailure : time.failure();
        return new RedisHealth(
                state, since, failure == null ? null : told(failure), calls.sum(), timeouts.sum(), errors.sum(), nodes);
    }

    /** A failure and what it comes from, in one line: a client says that it cannot connect, and only a cause says why. */
    private static String told(Throwable failure) {
        StringBuilder text = new StringBuilder(failure.toString());
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            if (text.indexOf(cause.toString()) < 0) {
                text.append(": ").append(cause);
            }
        }
        // No pattern: its first use loads classes, and those whose time is over wait until this is logged.
        return text.toString().replace('\n', ' ').replace('\t', ' ');
    }

    /** Tries once, and again later by itself. */
    void connect() {
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
            connected(made);
            time.ask();
            if (closed) {
                made.close();
            }
        } catch (RuntimeException | Error ex) {
            if (lastFailure == null) {
                tellAway("Redis cannot be reached (" + told(ex) + ")");
            }
            lastFailure = ex;
            housekeeping.schedule(RedisBackend.guarded(this::connect), CONNECT_AGAIN_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    private synchronized void connected(RedisLink made) {
        link = made;
        since = Instant.now();
        if (toldAway) {
            LOG.log(Level.WARNING, "Redis decides: connected");
        }
    }

    private synchronized void tellAway(String what) {
        toldAway = true;
        LOG.log(Level.WARNING, what + "; limits decide as their on-failure says");
    }

    /** Says that the application goes on without a connection, if nothing has said so yet. */
    synchronized void tellLate(long millis) {
        if (link == null && !toldAway) {
            tellAway("Redis has not been reached within " + millis + " ms and is still tried");
        }
    }

    /** Whether asking Redis about a key would be in vain. */
    boolean isDown(String key) {
        RedisLink current = link;
        return current == null
                || closed
                || !time.isKnown()
                || breaker(current, key).isOpen();
    }

    /**
     * Runs a script on a key's node, once. Fails when Redis does not answer in time, or answers with an error; both are
     * counted by the breaker of the key.
     */
    CompletableFuture<List<Object>> eval(Script script, String[] on, Words args) {
        RedisLink current = link;
        if (current == null || closed) {
            return CompletableFuture.failedFuture(new TimeoutException("not connected to Redis"));
        }
        if (!time.isKnown()) {
            return CompletableFuture.failedFuture(new TimeoutException("Redis does not tell the time"));
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
        Answer<T> answer = new Answer<>(System.nanoTime() + timeoutNanos, () -> {
            timeouts.increment();
            failed(
                    breaker(current, key),
                    key,
                    new TimeoutException("Redis did not answer in " + timeoutNanos / 1_000_000 + " ms"));
        });
        try {
            CompletableFuture<T> sent = command.get().toCompletableFuture();
            answer.of(sent);
            sent.whenComplete((reply, failure) -> {
                Breaker breaker = breaker(current, key);
                if (failure == null) {
                    breaker.succeeded();
                    answer.complete(reply);
                } else if (!answer.isDone()) {
                    // Counted before it is told, so that who hears of it finds the breaker as it is now.
                    errors.increment();
                    Throwable cause = Calls.unwrap(failure);
                    if (!time.isRefused(cause)) {
                        failed(breaker, key, cause);
                    }
                    answer.completeExceptionally(cause);
                }
            });
        } catch (RuntimeException ex) {
            errors.increment();
            failed(breaker(current, key), key, ex);
            answer.completeExceptionally(ex);
            return answer;
        }
        deadlines.add(answer);
        return answer;
    }

    private Breaker breaker(RedisLink current, String key) {
        Breaker[] all = breakers;
        return all[all.length == 1 ? 0 : current.part(key)];
    }

    private void failed(Breaker breaker, String key, Throwable failure) {
        lastFailure = failure;
        if (breaker.failed()) {
            if (openBreakers.getAndIncrement() == 0) {
                since = Instant.now();
                LOG.log(
                        Level.WARNING,
                        "Redis does not decide ({0}); limits decide as their on-failure says",
                        told(failure));
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
        housekeeping.schedule(RedisBackend.guarded(() -> probe(breaker, key)), pause + jitter, TimeUnit.MILLISECONDS);
    }

    /** Looks for the server anew where it may have moved, so that a promoted one is found at the first attempt. */
    private void probe(Breaker breaker, String key) {
        RedisLink current = link;
        if (current == null || closed) {
            return;
        }
        try {
            Throwable failure = lastFailure;
            RedisLink asked = failure != null && current.isStale(failure) ? reconnect(current) : current;
            bounded(asked.rediscover()).whenComplete((found, unknown) -> ask(asked, breaker, key));
        } catch (RuntimeException | Error ex) {
            lastFailure = ex;
            probeLater(breaker, key);
        }
    }

    private void ask(RedisLink asked, Breaker breaker, String key) {
        CompletionStage<List<Object>> sent =
                asked.eval(Script.PROBE, new String[] {keys.beside(key, "probe")}, new Words().add(time.word()));
        bounded(sent).whenComplete((reply, failure) -> {
            if (failure == null) {
                recovered(breaker);
                return;
            }
            lastFailure = Calls.unwrap(failure);
            time.isRefused(lastFailure);
            sent.toCompletableFuture().cancel(false);
            probeLater(breaker, key);
        });
    }

    /** The same, but failed after the timeout. */
    private <T> CompletableFuture<T> bounded(CompletionStage<T> stage) {
        return stage.toCompletableFuture().copy().orTimeout(timeoutNanos, TimeUnit.NANOSECONDS);
    }

    private void recovered(Breaker breaker) {
        recoveries.incrementAndGet();
        breaker.close();
        time.ask();
        if (openBreakers.decrementAndGet() == 0) {
            since = Instant.now();
            LOG.log(Level.WARNING, "Redis decides again");
        }
    }

    /** The client would reconnect too, but later with each attempt, and not to another primary. */
    private RedisLink reconnect(RedisLink stale) {
        RedisLink made = connector.get();
        link = made;
        stale.close();
        if (closed) {
            made.close();
        }
        return made;
    }

    /** Closes the connection; everything fails from now on. */
    @Override
    public void close() {
        closed = true;
        RedisLink last = link;
        if (last != null) {
            last.close();
        }
        deadlines.close();
    }
}
