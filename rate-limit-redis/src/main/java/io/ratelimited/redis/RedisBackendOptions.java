package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.threads.CallbackThreads;
import java.time.Duration;
import java.util.concurrent.Executor;

/**
 * The options of an application's limits on Redis. Immutable.
 *
 * @param keyPrefix first part of every name of a key in Redis
 * @param timeout the longest time that a caller waits for Redis, from 1 millisecond; a command is never repeated
 * @param expectedNodes number of nodes of the cluster, among which a limit is divided while Redis is away; 0 to count them
 * @param ticker time, and waiting for it
 * @param timeSource the source of the time in scripts
 * @param executor runs the code that callers have attached to asynchronous decisions, so that it does not run on Lettuce's
 *     threads; an executor of the application answers as late as it runs a task
 */
public record RedisBackendOptions(
        String keyPrefix,
        Duration timeout,
        int expectedNodes,
        TimeSource timeSource,
        Ticker ticker,
        Executor executor) {

    /** The source of the time in scripts. All nodes that share limits must have the same. */
    public enum TimeSource {
        /** The time of Redis, asked by each script; as {@link #NODE} from the moment at which a script is rejected it. */
        AUTO,
        /** Each node's: the ticker, set by the replies of Redis to plain {@code TIME} commands. */
        NODE
    }

    /** Prefix {@code rl}, 50 milliseconds, nodes counted, the time of Redis, the system's clock, threads of
     * the limits' own. */
    public static final RedisBackendOptions DEFAULTS = new RedisBackendOptions(
            "rl", Duration.ofMillis(50), 0, TimeSource.AUTO, Ticker.system(), CallbackThreads.SHARED);

    /** @throws IllegalArgumentException when a value is out of range; the message names it */
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

    /** These options with another prefix. */
    public RedisBackendOptions keyPrefix(String value) {
        return new RedisBackendOptions(value, timeout, expectedNodes, timeSource, ticker, executor);
    }

    /** These options with another timeout. */
    public RedisBackendOptions timeout(Duration value) {
        return new RedisBackendOptions(keyPrefix, value, expectedNodes, timeSource, ticker, executor);
    }

    /** These options with another number of nodes. */
    public RedisBackendOptions expectedNodes(int value) {
        return new RedisBackendOptions(keyPrefix, timeout, value, timeSource, ticker, executor);
    }

    /** These options with another source of the time. */
    public RedisBackendOptions timeSource(TimeSource value) {
        return new RedisBackendOptions(keyPrefix, timeout, expectedNodes, value, ticker, executor);
    }

    /** These options with another clock. */
    public RedisBackendOptions ticker(Ticker value) {
        return new RedisBackendOptions(keyPrefix, timeout, expectedNodes, timeSource, value, executor);
    }

    /** These options with another executor. */
    public RedisBackendOptions executor(Executor value) {
        return new RedisBackendOptions(keyPrefix, timeout, expectedNodes, timeSource, ticker, value);
    }
}
