package io.ratelimited.redis;

import java.util.Objects;

/**
 * The options of one limit on Redis. Immutable.
 *
 * @param tier the tier that has these budgets, of a limit with several under one name; empty for the limit itself
 * @param onFailure handling of a call while Redis does not answer
 * @param maxOvershoot by how much of a period's permits the cluster may exceed the limit so that nodes can hold permits
 *     in advance; 0 to 1, 0 (exact) for none
 * @param maximumKeys keys remembered in this process at most: rejections, and budgets while Redis is away
 */
public record RedisLimitOptions(String tier, OnFailure onFailure, double maxOvershoot, long maximumKeys) {

    /** Exact, local on failure, a million keys. */
    public static final RedisLimitOptions DEFAULTS = new RedisLimitOptions("", OnFailure.LOCAL, 0, 1_000_000);

    /** @throws IllegalArgumentException when a value is out of range; the message names it */
    public RedisLimitOptions {
        Objects.requireNonNull(tier, "tier");
        Objects.requireNonNull(onFailure, "onFailure");
        if (!(maxOvershoot >= 0 && maxOvershoot <= 1)) {
            throw new IllegalArgumentException("maxOvershoot must be from 0 to 1 (100%): " + maxOvershoot);
        }
        if (maximumKeys < 1) {
            throw new IllegalArgumentException("maximumKeys must be at least 1: " + maximumKeys);
        }
    }

    /** These options for a tier of the limit. */
    public RedisLimitOptions tier(String value) {
        return new RedisLimitOptions(value, onFailure, maxOvershoot, maximumKeys);
    }

    /** These options with another behaviour on failure. */
    public RedisLimitOptions onFailure(OnFailure value) {
        return new RedisLimitOptions(tier, value, maxOvershoot, maximumKeys);
    }

    /** These options with another tolerated error. */
    public RedisLimitOptions maxOvershoot(double value) {
        return new RedisLimitOptions(tier, onFailure, value, maximumKeys);
    }

    /** These options with another number of keys. */
    public RedisLimitOptions maximumKeys(long value) {
        return new RedisLimitOptions(tier, onFailure, maxOvershoot, value);
    }
}
