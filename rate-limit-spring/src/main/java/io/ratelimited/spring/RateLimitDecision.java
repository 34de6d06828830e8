package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The decision of a limit on a call. Immutable.
 *
 * @param limit the limit
 * @param outcome the outcome of the call under this limit
 * @param key the key of the call; null for a limit without keys, and for a missing key
 * @param waited wait time of the call; zero if it did not wait
 * @param details creates the result of {@link #decision}
 */
public record RateLimitDecision(
        NamedLimit limit, Outcome outcome, @Nullable Object key, Duration waited, Supplier<Decision> details) {

    /**
     * Returns the numbers of the decision, such as the remaining permits. Each call finds them anew, because most observers do
     * not need them: an observer that hands the decision on to another thread asks for them before.
     */
    public Decision decision() {
        return details.get();
    }
}
