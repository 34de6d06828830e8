package io.ratelimited.spring.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterURIUtil;
import io.ratelimited.spring.InvalidRateLimitException;
import java.net.URI;

/** Reads {@code rate-limit.redis.url}. Needs nothing but Lettuce. */
final class RedisUrl {

    /** Text behind a colon that is not a port: it may be a password. */
    private static final String NO_PORT = ":(?!//|\\d{1,5}(?![^,/?#]))[^,/?#]*";

    /** A name, an IPv4 address or an IPv6 address in brackets, and a port. */
    private static final String HOST = "(\\[[^\\]@]+\\]|[^:,@\\[\\]]+)(:\\d{1,5})?";

    private RedisUrl() {}

    /**
     * Returns a client for limits.
     *
     * @param url of a server, of Sentinel, or of several nodes of a cluster: {@code redis://one,two}
     * @throws InvalidRateLimitException when it cannot be read; its message has no password
     */
    static LimitsClient client(String url) {
        try {
            URI uri = URI.create(url);
            String scheme = String.valueOf(uri.getScheme());
            String servers = String.valueOf(uri.getRawAuthority());
            if (!scheme.contains("socket")) {
                requireServers(servers, String.valueOf(uri.getRawPath()) + uri.getRawQuery());
            }
            if (uri.getRawFragment() != null && !scheme.contains("sentinel")) {
                throw new IllegalArgumentException("only a Sentinel address has a fragment");
            }
            boolean cluster = scheme.matches("rediss?") && servers.contains(",");
            return cluster
                    ? LimitsClient.ofCluster(null, ClientOptions.create(), RedisClusterURIUtil.toRedisURIs(uri))
                    : LimitsClient.ofServer(null, ClientOptions.create(), RedisURI.create(uri));
        } catch (RuntimeException ex) {
            // Without the cause, whose message repeats the password.
            throw new InvalidRateLimitException(
                    "Property rate-limit.redis.url is " + withoutPassword(url) + ", which is not an address of Redis",
                    "Use redis://host:6379, rediss://user:password@host:6379/0, redis-sentinel://one,two/0#primary, or"
                            + " redis://one:6379,two:6379 for a cluster; encode special characters of a password, such"
                            + " as %40 for @. [RL-111]");
        }
    }

    /**
     * Checks that Lettuce does not take parts of an unencoded password for a host, which it would report when it cannot
     * connect.
     */
    private static void requireServers(String servers, String rest) {
        if (!servers.matches("([^@]*@)?" + HOST + "(," + HOST + ")*") || rest.contains("@")) {
            throw new IllegalArgumentException("not a list of servers");
        }
    }

    /** Hides the password of an unreadable URL: it may be anywhere before the last at-sign, or behind a colon. */
    private static String withoutPassword(String url) {
        return url.replaceFirst("(?s)^([a-z-]+://)?.*@", "$1…@").replaceAll(NO_PORT, ":…");
    }
}
