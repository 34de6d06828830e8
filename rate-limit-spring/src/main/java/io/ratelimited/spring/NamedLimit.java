package io.ratelimited.spring;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import java.util.Map;

/**
 * A read-only view of a limit of the application: {@link RateLimits} makes calls under it, and {@link RateLimitOperations}
 * changes it. It shows the current limit, so two method calls can return different states. Thread-safe.
 */
public interface NamedLimit {

    /** Returns the name in meters, headers and properties. */
    String name();

    /** Returns the annotation or property that declares the limit, for messages. */
    String place();

    /** Returns the limit of callers without a tier. */
    Limit limit();

    /** Returns the limits of tiers by name, unmodifiable. */
    Map<String, Limit> tiers();

    /**
     * Returns the properties that are set in the annotation, the configuration, the defaults or by a change: text by name as
     * in {@code application.yml}, such as {@code max-wait} and {@code tiers.gold.rate}. Unmodifiable.
     */
    Map<String, String> properties();

    /** Returns the policy for calls over the limit. */
    Policy policy();

    /** Returns the maximum wait, in nanoseconds; 0 unless the policy is {@link Policy#WAIT}. */
    long maxWaitNanos();

    /**
     * Returns whether responses have its rate limit headers: false under {@link Policy#SHADOW} and with {@code http-headers:
     * none}.
     */
    boolean showsHeaders();

    /** Returns where a change at run time applies. */
    RateLimitChangedEvent.Scope scope();

    /** Returns the estimated number of keys that this instance tracks, including those of tiers and overrides. */
    long keys();

    /** Returns the number of callers that wait on this instance, including those of tiers and overrides. */
    int waiting();
}
