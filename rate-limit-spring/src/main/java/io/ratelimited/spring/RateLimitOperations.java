package io.ratelimited.spring;

import io.ratelimited.core.Limit;
import java.time.Duration;
import java.util.Collection;
import org.jspecify.annotations.Nullable;

/**
 * Limits as operators see them: shows them, changes them while they are in use, and gives callers their own. A bean of the
 * application, beside {@link RateLimits}, which is for calls. Thread-safe.
 *
 * <p>A change of a limit on Redis is in force on all instances and for good; of another limit on this instance, until it ends:
 * {@link NamedLimit#scope}. A change is reported by a {@link RateLimitChangedEvent} and a line in the log. When Redis does not
 * answer, the change fails.
 *
 * <p>Every method throws {@link IllegalArgumentException} for a name that no annotation and no property has, and for an object
 * that is no key ({@link io.ratelimited.core.CanonicalKey}).
 */
public interface RateLimitOperations {

    /**
     * Changes a limit while it is in use, as {@link io.ratelimited.core.RateLimiter#update} says: {@code change("search",
     * LimitChange.rate("200/s").burst(400))}.
     *
     * @return the new limit
     * @throws IllegalArgumentException when a property is unknown, or its value cannot be read; nothing has changed
     * @throws InvalidRateLimitException when the new limit is invalid, or a value is fixed at startup; nothing has changed
     */
    Limit change(String name, LimitChange change);

    /**
     * Reverts all changes of a limit: the configuration is in force again.
     *
     * @return the limit as it is configured
     */
    Limit revert(String name);

    /**
     * Gives a caller its own limit, which starts full, instead of the limit or its tier: {@code override("search", "alice",
     * LimitChange.tier("gold"), Duration.ofDays(1))}. Replaces an earlier override of the caller.
     *
     * @param change the name of a {@code tier} of the limit; or a {@code rate}, with or without a {@code burst}
     * @param lasting the time until it ends, from 1 ms to 3650 days; null for no end
     * @throws IllegalArgumentException when a property is not among these, or its value cannot be read; nothing has changed
     * @throws InvalidRateLimitException when the limit cannot have such an override, or 10,000 callers have one; nothing has
     *     changed
     */
    void override(String name, Object key, LimitChange change, @Nullable Duration lasting);

    /** Removes the override of a caller: the limit, or its tier, applies again. Without effect if there is none. */
    void removeOverride(String name, Object key);

    /** Forgets the permits that a key has used, and lifts its block. With {@code rate-limit.enabled: false} without effect. */
    void reset(String name, @Nullable Object key);

    /** All limits, by name; unmodifiable. */
    Collection<NamedLimit> limits();

    /**
     * The limit of a name, which shows later changes, too.
     *
     * <p>With {@code rate-limit.enabled: false} any name may be that of an annotation, which nobody has read: it is shown
     * as unlimited.
     */
    NamedLimit limit(String name);
}
