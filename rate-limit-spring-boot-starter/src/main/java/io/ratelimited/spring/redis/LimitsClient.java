package io.ratelimited.spring.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.resource.ClientResources;
import io.ratelimited.redis.RedisClientSettings;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;

/**
 * The client that limits connect with.
 *
 * @param settings of the clients that the backend makes
 * @param shutdown ends the resources, if they are the limits' own
 */
record LimitsClient(RedisClientSettings settings, Runnable shutdown) implements DisposableBean {

    /**
     * A client for one server, or for Sentinel. Without the options for a cluster, which would make one of the server: an
     * application may share its options among both.
     *
     * @param resources of the application, which shuts them down itself; null for resources of the limits' own
     */
    static LimitsClient ofServer(@Nullable ClientResources resources, ClientOptions options, RedisURI uri) {
        return of(resources, ClientOptions.copyOf(options), List.of(uri));
    }

    /** A client for a cluster, by one or more of its nodes; see {@link #ofServer}. */
    static LimitsClient ofCluster(@Nullable ClientResources resources, ClientOptions options, List<RedisURI> nodes) {
        boolean complete = options instanceof ClusterClientOptions;
        return of(
                resources,
                complete ? options : ClusterClientOptions.builder(options).build(),
                nodes);
    }

    private static LimitsClient of(@Nullable ClientResources resources, ClientOptions options, List<RedisURI> uris) {
        if (resources != null) {
            return new LimitsClient(new RedisClientSettings(resources, options, uris), () -> {});
        }
        ClientResources own = ClientResources.create();
        return new LimitsClient(new RedisClientSettings(own, options, uris), own::shutdown);
    }

    @Override
    public void destroy() {
        shutdown.run();
    }
}
