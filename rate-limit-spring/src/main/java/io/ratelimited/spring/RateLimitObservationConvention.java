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
     * @param limit the limit that has decided
     * @param outcome {@link Outcome#REJECTED}, {@link Outcome#DELAYED} or {@link Outcome#SHADOWED}
     * @param waitedNanos how long the call waited; 0 if it did not
     */
    default KeyValues keyValues(NamedLimit limit, Outcome outcome, long waitedNanos) {
        return KeyValues.of(
                "rate.limit.name",
                limit.name(),
                "rate.limit.outcome",
                outcome.tag(),
                "rate.limit.wait",
                waitedNanos / 1_000_000 + "ms");
    }
}
