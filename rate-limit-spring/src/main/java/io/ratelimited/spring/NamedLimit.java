package io.ratelimited.spring;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import java.util.Map;

/** A limit of the application: its limiter, the limiters of its tiers, and its policy. Thread-safe; it may change. */
public interface NamedLimit {

    /** The name in metrics, headers and properties. */
    String name();

    /** The annotation or property that declares the limit, for messages. */
    String place();

    /** Decides for callers without a tier. */
    RateLimiter limiter();

    /** Limiters by tier. */
    Map<String, RateLimiter> tiers();

    /** The limit as it is now. */
    Limit limit();

    /** All properties of the limit, defaults included. */
    LimitProperties properties();

    /** The policy for calls over the limit. */
    Policy policy();

    /** The longest sleep, in nanoseconds; 0 unless the policy is to wait. */
    long maxWaitNanos();

    /**
     * Returns whether responses have its rate limit headers: not under {@link Policy#SHADOW} or with
     * {@code http-headers: none}.
     */
    boolean showsHeaders();

    /** Where a change at run time is in force. */
    RateLimitChangedEvent.Scope scope();
}
