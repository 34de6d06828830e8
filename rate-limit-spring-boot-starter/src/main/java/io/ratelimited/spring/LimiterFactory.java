package io.ratelimited.spring;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.util.Set;

/**
 * A backend: makes the limiters of the limits that name it. Each bean of this type is a backend, and {@code
 * rate-limit.backend} and the {@code backend} of a limit choose one by its name; the first of a name wins, in the order
 * of the beans. Thread-safe.
 */
public interface LimiterFactory {

    /** The name that properties choose this backend by, in lower case. */
    String backend();

    /** The properties that this backend reads and others do not: {@code onFailure}, {@code maxOvershoot}, or none. */
    default Set<String> properties() {
        return Set.of();
    }

    /**
     * Makes a limiter.
     *
     * @param limit the limit that it applies
     * @param tier the tier whose callers it limits; empty for the limit itself. Tiers of one limit share no budget
     * @param properties the properties of the limit, for those that concern the backend only
     * @throws IllegalArgumentException when the backend cannot have such a limit; the message names the setting
     */
    RateLimiter create(Limit limit, String tier, LimitProperties properties);
}
