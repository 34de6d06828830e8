package io.ratelimited.redis;

import java.util.List;
import java.util.concurrent.CompletionStage;

/** The connection to Redis: all that the limiter needs of a client. Thread-safe. */
interface RedisLink extends AutoCloseable {

    /**
     * Runs a script once, on the node that holds the keys. A node that does not know the script has run nothing and is
     * sent its text; no other failure is retried.
     *
     * @return completes on a thread of the connection, with integers as {@link Long} and the rest as {@link String}
     */
    CompletionStage<List<Object>> eval(Script script, String[] keys, Words args);

    /** The time of the server that holds a key: seconds since 1970, and microseconds, as text. */
    CompletionStage<List<Object>> time(String key);

    /** Removes a key. */
    CompletionStage<Long> delete(String key);

    /** Whether only another connection can help: this one is down, or leads to a server that is no longer the primary. */
    boolean isStale(Throwable failure);

    /** Looks for the primaries anew, unless it has just done so or there is nothing to look for. */
    CompletionStage<Void> rediscover();

    /** Which of the parts that fail alone holds a key: from 0 to {@link #parts()}, exclusive. */
    int part(String key);

    /** How many parts of the data fail each on its own. */
    int parts();

    @Override
    void close();
}
