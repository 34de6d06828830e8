package io.ratelimited.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.resource.ClientResources;
import java.util.List;

/**
 * Settings of the clients of a {@link RedisBackend}. Immutable if its components are.
 *
 * @param resources event loops and timers; the caller shuts them down after the backend
 * @param options options of each client; {@link ClusterClientOptions} if the addresses belong to a cluster. Automatic
 *     reconnects and timeouts in the options are ignored, because rate limits handle both themselves
 * @param uris the server or the Sentinels, as one address; or one or more nodes of a cluster
 */
public record RedisClientSettings(ClientResources resources, ClientOptions options, List<RedisURI> uris) {

    /** @throws IllegalArgumentException if there is no address, or several without a cluster */
    public RedisClientSettings {
        uris = List.copyOf(uris);
        if (uris.isEmpty()) {
            throw new IllegalArgumentException("uris must have at least one address");
        }
        if (uris.size() > 1 && !(options instanceof ClusterClientOptions)) {
            throw new IllegalArgumentException(
                    "uris has " + uris.size()
                            + " addresses: give one, with its Sentinels if there are any, or ClusterClientOptions for a cluster");
        }
    }
}
