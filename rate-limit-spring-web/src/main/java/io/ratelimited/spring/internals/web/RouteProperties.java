package io.ratelimited.spring.internals.web;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Limits on requests by path.
 *
 * @param path Path pattern within the application, such as /api/** or /users/{id}.
 * @param exclude Path patterns that the route does not count, unless a request has credentials. Endpoints of the actuator are excluded, too, unless the path names them.
 * @param methods HTTP methods, such as GET (which includes HEAD) and POST; all if empty.
 * @param limits Names of limits under rate-limit.limits; all of them must admit a request.
 * @param key SpEL expression for the key of a request: clientIp, principal, @keys.owner(header('X-Api-Key')); defaults to the key of each limit.
 * @param order Position of the route; by default before Spring Security, or after it if the key, tier or condition of a limit reads principal.
 */
public record RouteProperties(
        @Nullable String path,
        @Nullable List<String> exclude,
        @Nullable List<String> methods,
        @Nullable List<String> limits,
        @Nullable String key,
        @Nullable Order order) {

    /** Position of a route. */
    public enum Order {
        /** Every request is counted, whoever sends it; its user is not authenticated yet. */
        BEFORE_SECURITY,
        /** Only requests that Spring Security permits are counted, and their user is authenticated. */
        AFTER_SECURITY
    }
}
