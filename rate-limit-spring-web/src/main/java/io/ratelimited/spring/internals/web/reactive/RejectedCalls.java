package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.core.Decision;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.spring.internals.web.Rejection;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The calls of a request that limits have rejected and no fallback answers: the request may be answered with one of these
 * rejections, or the application has caught it. Kept by limit, because a request may make any number of calls. Thread-safe.
 */
final class RejectedCalls {

    private final Map<String, Rejected> byLimit = new HashMap<>(2);

    /**
     * The rejected calls of one limit.
     *
     * @param calls number of those that no fallback answers
     * @param decision the decisive one
     * @param overloaded whether the limit finds by itself how many calls to admit
     */
    private record Rejected(int calls, Decision decision, boolean overloaded) {

        private Rejected and(Rejected next) {
            boolean stays = calls > 0 && AllOf.decisive(new Decision[] {decision, next.decision}) == 0;
            return new Rejected(calls + next.calls, stays ? decision : next.decision, next.overloaded);
        }
    }

    /** A call is rejected. */
    synchronized void add(Decision decision, boolean overloaded) {
        byLimit.merge(decision.limit(), new Rejected(1, decision, overloaded), Rejected::and);
    }

    /** A fallback answers a rejected call. */
    synchronized void fallbackCalled(Decision decision) {
        byLimit.computeIfPresent(
                decision.limit(),
                (limit, rejected) -> new Rejected(rejected.calls - 1, rejected.decision, rejected.overloaded));
    }

    /** A fallback has not answered after all. */
    synchronized void fallbackFailed(Decision decision) {
        byLimit.computeIfPresent(
                decision.limit(), (limit, rejected) -> rejected.and(new Rejected(1, decision, rejected.overloaded)));
    }

    /** Returns whether a call is rejected that no fallback answers. */
    boolean isAny() {
        return decisive() != null;
    }

    /** The headers that every response to the decisive rejection has; none if there is no rejection. */
    Map<String, String> fields() {
        Rejected decisive = decisive();
        return decisive == null ? Map.of() : Rejection.fields(decisive.decision, decisive.overloaded);
    }

    private synchronized @Nullable Rejected decisive() {
        Rejected decisive = null;
        for (Rejected rejected : byLimit.values()) {
            if (rejected.calls > 0) {
                decisive =
                        decisive == null || AllOf.decisive(new Decision[] {decisive.decision, rejected.decision}) == 1
                                ? rejected
                                : decisive;
            }
        }
        return decisive;
    }
}
