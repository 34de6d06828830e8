package io.ratelimited.spring.actuate;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimitObservationConvention;

/** Adds the outcome of a call to the current observation. A call that is simply admitted costs nothing. Thread-safe. */
record RateLimitObservations(ObservationRegistry registry, RateLimitObservationConvention convention)
        implements DecisionObserver {

    @Override
    public void onDecision(RateLimitDecision decision) {
        Observation current = decision.outcome() == Outcome.ADMITTED ? null : registry.getCurrentObservation();
        if (current != null) {
            current.highCardinalityKeyValues(convention.keyValues(decision));
        }
    }
}
