package io.ratelimited.redis;

import io.ratelimited.redis.connection.RedisConnector;
import io.ratelimited.redis.connection.Threads;
import java.util.concurrent.Executor;

/** Makes backends that take everything from outside. */
public final class SimulatedBackend {

    private SimulatedBackend() {}

    public static RedisBackend of(
            RedisConnector connector, RedisBackendOptions options, Threads threads, Executor callers, String node) {
        return RedisBackend.of(connector, options, threads, callers, node);
    }
}
