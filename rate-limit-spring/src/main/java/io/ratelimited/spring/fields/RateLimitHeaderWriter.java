package io.ratelimited.spring.fields;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Writes the headers in which responses state limits. A bean of this type replaces the writer of {@code RateLimit} and {@code
 * RateLimit-Policy} of draft 10, with {@code rate-limit.http.headers: standard}. Thread-safe, must not block.
 */
@FunctionalInterface
public interface RateLimitHeaderWriter {

    /**
     * Sets the headers of a response.
     *
     * @param limits the limits that apply, each once, one or more
     * @param setter takes name and value, and replaces the old value of the header
     */
    void write(List<AppliedLimit> limits, BiConsumer<String, String> setter);

    /** The names of the headers that {@link #write} sets, those of draft 10 by default. Rejections expose them to scripts (CORS). */
    default List<String> names() {
        return List.of("RateLimit-Policy", "RateLimit");
    }

    /**
     * A limit that a response states.
     *
     * @param decision its last decision about the request; null if it has not decided
     */
    record AppliedLimit(Limit limit, @Nullable Decision decision) {}
}
