package io.ratelimited.spring.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
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

    /** @param resources of the application, which shuts them down itself; null for resources of the limits' own */
    static LimitsClient of(@Nullable ClientResources resources, ClientOptions options, List<RedisURI> uris) {
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
