package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.InvalidRateLimitException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** The ranges of the properties that belong to no single limit. */
final class PropertyRanges {

    private PropertyRanges() {}

    /**
     * Checks every one.
     *
     * @throws InvalidRateLimitException when a value is out of range
     */
    static void check(RateLimitProperties properties) {
        Long maximumKeys = properties.memory().maximumKeys();
        require(maximumKeys == null || maximumKeys >= 1, "memory.maximum-keys", "must be at least 1", maximumKeys);
        int status = properties.http().status();
        require(status >= 400 && status <= 599, "http.status", "must be from 400 to 599", status);
        int ipv6Prefix = properties.http().ipv6PrefixLength();
        require(ipv6Prefix >= 1 && ipv6Prefix <= 128, "http.ipv6-prefix-length", "must be from 1 to 128", ipv6Prefix);
        Integer nodes = properties.redis().expectedNodes();
        require(nodes == null || nodes >= 1, "redis.expected-nodes", "must be at least 1", nodes);
        Duration timeout = properties.redis().timeout();
        boolean inRange = timeout.compareTo(Duration.ofMillis(1)) >= 0 && timeout.compareTo(Duration.ofMinutes(1)) <= 0;
        require(inRange, "redis.timeout", "must be from 1ms to 1m", timeout);
        String prefix = properties.redis().keyPrefix();
        require(prefix == null || !prefix.isBlank(), "redis.key-prefix", "must not be blank", '"' + prefix + '"');
    }

    private static void require(boolean condition, String property, String range, @Nullable Object value) {
        if (!condition) {
            throw InvalidRateLimitException.ofProperty("rate-limit." + property, range, value);
        }
    }
}
