package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Receives every decision, on the thread of the call: keep it short. Beans of this type are called in their order; an
 * exception is logged, and does not concern the call. Thread-safe.
 */
public interface DecisionObserver {

    /**
     * Receives a decision.
     *
     * @param limit the limit that has decided
     * @param outcome the outcome of the call
     * @param key the key of the budget; null for a limit without keys, and for a missing key
     * @param waitedNanos how long the call waited; 0 if it did not
     * @param decision the decision, described on demand; its source is known without it if {@link
     *     io.ratelimited.core.RateLimiter#source()} is not null
     */
    void onDecision(
            NamedLimit limit, Outcome outcome, @Nullable Object key, long waitedNanos, Supplier<Decision> decision);

    /**
     * Receives a charge: a call has ended, and was charged with its cost instead of its reservation. On the thread on which
     * the call ended.
     *
     * @param reserved permits, 0 or more
     * @param charged permits, 0 or more
     */
    default void onSettled(NamedLimit limit, @Nullable Object key, long reserved, long charged) {}

    /**
     * Receives a failed charge: a call has ended, but its cost could not be found out, so it stays charged with its
     * reservation.
     *
     * @param reserved permits, 0 or more
     */
    default void onChargeFailed(NamedLimit limit, @Nullable Object key, long reserved, Throwable failure) {}
}
