package io.ratelimited.spring.backend;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A backend: makes the limiters of the limits that name it. Each bean of this type is a backend, and {@code
 * rate-limit.backend} and the {@code backend} of a limit choose one by its name; the first of a name wins, in the order
 * of the beans. Thread-safe.
 */
public interface LimiterFactory {

    /** The name that properties choose this backend by, in lower case. */
    String backend();

    /** The properties that this backend reads and others do not: {@code on-failure}, {@code max-overshoot}, or none. */
    default Set<String> properties() {
        return Set.of();
    }

    /**
     * Makes a limiter.
     *
     * @param limit the limit that it applies
     * @param tier the tier whose callers it limits; empty for the limit itself. Tiers of one limit share no budget
     * @param properties the properties of the limit as text, by name as in {@code application.yml}, for those that concern the
     *     backend only
     * @throws IllegalArgumentException when the backend cannot have such a limit; the message names the setting
     */
    RateLimiter create(Limit limit, String tier, Map<String, String> properties);

    /**
     * Returns whether its limiters block keys as {@link Limit#block} says. A limit with blocks fails startup on a backend whose
     * limiters do not.
     */
    default boolean blocks() {
        return false;
    }

    /** The changes of limits that all instances share on this backend; null if a change is the instance's own. */
    default @Nullable SharedChanges sharedChanges() {
        return null;
    }

    /** The pauses of outgoing calls that all instances share on this backend; null if each instance pauses alone. */
    default @Nullable SharedPauses sharedPauses() {
        return null;
    }
}
