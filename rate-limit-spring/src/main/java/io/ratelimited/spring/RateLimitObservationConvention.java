package io.ratelimited.spring;

import io.micrometer.common.KeyValues;

/**
 * Adds key values to the observation in which a limit rejected or delayed a call, such as that of an HTTP request. They have
 * high cardinality: traces show them, and meters leave them out. A bean of this type replaces the default. Thread-safe.
 */
public interface RateLimitObservationConvention {

    /**
     * The key values of a call that was not simply admitted. Several limits of one call may write the same names; the last
     * stays.
     *
     * @param decision its outcome is {@link Outcome#REJECTED}, {@link Outcome#DELAYED} or {@link Outcome#SHADOWED}
     */
    default KeyValues keyValues(RateLimitDecision decision) {
        return KeyValues.of(
                "rate.limit.name",
                decision.limit().name(),
                "rate.limit.outcome",
                decision.outcome().tag(),
                "rate.limit.wait",
                decision.waited().toMillis() + "ms");
    }
}
