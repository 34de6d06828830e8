package io.ratelimited.spring.web;

import io.ratelimited.spring.web.RouteLimits.Route;
import java.util.ArrayList;
import java.util.List;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;
import org.springframework.web.util.pattern.PatternParseException;

/** Which routes a request belongs to: by the patterns that handler mappings use, so that no spelling of a path escapes. */
public final class RoutePatterns {

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

    private record PathRoute(PathPattern pattern, Route route) {}
}
