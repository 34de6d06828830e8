package io.ratelimited.spring;

import org.jspecify.annotations.Nullable;

/**
 * A call has completed, and was charged with its cost instead of its reservation; or its cost could not be found out, so it
 * stays charged with its reservation. Immutable.
 *
 * @param limit the limit of the permits
 * @param key the key of the call; null for a limit without keys, and for a missing key
 * @param reserved permits, 0 or more
 * @param charged permits, 0 or more; with a failure those that were reserved
 * @param failure the reason why the cost is unknown; null if it is known
 */
public record RateLimitCharge(
        NamedLimit limit,
        @Nullable Object key,
        long reserved,
        long charged,
        @Nullable Throwable failure) {}
