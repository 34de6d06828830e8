package io.ratelimited.spring.fields;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Writes the rate limit headers of responses. With {@code rate-limit.http.headers: standard}, a bean of this type replaces
 * the writer of {@code RateLimit} and {@code RateLimit-Policy} of draft 10. Implementations are thread-safe, and must not
 * block.
 */
@FunctionalInterface
public interface RateLimitHeaderWriter {

    /**
     * Sets the headers of a response; on servlets after each decision on its request. A header of an earlier decision that this
     * call does not set is removed.
     *
     * @param limits the limits that apply, each once, one or more
     * @param setter receives name and value, and replaces an old value of the header
     */
    void write(List<AppliedLimit> limits, BiConsumer<String, String> setter);

    /**
     * Returns the names of the headers that {@link #write} sets; by default those of draft 10. Rejections expose them to
     * scripts (CORS).
     */
    default List<String> names() {
        return List.of("RateLimit-Policy", "RateLimit");
    }

    /**
     * A limit in the headers of a response.
     *
     * @param decision its last decision about the request; null if it has not decided
     */
    record AppliedLimit(Limit limit, @Nullable Decision decision) {}
}
