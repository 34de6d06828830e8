package io.ratelimited.redis;

import io.ratelimited.redis.connection.RedisConnector;
import io.ratelimited.redis.connection.Threads;
import java.util.concurrent.Executor;

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

    /** Whether some of Redis does not decide for this node. */
    public static boolean isAway(RedisBackend backend) {
        return !backend.context().connection().isUp();
    }
}
