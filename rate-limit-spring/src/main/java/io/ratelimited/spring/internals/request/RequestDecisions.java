package io.ratelimited.spring.internals.request;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import java.lang.reflect.Method;
import java.util.function.Supplier;

/** What limits have decided on the calls of a web request: kept for the fields of its response and for its later calls. */
public interface RequestDecisions {

    /**
     * Takes the decision of a limit on a call of this request.
     *
     * @param limit the limit that has decided
     * @param applied the limit itself, or that of the caller's tier
     * @param decision the decision, made on demand
     */
    void decided(NamedLimit limit, Limit applied, Outcome outcome, Supplier<Decision> decision);

    /**
     * Takes a limit that applies to a call of this request, but has not decided: another one rejected the call before.
     *
     * @param applied the limit itself, or that of the caller's tier
     */
    default void applies(NamedLimit limit, Limit applied) {}

    /**
     * Takes that a call of this request was rejected, by one limit or several.
     *
     * @param decision the decisive one
     * @param overloaded whether its limit finds by itself how many calls to admit
     */
    default void rejected(Decision decision, boolean overloaded) {}

    /** Takes that the fallback of a {@link #rejected} call is called: the request itself is not rejected by this decision. */
    default void fallbackCalled(Decision decision) {}

    /** Takes that a {@link #fallbackCalled called} fallback has failed because of the rejection: so it is one of the request. */
    default void fallbackFailed(Decision decision) {}

    /**
     * Takes that an outgoing call of this request was rejected, by limits or by a pause of the remote service. The application
     * may answer with that, or make do without the call.
     */
    default void outgoingCallRejected() {}

    /**
     * Remembers that the request has been charged by a use of a limit that charges every request only once.
     *
     * @param use the name of the use
     */
    default void charged(String use) {}

    /**
     * Returns whether a call of a handler method is the one by which the request comes to its handler: each further call of it
     * is made by other code, such as a handler for batches, and counts. To be asked once for each use of a limit and call.
     *
     * @param handler the called method, of the class of its bean
     */
    default boolean isOwnCall(String use, Method handler) {
        return false;
    }

    /** Returns whether the request has been {@link #charged} by a use of a limit. */
    default boolean isCharged(String use) {
        return false;
    }
}
