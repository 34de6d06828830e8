package io.ratelimited.spring;

/**
 * Receives every decision, on the thread that has the decision: an observer must not block. Beans of this type are called in
 * order. An exception is logged once per minute for each limit, and does not affect the call. Implementations are thread-safe.
 *
 * <p>An observer may make limited calls. While it is called, it does not receive their decisions on the same thread. Observers
 * receive no decisions made before the singletons of the application are created.
 */
public interface DecisionObserver {

    /** Receives a decision. */
    void onDecision(RateLimitDecision decision);

    /** Receives a charge, or its failure, on the thread on which the call has completed. */
    default void onCharge(RateLimitCharge charge) {}
}
