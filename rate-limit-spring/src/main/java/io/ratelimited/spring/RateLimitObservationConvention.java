package io.ratelimited.spring;

import io.micrometer.common.KeyValues;

/**
 * Adds key values to the current observation, such as that of an HTTP request, when a limit rejects, delays or shadows a
 * call. The current one is that of the thread on which the call is made, even if another thread has the decision; of a
 * reactive call, that of the subscription, which needs {@code spring.reactor.context-propagation: auto}. They have high
 * cardinality, so they appear in traces, but not in meters. A bean of this type replaces the default. Implementations are
 * thread-safe.
 */
public interface RateLimitObservationConvention {

    /**
     * Returns the key values of a call that was not admitted immediately. If several limits of a call add the same name, the
     * last value stays.
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
