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
     * A decision was made.
     *
     * @param limit whose
     * @param outcome the outcome of the call
     * @param key whose budget; null for a limit without keys, and for a missing key
     * @param waitedNanos how long the call waited; 0 if it did not
     * @param decision the decision, described on demand; its source is known without it if {@link
     *     io.ratelimited.core.RateLimiter#source()} is not null
     */
    void onDecision(
            NamedLimit limit, Outcome outcome, @Nullable Object key, long waitedNanos, Supplier<Decision> decision);

    /**
     * A call has ended, and was charged with what it had cost instead of what it had reserved. On the thread on which the
     * call ended.
     *
     * @param reserved permits, 0 or more
     * @param charged permits, 0 or more
     */
    default void onSettled(NamedLimit limit, @Nullable Object key, long reserved, long charged) {}

    /**
     * A call has ended, but what it had cost could not be found out: it stays charged with what it had reserved.
     *
     * @param reserved permits, 0 or more
     */
    default void onChargeFailed(NamedLimit limit, @Nullable Object key, long reserved, Throwable failure) {}
}
