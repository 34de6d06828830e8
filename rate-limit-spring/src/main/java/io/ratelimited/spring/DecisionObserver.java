package io.ratelimited.spring;

/**
 * Receives every decision, on the thread that has the decision: an observer must not block. Beans of this type are called in
 * order. An exception is logged, and does not affect the call. Implementations are thread-safe.
 */
public interface DecisionObserver {

    /** Receives a decision. */
    void onDecision(RateLimitDecision decision);

    /** Receives a charge, or its failure, on the thread on which the call has completed. */
    default void onCharge(RateLimitCharge charge) {}
}
