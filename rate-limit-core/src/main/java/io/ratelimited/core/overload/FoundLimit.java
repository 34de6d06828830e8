package io.ratelimited.core.overload;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The current adaptive limit of {@code ADAPTIVE}. The numbers are read one after the other while calls continue. Immutable.
 *
 * <p>Experimental: may change in a minor release.
 *
 * @param limit the current limit, in calls in flight; {@code maxConcurrent} without overload. To adapt it, the limiter admits
 *     up to 15 % more or fewer for a moment. Calls of the highest of several priorities can use 30 % more, or three times the
 *     square root of the limit if that is more, and for a moment 15 % more than that, but never fewer. It never admits more than
 *     {@code maxConcurrent}
 * @param baseTime baseline latency: that of a call that waits for no other. Null before the first calls have completed, and
 *     while it is measured
 * @param inFlight calls in flight
 * @param waiting waiting callers
 * @param refused rejected calls since the start of the limiter, by the rank of their priority; one element without priorities
 * @param lastChange the last change of the limit
 */
public record FoundLimit(
        int limit,
        @Nullable Duration baseTime,
        long inFlight,
        int waiting,
        List<Long> refused,
        FoundLimitChange lastChange) {

    /** Copies the list. */
    public FoundLimit {
        refused = List.copyOf(refused);
    }
}
