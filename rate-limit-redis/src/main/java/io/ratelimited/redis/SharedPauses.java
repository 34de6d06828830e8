package io.ratelimited.redis;

import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.limiter.LimiterContext;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/**
 * Pauses that all nodes share: the name of each, and its end in the time of Redis. Of two pauses with the same name, the one
 * that ends later applies. From the first listener on, a node reads them twice per second, so that it knows each within a
 * second. Without Redis, a node only knows its own pauses. Thread-safe.
 */
public final class SharedPauses {

    private static final long READ_MILLIS = 500;
    /** Pauses that nodes share at the same time; a further one is not stored. */
    private static final int MAX_PAUSES = 1_000;

    private final LimiterContext context;
    private final GuardedConnection connection;
    private final String[] keys;
    private final List<BiConsumer<String, Duration>> listeners = new CopyOnWriteArrayList<>();
    /** Ends of the pauses that listeners know, by name, in microseconds since 1970. Guarded by this, like {@link #reads}. */
    private Map<String, Long> told = Map.of();

    private boolean reads;

    SharedPauses(LimiterContext context, String key) {
        this.context = context;
        this.connection = context.connection();
        this.keys = new String[] {key};
    }

    /**
     * Starts a pause on all nodes. Does not block.
     *
     * @param lasting its length from now, rounded up to a microsecond if it is shorter
     * @return completes when Redis has stored it; fails if Redis is unavailable, or nodes share a thousand pauses already
     */
    public CompletableFuture<Void> publish(String name, Duration lasting) {
        ScriptArguments args = new ScriptArguments()
                .add(connection.time())
                .add(name)
                .add(Math.max(1, TimeUnit.NANOSECONDS.toMicros(lasting.toNanos())))
                .add(MAX_PAUSES);
        return connection.evalInBackground(Script.PAUSES, keys, args).thenAccept(reply -> {
            tell(reply);
            if (!reply.contains(name)) {
                throw new IllegalStateException("instances share at most " + MAX_PAUSES + " pauses at a time");
            }
        });
    }

    /**
     * Passes the name and the remaining time of pauses to a listener, on threads for callbacks. Each pause is passed once,
     * and again if its end is later.
     */
    public void follow(BiConsumer<String, Duration> listener) {
        listeners.add(listener);
        synchronized (this) {
            if (!reads) {
                reads = true;
                connection.every(READ_MILLIS, this::read);
            }
        }
    }

    private void read() {
        ScriptArguments args = new ScriptArguments().add(connection.time());
        connection.evalInBackground(Script.PAUSES, keys, args).thenAccept(this::tell);
    }

    private void tell(List<Object> reply) {
        long now = (Long) reply.get(0);
        Map<String, Long> ends = new HashMap<>();
        Map<String, Duration> newOnes = new HashMap<>();
        synchronized (this) {
            for (int i = 1; i < reply.size(); i += 2) {
                String name = (String) reply.get(i);
                long end = (Long) reply.get(i + 1);
                long known = told.getOrDefault(name, 0L);
                ends.put(name, Math.max(known, end));
                if (end > known) {
                    newOnes.put(name, Duration.of(end - now, ChronoUnit.MICROS));
                }
            }
            told = ends;
        }
        if (!newOnes.isEmpty() && !listeners.isEmpty()) {
            context.callers()
                    .execute(() -> newOnes.forEach(
                            (name, left) -> listeners.forEach(listener -> listener.accept(name, left))));
        }
    }
}
