package io.ratelimited.spring.client;

import io.ratelimited.core.Policy;
import io.ratelimited.spring.call.LimitRequest;
import io.ratelimited.spring.limit.ConfiguredLimit;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The limits of a client, which asks them with a policy and a wait of its own.
 *
 * @param all in the order of the properties
 */
record ClientLimits(List<ConfiguredLimit> all) {

    /**
     * What a call asks of them.
     *
     * @param key null for a call without a key
     */
    LimitRequest[] requests(Policy policy, long maxWaitNanos, @Nullable Object key) {
        return all.stream()
                .map(limit -> new LimitRequest(
                        limit,
                        new ConfiguredLimit.Enforcement(
                                policy, maxWaitNanos, limit.enforcement().missingKey(), false),
                        limit.limiterOf(key, limit.limiter()),
                        key,
                        1,
                        false,
                        null,
                        null))
                .toArray(LimitRequest[]::new);
    }
}
