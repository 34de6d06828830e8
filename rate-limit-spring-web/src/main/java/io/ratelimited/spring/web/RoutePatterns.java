package io.ratelimited.spring.web;

import io.ratelimited.spring.NamedLimit;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.server.PathContainer;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * Finds the routes of a request: by the patterns that handler mappings use, so that no spelling of a path escapes.
 * Applications choose whether upper case, doubled and trailing slashes matter; to routes they never do. A request that
 * reaches no handler is counted at worst.
 */
public final class RoutePatterns {

    private final List<Route> routes;
    private final Supplier<List<PathPattern>> actuator;

    /**
     * The patterns of routes.
     *
     * @param actuator patterns of paths that only a route which names them counts without credentials; asked at the first request
     */
    public RoutePatterns(RouteLimits limits, Supplier<List<String>> actuator) {
        this.routes = limits.routes();
        this.actuator = SingletonSupplier.of(() -> actuator.get().stream()
                .map(PathPatternParser.defaultInstance::parse)
                .toList());
    }

    public boolean isEmpty() {
        return routes.isEmpty();
    }

    /**
     * The routes of a request, in the order of the properties.
     *
     * @param headers the first value of a header by its name, null if there is none
     * @param beforeSecurity which ones: those before or those after Spring Security
     */
    public List<Route> matching(
            String method, RequestPaths path, Function<String, @Nullable String> headers, boolean beforeSecurity) {
        List<Route> matching = new ArrayList<>();
        boolean credentials = hasCredentials(headers);
        for (Route candidate : routes) {
            if (candidate.isBeforeSecurity() == beforeSecurity
                    && candidate.hasMethod(method)
                    && path.mayMatch(candidate.pattern())
                    && !isExcluded(candidate, method, path, credentials)) {
                matching.add(candidate);
            }
        }
        return matching;
    }

    /**
     * Returns whether a preflight may be left to the application's CORS configuration: it carries no credentials, and no
     * route names OPTIONS for its path.
     */
    public boolean mayLeaveOutPreflight(RequestPaths path, Function<String, @Nullable String> headers) {
        return !hasCredentials(headers)
                && routes.stream()
                        .noneMatch(candidate -> candidate.namesMethod("OPTIONS") && path.mayMatch(candidate.pattern()));
    }

    /** Any cookie may be that of a session or of a login that is remembered. */
    private static boolean hasCredentials(Function<String, @Nullable String> headers) {
        return headers.apply(HttpHeaders.AUTHORIZATION) != null
                || headers.apply(HttpHeaders.PROXY_AUTHORIZATION) != null
                || headers.apply(HttpHeaders.COOKIE) != null;
    }

    /** Credentials are checked on every path, so a request that carries some is left out nowhere. */
    private boolean isExcluded(Route route, String method, RequestPaths path, boolean credentials) {
        if (!credentials) {
            for (PathPattern excluded : route.excluded()) {
                if (path.mustMatch(excluded)) {
                    return true;
                }
            }
        }
        for (PathPattern endpoint : actuator.get()) {
            if (path.mustMatch(endpoint)) {
                return !route.names(actuator.get()) && (!credentials || isCountedAsActuator(method, path));
            }
        }
        return false;
    }

    /** Returns whether a route that names the actuator counts a request before its credentials are checked. */
    private boolean isCountedAsActuator(String method, RequestPaths path) {
        return routes.stream()
                .anyMatch(candidate -> candidate.isBeforeSecurity()
                        && candidate.hasMethod(method)
                        && candidate.names(actuator.get())
                        && path.mayMatch(candidate.pattern()));
    }

    /**
     * The limits of the routes that requests of an operation belong to.
     *
     * @param template a path as documents have it, with variables such as {@code {id}} that are not constrained
     */
    public List<NamedLimit> limits(String method, String template) {
        PathContainer path = PathContainer.parsePath(template);
        return routes.stream()
                .filter(candidate -> candidate.hasMethod(method)
                        && candidate.unconstrained().matches(path)
                        && !isExcluded(candidate, method, RequestPaths.of(path), false))
                .flatMap(Route::limits)
                .toList();
    }
}
