package io.ratelimited.spring.web;

import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.web.RouteLimits.Route;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;
import org.springframework.web.util.pattern.PatternParseException;

/** Which routes a request belongs to: by the patterns that handler mappings use, so that no spelling of a path escapes. */
public final class RoutePatterns {

    /** A variable with a regular expression, which may have braces itself. */
    private static final Pattern CONSTRAINT = Pattern.compile("\\{(\\w+):(?:[^{}]|\\{[^{}]*})*}");

    private final List<PathRoute> routes;

    /** @throws RuntimeException that stops the application, when a path is not a pattern */
    public RoutePatterns(RouteLimits limits) {
        this.routes = limits.routes().stream().map(RoutePatterns::parse).toList();
    }

    private static PathRoute parse(Route route) {
        try {
            return new PathRoute(PathPatternParser.defaultInstance.parse(slashed(route.path())), route);
        } catch (PatternParseException ex) {
            throw route.invalidPath(ex.toDetailedString(), ex);
        }
    }

    static String slashed(String path) {
        return path.startsWith("/") ? path : "/" + path;
    }

    public boolean isEmpty() {
        return routes.isEmpty();
    }

    /**
     * The routes of a request, in the order of the properties.
     *
     * @param beforeSecurity which ones: those before or those after Spring Security
     */
    public List<Route> matching(String method, PathContainer path, boolean beforeSecurity) {
        List<Route> matching = new ArrayList<>();
        for (PathRoute candidate : routes) {
            if (candidate.route.isBeforeSecurity() == beforeSecurity
                    && candidate.route.hasMethod(method)
                    && candidate.pattern.matches(path)) {
                matching.add(candidate.route);
            }
        }
        return matching;
    }

    /**
     * The limits of the routes that requests of an operation belong to.
     *
     * @param template a path as documents have it, with variables such as {@code {id}} that are not constrained
     */
    public List<NamedLimit> limits(String method, String template) {
        PathContainer path = PathContainer.parsePath(template);
        return routes.stream()
                .map(PathRoute::route)
                .filter(route -> route.hasMethod(method)
                        && PathPatternParser.defaultInstance
                                .parse(CONSTRAINT.matcher(slashed(route.path())).replaceAll("{$1}"))
                                .matches(path))
                .flatMap(Route::limits)
                .toList();
    }

    private record PathRoute(PathPattern pattern, Route route) {}
}
