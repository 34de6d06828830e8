package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A limit has decided on a call. Immutable.
 *
 * @param limit the limit that has decided
 * @param outcome the outcome of the call under this limit
 * @param key the key of the call; null for a limit without keys, and for a missing key
 * @param waited how long the call waited; zero if it did not
 * @param details makes what {@link #decision} returns
 */
public record RateLimitDecision(
        NamedLimit limit, Outcome outcome, @Nullable Object key, Duration waited, Supplier<Decision> details) {

    /** The numbers of the decision, such as the remaining permits: made anew by each call, since most observers need none. */
    public Decision decision() {
        return details.get();
    }
}
