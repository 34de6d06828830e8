package io.ratelimited.spring;

import io.ratelimited.core.Claim;
import io.ratelimited.core.RateLimiter;
import org.jspecify.annotations.Nullable;

/**
 * What one limit is asked for one call.
 *
 * @param limit which limit
 * @param limiter its limiter, or that of the caller's tier
 * @param key whose budget; null for a limit without keys and for a missing key
 * @param permits at least 1
 * @param denied the key is missing, and the limit denies such calls
 */
record Ask(NamedLimit limit, RateLimiter limiter, @Nullable Object key, long permits, boolean denied) {

    Claim claim() {
        return new Claim(limiter, key, permits, limit.maxWaitNanos());
    }
}
