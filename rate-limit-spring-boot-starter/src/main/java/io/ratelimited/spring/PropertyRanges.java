package io.ratelimited.spring;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** The ranges of the properties that belong to no single limit. */
final class PropertyRanges {

    private PropertyRanges() {}

    /** @throws InvalidRateLimitException when a value is out of range */
    static void check(RateLimitProperties properties) {
        long maximumKeys = properties.memory().maximumKeys();
        require(maximumKeys >= 1, "memory.maximum-keys", "must be at least 1", maximumKeys);
        int status = properties.http().status();
        require(status >= 400 && status <= 599, "http.status", "must be from 400 to 599", status);
        int prefix = properties.http().ipv6PrefixLength();
        require(prefix >= 1 && prefix <= 128, "http.ipv6-prefix-length", "must be from 1 to 128", prefix);
        Integer nodes = properties.redis().expectedNodes();
        require(nodes == null || nodes >= 1, "redis.expected-nodes", "must be at least 1", nodes);
        boolean answers = properties.redis().timeout().compareTo(Duration.ZERO) > 0;
        require(
                answers,
                "redis.timeout",
                "must be longer than 0",
                properties.redis().timeout());
    }

    private static void require(boolean condition, String property, String range, @Nullable Object value) {
        if (!condition) {
            throw InvalidRateLimitException.ofProperty("rate-limit." + property, range, value);
        }
    }
}
