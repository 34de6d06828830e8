package io.ratelimited.core;

import java.time.Duration;

/**
 * A key that a limit has blocked. Immutable.
 *
 * @param key as {@link CanonicalKey#ofText} makes it
 * @param left time until the block ends; of a block that has just begun, how long it lasts
 * @param level how many blocks of the key have followed each other without a quiet time, 1 or more
 */
public record BlockedKey(Object key, Duration left, int level) {}
