package io.ratelimited.spring.redis;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.RedisClusterURIUtil;
import io.ratelimited.spring.InvalidRateLimitException;
import java.net.URI;

/** A client of the limits' own, made from {@code rate-limit.redis.url}. Needs nothing but Lettuce. */
final class RedisUrlClient {

    private RedisUrlClient() {}

    /**
     * Makes the client.
     *
     * @param url of a server, of Sentinel, or of several nodes of a cluster: {@code redis://one,two}
     * @throws InvalidRateLimitException when it cannot be read; its message has no password
     */
    static LimitsClient of(String url) {
        AbstractRedisClient client = client(url);
        atMostOnce(client);
        return new LimitsClient(client, client::shutdown);
    }

    private static AbstractRedisClient client(String url) {
        try {
            URI uri = URI.create(url);
            boolean cluster = String.valueOf(uri.getScheme()).matches("rediss?")
                    && String.valueOf(uri.getAuthority()).contains(",");
            return cluster
                    ? RedisClusterClient.create(RedisClusterURIUtil.toRedisURIs(uri))
                    : RedisClient.create(RedisURI.create(uri));
        } catch (RuntimeException ex) {
            // Without the cause, whose message repeats the password.
            throw new InvalidRateLimitException(
                    "Property rate-limit.redis.url is " + url.replaceFirst("//.*@", "//…@")
                            + ", which is not an address of Redis",
                    "Use redis://host:6379, rediss://user:password@host:6379/0, redis-sentinel://one,two/0#primary, or"
                            + " redis://one:6379,two:6379 for a cluster; encode special characters of a password, such"
                            + " as %40 for @.");
        }
    }

    /** A command that was under way when a connection broke may have run: it is not sent again. */
    static void atMostOnce(AbstractRedisClient client) {
        ClientOptions options =
                client.getOptions().mutate().replayFilter(command -> true).build();
        if (client instanceof RedisClusterClient cluster) {
            cluster.setOptions((ClusterClientOptions) options);
        } else {
            ((RedisClient) client).setOptions(options);
        }
    }
}
