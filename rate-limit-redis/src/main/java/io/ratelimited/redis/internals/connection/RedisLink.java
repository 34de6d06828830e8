package io.ratelimited.redis.internals.connection;

import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * A connection to one server. A command is sent once: when the connection breaks, all commands that are pending fail,
 * and the connection is never used again. Thread-safe.
 */
public interface RedisLink extends AutoCloseable {

    /**
     * Runs a script once. A server that does not know the script has run nothing and is sent its text; no other failure is
     * retried.
     *
     * @param asking the server is importing the keys' slot of a cluster, and gets the command with {@code ASKING}
     * @return completes on a thread of the connection, with integers as {@link Long} and the rest as {@link String}
     */
    CompletionStage<List<Object>> eval(Script script, String[] keys, ScriptArguments args, boolean asking);

    /**
     * Takes a script call back if it has not been sent: it never runs then. The reply to one that has been sent still comes, however
     * late.
     *
     * @param call as {@link #eval} has returned it
     */
    default void takeBack(CompletionStage<?> call) {}

    /** The time of the server: seconds since 1970, and microseconds, as text. */
    CompletionStage<List<Object>> time();

    /** Removes a key. */
    CompletionStage<Long> delete(String key);

    /** Runs once, when the connection has broken; at once if it has. */
    void onBreak(Runnable task);

    @Override
    void close();
}
