package io.ratelimited.redis;

import java.util.Objects;

/**
 * Options of one limit on Redis. Immutable.
 *
 * @param tier name of the tier; empty for the limit itself
 * @param onFailure policy while Redis is unavailable
 * @param maxOvershoot share of the permits of a period by which all nodes together can exceed the limit, so that nodes can
 *     lease permits; from 0 (exact) to 1
 * @param maximumKeys maximum number of keys that this process tracks: for cached rejections, and for the state while Redis is
 *     unavailable
 */
public record RedisLimitOptions(String tier, OnFailure onFailure, double maxOvershoot, long maximumKeys) {

    /** The defaults: exact, local on failure, a million keys. */
    public static final RedisLimitOptions DEFAULTS = new RedisLimitOptions("", OnFailure.LOCAL, 0, 1_000_000);

    /** @throws IllegalArgumentException if a value is out of range; the message names it */
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

    /** Returns these options for a tier of the limit. */
    public RedisLimitOptions tier(String value) {
        return new RedisLimitOptions(value, onFailure, maxOvershoot, maximumKeys);
    }

    /** Returns these options with another policy on failure. */
    public RedisLimitOptions onFailure(OnFailure value) {
        return new RedisLimitOptions(tier, value, maxOvershoot, maximumKeys);
    }

    /** Returns these options with another maximum overshoot. */
    public RedisLimitOptions maxOvershoot(double value) {
        return new RedisLimitOptions(tier, onFailure, value, maximumKeys);
    }

    /** Returns these options with another maximum number of keys. */
    public RedisLimitOptions maximumKeys(long value) {
        return new RedisLimitOptions(tier, onFailure, maxOvershoot, value);
    }
}
