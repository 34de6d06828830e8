package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.KeyNames;
import java.util.concurrent.Executor;
import java.util.function.BiFunction;

/**
 * The parts that all limiters of a process share.
 *
 * @param connection sends every command
 * @param keys names the keys in Redis
 * @param ticker time, and waiting for it
 * @param callers runs the code that callers have attached to asynchronous decisions and that may block
 * @param nodes those that share the limits
 * @param unavailable makes the exception from the operation that could not be done and its reason
 */
public record LimiterContext(
        GuardedConnection connection,
        KeyNames keys,
        Ticker ticker,
        Executor callers,
        Nodes nodes,
        BiFunction<String, Throwable, RuntimeException> unavailable) {

    /**
     * Returns the executor for code that callers have attached. Code that never blocks runs on the thread that reads a
     * reply, but not after an alarm or a failure, because those threads serve others.
     */
    Executor callers(Callbacks callbacks) {
        return callbacks == Callbacks.MAY_BLOCK
                ? callers
                : task -> {
                    if (connection.mayRunCallersHere()) {
                        task.run();
                    } else {
                        callers.execute(task);
                    }
                };
    }
}
