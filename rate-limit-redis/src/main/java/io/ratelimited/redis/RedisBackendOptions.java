package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.threads.CallbackThreads;
import java.time.Duration;
import java.util.concurrent.Executor;

/**
 * Options of the limits of an application on Redis. Immutable.
 *
 * @param keyPrefix prefix of all keys in Redis
 * @param timeout maximum wait for a response, from 1 millisecond; a command is never repeated
 * @param expectedNodes number of nodes that share a limit while Redis is unavailable; 0 to count them
 * @param ticker time, and waiting for it
 * @param timeSource the source of the time in scripts
 * @param executor runs the callbacks of asynchronous decisions, so that they do not run on Lettuce's threads; if it is an
 *     executor of the application, a decision is as late as the executor runs the task
 */
public record RedisBackendOptions(
        String keyPrefix,
        Duration timeout,
        int expectedNodes,
        TimeSource timeSource,
        Ticker ticker,
        Executor executor) {

    /** Source of the time in scripts; the same on all nodes that share limits. */
    public enum TimeSource {
        /** The time of Redis, which each script reads; if Redis rejects that, {@link #NODE} from then on. */
        AUTO,
        /** The ticker of each node, synchronized with Redis by plain {@code TIME} commands. */
        NODE
    }

    /**
     * The defaults: prefix {@code rl}, a timeout of 50 milliseconds, counted nodes, the time of Redis, the system clock, and
     * threads of the backend.
     */
    public static final RedisBackendOptions DEFAULTS = new RedisBackendOptions(
            "rl", Duration.ofMillis(50), 0, TimeSource.AUTO, Ticker.system(), CallbackThreads.SHARED);

    /** @throws IllegalArgumentException if a value is out of range; the message names it */
    public RedisBackendOptions {
        if (keyPrefix.isBlank()) {
            throw new IllegalArgumentException("keyPrefix must not be blank: \"" + keyPrefix + "\"");
        }
        if (timeout.compareTo(Duration.ofMillis(1)) < 0 || timeout.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException("timeout must be from 1ms to 1m: " + timeout);
        }
        if (expectedNodes < 0) {
            throw new IllegalArgumentException("expectedNodes must be 0 (counted) or more: " + expectedNodes);
        }
    }

    /** Returns these options with another prefix. */
    public RedisBackendOptions keyPrefix(String value) {
        return new RedisBackendOptions(value, timeout, expectedNodes, timeSource, ticker, executor);
    }

    /** Returns these options with another timeout. */
    public RedisBackendOptions timeout(Duration value) {
        return new RedisBackendOptions(keyPrefix, value, expectedNodes, timeSource, ticker, executor);
    }

    /** Returns these options with another number of nodes. */
    public RedisBackendOptions expectedNodes(int value) {
        return new RedisBackendOptions(keyPrefix, timeout, value, timeSource, ticker, executor);
    }

    /** Returns these options with another source of the time. */
    public RedisBackendOptions timeSource(TimeSource value) {
        return new RedisBackendOptions(keyPrefix, timeout, expectedNodes, value, ticker, executor);
    }

    /** Returns these options with another clock. */
    public RedisBackendOptions ticker(Ticker value) {
        return new RedisBackendOptions(keyPrefix, timeout, expectedNodes, timeSource, value, executor);
    }

    /** Returns these options with another executor. */
    public RedisBackendOptions executor(Executor value) {
        return new RedisBackendOptions(keyPrefix, timeout, expectedNodes, timeSource, ticker, value);
    }
}
