package io.ratelimited.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.resource.ClientResources;
import java.util.List;

/**
 * The settings of the clients of a {@link RedisBackend}. Immutable, as far as its parts are.
 *
 * @param resources event loops and timers; the caller shuts them down after the backend
 * @param options of each client; {@link ClusterClientOptions} say that the addresses are of a cluster. Clients of limits never
 *     reconnect by themselves and have time limits of their own, whatever the options say
 * @param uris the server or the Sentinels, as one address; or one and more nodes of a cluster
 */
public record RedisClientSettings(ClientResources resources, ClientOptions options, List<RedisURI> uris) {

    /** @throws IllegalArgumentException when there is no address, or more than one that is not of a cluster */
    public RedisClientSettings {
        uris = List.copyOf(uris);
        if (uris.isEmpty()) {
            throw new IllegalArgumentException("uris must have one address at least");
        }
        if (uris.size() > 1 && !(options instanceof ClusterClientOptions)) {
            throw new IllegalArgumentException(
                    "uris has " + uris.size()
                            + " addresses: give one, with its Sentinels if there are any, or ClusterClientOptions for a cluster");
        }
    }
}
