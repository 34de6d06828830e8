package io.ratelimited.spring.internals.call;

import io.ratelimited.spring.DecisionObserver;

/** An observer that has to know which thread made a call, since another one may bring its decision. Thread-safe. */
public interface CallerObserver extends DecisionObserver {

    /** Returns the observer of a call that this thread makes. */
    DecisionObserver ofThisThread();
}
