package io.ratelimited.core.overload;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a limiter of {@code ADAPTIVE} knows now. The numbers are read one after the other while calls go on. Immutable.
 *
 * <p>Experimental: may change in a minor release.
 *
 * @param limit the limit that was found, in calls in flight; {@code maxConcurrent} while nothing is short. To find it, the
 *     limiter admits up to 15 % more or fewer for a moment; calls of the highest of several classes may use 30 % more, or three
 *     times the root of the limit where that is more. It never admits more than {@code maxConcurrent}
 * @param baseTime the latency of a call that waits for no other, as far as it is known; null before the first calls have
 *     ended, and while it is sought
 * @param inFlight calls in flight
 * @param waiting callers that wait for a place
 * @param refused calls rejected since the limiter began, by the number of their class; of one element without classes
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
