package io.ratelimited.spring.redis;

import io.lettuce.core.AbstractRedisClient;
import org.springframework.beans.factory.DisposableBean;

/**
 * The Lettuce client that limits connect with.
 *
 * @param lettuce a client of a server, of Sentinel, or of a cluster
 * @param shutdown ends the client, if it is the limits' own
 */
record LimitsClient(AbstractRedisClient lettuce, Runnable shutdown) implements DisposableBean {

    /** A client of the application, which shuts it down itself. */
    static LimitsClient borrowed(AbstractRedisClient client) {
        return new LimitsClient(client, () -> {});
    }

    @Override
    public void destroy() {
        shutdown.run();
    }
}
