package io.ratelimited.spring;

import io.ratelimited.core.Limit;
import java.time.Duration;
import java.util.Collection;
import org.jspecify.annotations.Nullable;

/**
 * Operations on limits: shows limits, changes them at run time, and gives single callers other limits. A bean of the
 * application, next to {@link RateLimits}, which is for calls. Thread-safe.
 *
 * <p>A change of a limit on Redis applies to all instances, until it is reverted; a change of any other limit applies to this
 * instance, until it stops: {@link NamedLimit#scope}. A log line and a {@link RateLimitChangedEvent} report each change, or a
 * {@link RateLimitResetEvent} each reset. If Redis is unavailable, the change fails.
 *
 * <p>Limits of annotations are known once all beans are created, for example when an {@code ApplicationReadyEvent} is
 * published.
 *
 * <p>Every method throws {@link IllegalArgumentException} for an unknown name of a limit, and for an object that is not a key
 * ({@link io.ratelimited.core.CanonicalKey}).
 */
public interface RateLimitOperations {

    /**
     * Changes a limit at run time, with the effects of {@link io.ratelimited.core.RateLimiter#update}: {@code
     * change("search", LimitChange.rate("200/s").burst(400))}.
     *
     * @return the new limit
     * @throws IllegalArgumentException if a property is unknown, or its value cannot be parsed; nothing was changed
     * @throws InvalidRateLimitException if the new limit is invalid, or a value is fixed at startup; nothing was changed
     */
    Limit change(String name, LimitChange change);

    /**
     * Reverts all changes of a limit, so that its configuration applies again.
     *
     * @return the configured limit
     */
    Limit revert(String name);

    /**
     * Gives a caller its own limit instead of the common one or that of its tier: {@code override("search", "alice",
     * LimitChange.tier("gold"), Duration.ofDays(1))}. The caller starts with all permits, unless it had the same override or
     * that tier before. Replaces an earlier override of the caller.
     *
     * @param change a {@code tier} of the limit; or a {@code rate}, with or without a {@code burst}
     * @param lasting duration of the override, from 1 ms to 3650 days; null for no end
     * @throws IllegalArgumentException if a property is not one of these, or its value cannot be parsed; nothing was changed
     * @throws InvalidRateLimitException if the limit does not support the override, or 10,000 callers have one; nothing was
     *     changed
     */
    void override(String name, Object key, LimitChange change, @Nullable Duration lasting);

    /**
     * Removes the override of a caller, so that the common limit, or its tier, applies again. Has no effect if there is none.
     */
    void removeOverride(String name, Object key);

    /**
     * Resets the used permits of a key, and ends its block: under the limit, its tiers and the present override of the key. Has
     * no effect with {@code rate-limit.enabled: false}.
     */
    void reset(String name, @Nullable Object key);

    /** Returns all limits, sorted by name; unmodifiable. */
    Collection<NamedLimit> limits();

    /**
     * Returns the limit with a name. The result also shows later changes.
     *
     * <p>With {@code rate-limit.enabled: false}, annotations are not read, so every name is accepted and shown as unlimited.
     */
    NamedLimit limit(String name);
}
