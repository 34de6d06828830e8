package io.ratelimited.spring.internals.client;

import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.internals.call.LimitRequest;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The limits of a client, which asks them with a policy and a wait of its own.
 *
 * @param all in the order of the properties
 * @param keyed whether calls have keys; a call that has none all the same follows the {@code missing-key} of each limit
 */
record ClientLimits(List<ConfiguredLimit> all, boolean keyed) {

    /**
     * The request of a call to these limits.
     *
     * @param maxWaitNanos how long the call can wait now, or would be able to without a dry run
     * @param patienceNanos the longest wait that the policy allows
     * @param key null for a call without a key
     */
    LimitRequest[] requests(Policy policy, long maxWaitNanos, long patienceNanos, @Nullable Object key) {
        List<LimitRequest> requests = new ArrayList<>(all.size());
        for (ConfiguredLimit limit : all) {
            MissingKey missing = limit.enforcement().missingKey();
            MissingKey follows = keyed && key == null ? missing : MissingKey.SHARED;
            if (follows != MissingKey.SKIP) {
                // A call in flight of a dry run waits for no other one to end.
                boolean waits =
                        policy != Policy.SHADOW || !limit.limit().algorithm().countsCallsInFlight();
                requests.add(new LimitRequest(
                        limit,
                        new ConfiguredLimit.Enforcement(
                                policy, waits ? maxWaitNanos : 0, missing, limit.showsHeaders(), false),
                        limit.limiterOf(key, limit.limiter()),
                        key,
                        1,
                        follows == MissingKey.DENY,
                        RateLimiter.NO_RANK,
                        null,
                        null,
                        waits ? patienceNanos : 0,
                        false));
            }
        }
        return requests.toArray(LimitRequest.NONE);
    }
}
