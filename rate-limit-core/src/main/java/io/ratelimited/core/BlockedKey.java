package io.ratelimited.core;

import java.time.Duration;

/**
 * A key that a limit has blocked. Immutable.
 *
 * @param key as {@link CanonicalKey#ofText} returns it
 * @param left time until the block ends; when a block starts, its duration
 * @param level number of consecutive blocks of the key without a violation-free time in between, 1 or more
 */
public record BlockedKey(Object key, Duration left, int level) {}
