package io.ratelimited.spring.web;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Limits on requests by path.
 *
 * @param path Path pattern within the application, such as /api/** or /users/{id}.
 * @param exclude Path patterns that the route does not count, unless a request carries credentials; so are endpoints of the actuator that the path does not name.
 * @param methods HTTP methods, such as GET (which includes HEAD) and POST; all if empty.
 * @param limits Names of limits under rate-limit.limits; all of them must agree.
 * @param key SpEL expression for whose budget a request uses: clientIp, principal, @keys.owner(header('X-Api-Key')); defaults to the key of each limit.
 * @param order Where the route stands; by default before Spring Security, and after it if the key, tier or condition of a limit reads principal.
 */
public record RouteProperties(
        @Nullable String path,
        @Nullable List<String> exclude,
        @Nullable List<String> methods,
        @Nullable List<String> limits,
        @Nullable String key,
        @Nullable Order order) {

    /** Where a route stands. */
    public enum Order {
        /** Every request is counted, whoever sends it; its principal is not known yet. */
        BEFORE_SECURITY,
        /** Only what Spring Security lets through is counted, and its principal is known. */
        AFTER_SECURITY
    }
}
