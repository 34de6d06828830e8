package io.ratelimited.spring.actuate;

import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimits;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;

/**
 * Shows limits, changes them, and shows and forgets what keys have used. Thread-safe. Every method throws {@link
 * IllegalArgumentException} for a limit that there is not.
 *
 * <p>What needs the name of a limit is an operation of the extensions: JMX and HTTP give the name in different ways.
 */
@Endpoint(id = "ratelimits")
public final class RateLimitsEndpoint {

    private final RateLimits rateLimits;
    private final LimitReport report;
    private final ShownKeys keys;

    RateLimitsEndpoint(RateLimits rateLimits, LimitReport report, ShownKeys keys) {
        this.rateLimits = rateLimits;
        this.report = report;
        this.keys = keys;
    }

    /** All limits, by name. */
    @ReadOperation
    public Map<String, Object> limits() {
        Map<String, Object> limits = new LinkedHashMap<>();
        rateLimits.all().forEach(limit -> limits.put(limit.name(), report.summary(limit)));
        return Map.of("limits", limits);
    }

    /**
     * A limit, or what is left of it for one key.
     *
     * @param key text or mask of the key; null for the limit itself, with the budget of calls without a key
     */
    public Map<String, Object> limit(String name, @Nullable String key) {
        NamedLimit limit = rateLimits.get(name);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("name", limit.name());
        if (key == null) {
            answer.putAll(report.full(limit));
        } else {
            answer.put("key", key);
            answer.putAll(keys.find(limit, key).stream()
                    .map(found -> report.key(limit, found))
                    .min(Comparator.comparingLong(state -> (long) state.getOrDefault("remaining", 0L)))
                    .orElseThrow());
        }
        return answer;
    }

    /**
     * Changes a limit, or one of its tiers, while it is in use, as {@code RateLimiter.update} says.
     *
     * @return the new limit
     * @throws IllegalArgumentException when a value is invalid; nothing has changed
     * @throws io.ratelimited.spring.InvalidRateLimitException when the new limit is not a valid one; nothing has changed
     */
    public Map<String, Object> update(
            String name,
            @Nullable String tier,
            @Nullable String rate,
            @Nullable String burst,
            @Nullable String warmup,
            @Nullable String coldFactor,
            @Nullable String maxConcurrent,
            @Nullable String lease,
            @Nullable String zone,
            @Nullable String slots,
            @Nullable String policy,
            @Nullable String maxWait,
            @Nullable String maxWaiting,
            @Nullable String missingKey) {
        rateLimits.get(name);
        LimitProperties changes = new LimitChange()
                .with("rate", rate)
                .with("burst", burst)
                .with("warmup", warmup)
                .with("coldFactor", coldFactor)
                .with("maxConcurrent", maxConcurrent)
                .with("lease", lease)
                .with("zone", zone)
                .with("slots", slots)
                .with("policy", policy)
                .with("maxWait", maxWait)
                .with("maxWaiting", maxWaiting)
                .with("missingKey", missingKey)
                .properties(name, tier);
        rateLimits.update(name, changes);
        return limit(name, null);
    }

    /**
     * Forgets what a key has used.
     *
     * @param key text or mask of the key; null for the budget of calls without a key
     */
    public void forget(String name, @Nullable String key) {
        NamedLimit limit = rateLimits.get(name);
        if (key == null) {
            rateLimits.reset(name, null);
        } else {
            keys.find(limit, key).forEach(found -> rateLimits.reset(name, found));
        }
    }
}
