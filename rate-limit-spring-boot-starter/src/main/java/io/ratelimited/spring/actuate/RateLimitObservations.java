package io.ratelimited.spring.actuate;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimitObservationConvention;
import io.ratelimited.spring.internals.call.CallerObserver;
import org.jspecify.annotations.Nullable;

/**
 * Adds the outcome of a call to the observation of its caller. A call that is simply admitted when it is made costs nothing.
 * Thread-safe.
 */
record RateLimitObservations(ObservationRegistry registry, RateLimitObservationConvention convention)
        implements CallerObserver {

    @Override
    public void onDecision(RateLimitDecision decision) {
        if (decision.outcome() != Outcome.ADMITTED) {
            add(decision, registry.getCurrentObservation());
        }
    }

    /** The thread that brings the decision may have the observation of another call. */
    @Override
    public DecisionObserver ofThisThread() {
        Observation ofCaller = registry.getCurrentObservation();
        return decision -> add(decision, decision.outcome() == Outcome.ADMITTED ? null : ofCaller);
    }

    private void add(RateLimitDecision decision, @Nullable Observation observation) {
        if (observation != null) {
            observation.highCardinalityKeyValues(convention.keyValues(decision));
        }
    }
}
