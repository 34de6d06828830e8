package io.ratelimited.redis.limiter;

import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.KeyNames;
import java.util.concurrent.Executor;
import java.util.function.BiFunction;

/**
 * What the limiters of a process have in common.
 *
 * @param connection sends every command
 * @param keys names the keys in Redis
 * @param ticker time, and waiting for it
 * @param callers runs what callers have attached to asynchronous decisions and may block
 * @param nodes those that share the limits
 * @param unavailable makes the exception for what could not be done, and why
 */
public record LimiterContext(
        GuardedConnection connection,
        KeyNames keys,
        Ticker ticker,
        Executor callers,
        Nodes nodes,
        BiFunction<String, Throwable, RuntimeException> unavailable) {

    /**
     * Runs what callers have attached. What never blocks runs where a reply is read; what follows from an alarm or a failure
     * does not, because those threads serve others.
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
