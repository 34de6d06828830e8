package io.ratelimited.redis.internals.connection;

import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** Finds the primaries and connects to them. If a method throws or blocks, others go on. Thread-safe. */
public interface RedisConnector extends AutoCloseable {

    /** Looks for the primaries: their addresses, or one address of its own where there is a single primary. */
    CompletionStage<Set<String>> discover();

    /** The address of the primary that holds a key, as far as known; null when no primary does. */
    @Nullable
    String address(String key);

    /** A new connection to the primary at an address. */
    CompletionStage<RedisLink> connect(String address);

    /** Returns whether there are several primaries, each with the keys of its slots. */
    boolean isCluster();

    /** Returns whether a command must have all its keys in one slot: in a cluster, and where a server has refused another one. */
    default boolean separatesSlots() {
        return isCluster();
    }

    @Override
    void close();
}
