package io.ratelimited.spring.actuate;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.ratelimited.core.Decision;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitObservationConvention;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Adds the outcome of a call to the current observation. A call that is simply admitted costs nothing. Thread-safe. */
final class RateLimitObservations implements DecisionObserver {

    private final ObservationRegistry registry;
    private final RateLimitObservationConvention convention;

    RateLimitObservations(ObservationRegistry registry, RateLimitObservationConvention convention) {
        this.registry = registry;
        this.convention = convention;
    }

    @Override
    public void onDecision(
            NamedLimit limit, Outcome outcome, @Nullable Object key, long waitedNanos, Supplier<Decision> decision) {
        Observation current = outcome == Outcome.ADMITTED ? null : registry.getCurrentObservation();
        if (current != null) {
            current.highCardinalityKeyValues(convention.keyValues(limit, outcome, waitedNanos));
        }
    }
}
