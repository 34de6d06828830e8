package io.ratelimited.spring.backend;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A backend: creates the limiters of the limits that use it. Each bean of this type is a backend. {@code rate-limit.backend},
 * and the {@code backend} of a limit, select one by its name; of several with the same name, the first one is used.
 * Implementations are thread-safe.
 */
public interface LimiterFactory {

    /** Returns the name of this backend in properties, in lower case. */
    String backend();

    /** Returns the optional properties that this backend supports: {@code on-failure}, {@code max-overshoot}, or none. */
    default Set<String> properties() {
        return Set.of();
    }

    /**
     * Checks whether this backend supports a limit. Called before {@link #create}, and for all limits of a change before the
     * first of them is updated. By default, a backend supports every limit.
     *
     * @param limit the limit, or that of a tier or of a caller with an override
     * @throws IllegalArgumentException if it does not; the message names the setting
     */
    default void check(Limit limit) {}

    /**
     * Creates a limiter. {@link RateLimiter#update} changes it to limits that {@link #check} has accepted.
     *
     * @param limit the limit
     * @param tier the tier whose callers it limits; empty for the limit itself. Tiers of a limit share no permits
     * @param properties the properties of the limit as text, by name as in {@code application.yml}, for properties that only
     *     concern the backend
     * @throws IllegalArgumentException if the backend does not support the limit; the message names the setting
     */
    RateLimiter create(Limit limit, String tier, Map<String, String> properties);

    /** Returns whether its limiters support blocks ({@link Limit#block}). If not, a limit with blocks fails startup. */
    default boolean blocks() {
        return false;
    }

    /**
     * Returns the changes of limits that all instances share on this backend; null if a change only applies to its instance.
     */
    default @Nullable SharedChanges sharedChanges() {
        return null;
    }

    /** Returns the pauses of outgoing calls that all instances share on this backend; null if each instance pauses alone. */
    default @Nullable SharedPauses sharedPauses() {
        return null;
    }
}
