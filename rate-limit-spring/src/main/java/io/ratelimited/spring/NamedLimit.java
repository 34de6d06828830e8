package io.ratelimited.spring;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import java.util.Map;

/**
 * A limit of the application, to be read: {@link RateLimits} calls under it, and {@link RateLimitOperations} changes it. Shows
 * the limit as it is now, so two calls may find two states. Thread-safe.
 */
public interface NamedLimit {

    /** The name in metrics, headers and properties. */
    String name();

    /** The annotation or property that declares the limit, for messages. */
    String place();

    /** The limit of callers without a tier. */
    Limit limit();

    /** The limits of tiers by their names, unmodifiable. */
    Map<String, Limit> tiers();

    /**
     * The properties that are set for the limit, in its annotation, the configuration, the defaults or by a change: text by name
     * as in {@code application.yml}, such as {@code max-wait} and {@code tiers.gold.rate}. Unmodifiable.
     */
    Map<String, String> properties();

    /** The policy for calls over the limit. */
    Policy policy();

    /** The maximum wait, in nanoseconds; 0 unless the policy is to wait. */
    long maxWaitNanos();

    /**
     * Returns whether responses have its rate limit headers: not under {@link Policy#SHADOW} or with
     * {@code http-headers: none}.
     */
    boolean showsHeaders();

    /** Where a change at run time is in force. */
    RateLimitChangedEvent.Scope scope();

    /** The number of keys that this instance tracks under the limit, those of tiers and overrides included; estimated. */
    long keys();

    /** The number of callers that wait on this instance for the limit, its tiers or an override. */
    int waiting();
}
