package io.ratelimited.spring.fields;

import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Reads the rate limit headers in responses of remote services. A bean of this type replaces the reader of {@code
 * Retry-After}, of {@code RateLimit} and {@code RateLimit-Policy} of draft 10, and of {@code X-RateLimit}. Implementations
 * are thread-safe, and must not block. If they read no quota in a successful response, the quota of its path ends, unless the
 * response has one of those headers.
 */
@FunctionalInterface
public interface RateLimitHeaderReader {

    /**
     * Reads a response. An exception is logged once, and the response ends no quota.
     *
     * @param status the HTTP status
     * @param fields the values of a header by its name, one per line; null or empty without the header
     * @param epochMillis the time of this application, for a response without {@code Date}
     */
    ResponseLimits read(int status, Function<String, @Nullable List<String>> fields, long epochMillis);
}
