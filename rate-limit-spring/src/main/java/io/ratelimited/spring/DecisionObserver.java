package io.ratelimited.spring;

/**
 * Receives every decision, on the thread that has it: an observer must not block. Beans of this type are called in their order;
 * an exception is logged, and does not concern the call. Thread-safe.
 */
public interface DecisionObserver {

    /** Receives a decision. */
    void onDecision(RateLimitDecision decision);

    /** Receives a charge, or its failure, on the thread on which the call has completed. */
    default void onCharge(RateLimitCharge charge) {}
}
