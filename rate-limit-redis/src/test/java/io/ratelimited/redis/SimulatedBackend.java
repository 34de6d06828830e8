package io.ratelimited.redis;

import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** Makes backends that take everything from outside. */
public final class SimulatedBackend {

    private SimulatedBackend() {}

    /**
     * A backend that runs in one thread.
     *
     * @param other runs what {@code callers} rejects
     */
    public static RedisBackend of(
            RedisConnector connector,
            RedisBackendOptions options,
            Threads threads,
            Executor callers,
            Executor other,
            String node) {
        return RedisBackend.of(connector, options, threads, CallersExecutor.orElse(callers, other), node);
    }

    /** Writes a record without blocking. */
    public static CompletableFuture<SharedRecords.Outcome> write(
            SharedRecords records, SharedRecords.Key key, long basedOn, String text, @Nullable Duration lasting) {
        return records.writeAsync(key, basedOn, text, lasting, "ann", 10);
    }

    /** Whether some of Redis does not decide for this node. */
    public static boolean isAway(RedisBackend backend) {
        return backend.context().connection().isHeldUp();
    }
}
