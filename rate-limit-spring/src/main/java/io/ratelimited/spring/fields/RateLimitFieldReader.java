package io.ratelimited.spring.fields;

import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Reads the fields in which the answers of others state their limits. A bean of this type replaces the reader of
 * {@code Retry-After}, of {@code RateLimit} and {@code RateLimit-Policy} of draft 10, and of {@code X-RateLimit}.
 * Thread-safe, must not block.
 */
@FunctionalInterface
public interface RateLimitFieldReader {

    /**
     * Reads an answer. An exception is logged once, and its answer says nothing.
     *
     * @param status the HTTP status
     * @param fields the values of a field by its name, one for each line of the field; null or empty without the field
     * @param epochMillis the time of this side, for an answer without {@code Date}
     */
    Answer read(int status, Function<String, @Nullable List<String>> fields, long epochMillis);
}
