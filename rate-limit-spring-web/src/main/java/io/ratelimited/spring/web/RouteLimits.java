package io.ratelimited.spring.web;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.call.Admission;
import io.ratelimited.spring.call.LimitEnforcer;
import io.ratelimited.spring.call.LimitRequest;
import io.ratelimited.spring.call.LimitUse;
import io.ratelimited.spring.check.InventedKeys;
import io.ratelimited.spring.limit.LimitRegistry;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;

/**
 * The limits on requests by path, {@code rate-limit.routes}. Knows which limits a route has and asks them; matching a
 * request to its routes is left to the web filter. A bean of the starter. Immutable.
 */
public final class RouteLimits {

    private final List<Route> routes;
    private final LimitRegistry registry;
    private final LimitEnforcer enforcer;

    private RouteLimits(List<Route> routes, LimitRegistry registry, LimitEnforcer enforcer) {
        this.routes = List.copyOf(routes);
        this.registry = registry;
        this.enforcer = enforcer;
    }

    /**
     * The routes of the properties.
     *
     * @throws InvalidRateLimitException when one is invalid
     */
    public static RouteLimits of(
            @Nullable List<RouteProperties> properties,
            LimitRegistry registry,
            LimitEnforcer enforcer,
            ConfigurableBeanFactory beans) {
        List<RouteProperties> all = properties == null ? List.of() : properties;
        RouteReader reader = new RouteReader(registry, beans);
        RouteLimits limits = new RouteLimits(
                IntStream.range(0, all.size())
                        .mapToObj(i -> reader.read("rate-limit.routes[" + i + "]", all.get(i)))
                        .toList(),
                registry,
                enforcer);
        InventedKeys inventedKeys = new InventedKeys();
        limits.routes.forEach(
                route -> inventedKeys.warnOf(route.place, route.limits, limits.ofRoutes(List.of("/**", route.path))));
        return limits;
    }

    /** The limits that every request passes. */
    public List<LimitUse> ofEveryRequest() {
        return ofRoutes(List.of("/**"));
    }

    private List<LimitUse> ofRoutes(List<String> paths) {
        return routes.stream()
                .filter(route -> route.methods.isEmpty() && paths.contains(route.path))
                .flatMap(route -> route.limits.stream())
                .toList();
    }

    /** Whether nothing in the application is limited so far, so that a web filter has nothing to do. */
    public boolean isIdle() {
        return registry.isEmpty();
    }

    /** The routes of a limit as the endpoint shows them, in the order of the properties. */
    public List<Map<String, Object>> describe(String limit) {
        List<Map<String, Object>> described = new ArrayList<>();
        for (Route route : routes) {
            Map<String, Object> report = route.describe(limit);
            if (report != null) {
                described.add(report);
            }
        }
        return described;
    }

    /** All routes, in the order of the properties. */
    List<Route> routes() {
        return routes;
    }

    /**
     * Returns when a request may go; sleeps where the policy of a limit is to wait.
     *
     * @param matching the routes of the request
     * @return to be ended with the request
     * @throws RateLimitExceededException when the request is refused
     */
    public Admission enter(List<Route> matching, CurrentRequest request) {
        return enforcer.reserve(limitRequests(matching, request), request);
    }

    /**
     * {@link #enter} without a thread. The future fails with the exception; cancelling it gives the permits back. What is
     * attached to it must not block.
     */
    public CompletableFuture<Admission> enterAsync(List<Route> matching, CurrentRequest request) {
        return enforcer.reserveAsync(limitRequests(matching, request), request, Callbacks.NEVER_BLOCK);
    }

    private static LimitRequest[] limitRequests(List<Route> matching, CurrentRequest request) {
        List<LimitRequest> limitRequests = new ArrayList<>();
        for (Route route : matching) {
            for (LimitUse limit : route.limits) {
                LimitRequest asked = limit.request(null, new Object[0], request);
                if (asked != null) {
                    limitRequests.add(asked);
                }
            }
        }
        return limitRequests.toArray(LimitRequest.NONE);
    }

    /** Some requests, and the limits on them. Immutable. */
    public static final class Route {

