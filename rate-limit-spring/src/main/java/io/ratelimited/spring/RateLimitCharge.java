package io.ratelimited.spring;

import org.jspecify.annotations.Nullable;

/**
 * A completed call was charged with its actual cost instead of its reservation; or the cost could not be determined, so the
 * call stays charged with its reservation. Immutable.
 *
 * @param limit the limit of the permits
 * @param key the key of the call; null for a limit without keys, and for a missing key
 * @param reserved reserved permits, 0 or more
 * @param charged charged permits, 0 or more; after a failure the reserved ones
 * @param failure the reason why the cost is unknown; null if it is known
 */
public record RateLimitCharge(
        NamedLimit limit,
        @Nullable Object key,
        long reserved,
        long charged,
        @Nullable Throwable failure) {}