        private final String place;
        private final String path;
        private final List<String> exclude;
        private final Set<String> methods;
        private final List<LimitUse> limits;
        private final Map<String, String> keys;
        private final RouteProperties.@Nullable Order order;
        private final boolean beforeSecurity;

        Route(
                String place,
                String path,
                List<String> exclude,
                Set<String> methods,
                List<LimitUse> limits,
                Map<String, String> keys,
                RouteProperties.@Nullable Order order) {
            this.place = place;
            this.path = path;
            this.exclude = exclude;
            this.methods = methods;
            this.limits = limits;
            this.keys = keys;
            this.order = order;
            boolean readsPrincipal = limits.stream().anyMatch(limit -> limit.reads("principal"));
            if (readsPrincipal && order == RouteProperties.Order.BEFORE_SECURITY) {
                throw new InvalidRateLimitException(
                        limits.get(0).limit().name(),
                        place + ".order",
                        "a route that stands before-security cannot read principal, which is not known there",
                        "Use another key, such as clientIp, for the route; or leave out its order. [RL-112]");
            }
            this.beforeSecurity = order == null ? !readsPrincipal : order == RouteProperties.Order.BEFORE_SECURITY;
        }

        /** Where the route is declared, for messages. */
        String place() {
            return place;
        }

        /** The route as the endpoint shows it under one of its limits; null if it does not have the limit. */
        @Nullable
        Map<String, Object> describe(String limit) {
            if (limits().noneMatch(own -> own.name().equals(limit))) {
                return null;
            }
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("path", path);
            if (!exclude.isEmpty()) {
                report.put("exclude", exclude);
            }
            report.put("methods", methods.isEmpty() ? "all" : methods);
            if (keys.containsKey(limit)) {
                report.put("key", keys.get(limit));
            }
            report.put("order", order(beforeSecurity));
            report.put("declaredBy", place);
            return report;
        }

        private static String order(boolean beforeSecurity) {
            return beforeSecurity ? "before-security" : "after-security";
        }

        /** For the log: what the route counts, and whose budgets it uses. */
        @Override
        public String toString() {
            String uses = limits().map(NamedLimit::name)
                    .map(name ->
                            keys.containsKey(name) ? name + " with key " + keys.get(name) : name + " without a key")
                    .collect(Collectors.joining(" and "));
            return (methods.isEmpty() ? "all methods" : String.join(", ", methods)) + " " + path
                    + (exclude.isEmpty() ? "" : " except " + String.join(", ", exclude)) + ": " + uses + ", "
                    + order(beforeSecurity) + " (" + place + ")";
        }

        /** The limits of the route; all of them must agree. */
        Stream<NamedLimit> limits() {
            return limits.stream().map(LimitUse::limit);
        }

        /** Whether the properties say that requests are counted which a filter of Spring Security answers. */
        boolean isStatedBeforeSecurity() {
            return order == RouteProperties.Order.BEFORE_SECURITY;
        }

        /** Whether requests are counted before Spring Security sees them: all that need not know who sends them. */
        boolean isBeforeSecurity() {
            return beforeSecurity;
        }

        /** Path pattern within the application. */
        String path() {
            return path;
        }

        /** Path patterns of requests that are not meant. */
        List<String> exclude() {
            return exclude;
        }

        /** Whether a request of this HTTP method is meant. */
        boolean hasMethod(String method) {
            return methods.isEmpty() || methods.contains(method);
        }

        /** Whether requests of every HTTP method are meant. */
        boolean hasEveryMethod() {
            return methods.isEmpty();
        }

        /** Whether the properties name this HTTP method. */
        boolean namesMethod(String method) {
            return methods.contains(method);
        }

        /**
         * The failure to start because of a path.
         *
         * @param problem what is wrong with it
         */
        RuntimeException invalidPath(String property, String pattern, String problem, Throwable cause) {
            return new InvalidRateLimitException(
                    limits.get(0).limit().name(),
                    place + "." + property,
                    "\"" + pattern + "\" is not a path pattern: " + problem,
                    "Correct the pattern, as in /api/** or /users/{id}. [RL-112]",
                    cause);
        }
    }
}
