package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.accept.SemanticApiVersionParser;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * Finds the routes of a request: by the patterns that handler mappings use, so that no spelling of a path escapes.
 * Applications choose whether upper case, doubled and trailing slashes matter; to routes they never do. A request that
 * reaches no handler is counted at worst.
 */
public final class RoutePatterns {

    /** A segment of a pattern without wildcards and variables. */
    private static final Pattern LITERAL = Pattern.compile("(?<=/)[^/{}*?]+(?=/|$)");

    /**
     * A segment of a route that stands for a version if Spring's own parser reads it as one. That parser skips everything
     * before the first digit, so it reads {@code oauth2}, a word, as version 2. Only the text of a route has to look like this:
     * a request may spell the version in any way, {@code oauth2} included, since the pattern has a wildcard in its place.
     */
    private static final Pattern VERSION = Pattern.compile("(?i)(?:\\D|ver|version)?\\d[\\d.]*");

    private final List<Route> routes;
    private final Supplier<List<PathPattern>> actuator;
    private final Supplier<Map<Route, List<Versioned>>> versioned;

    /** The paths of a route in requests of a version that its own path names: any text may stand for it there. */
    private record Versioned(Comparable<?> version, PathPattern pattern) {}

    /**
     * The patterns of routes.
     *
     * @param actuator patterns of paths that only a route which names them counts without credentials; asked at the first request
     * @param versions of the application's API; asked at the first request
     */
    public RoutePatterns(RouteLimits limits, Supplier<List<String>> actuator, ApiVersions versions) {
        this.routes = limits.routes();
        this.versioned = SingletonSupplier.of(() -> routes.stream()
                .map(route -> Map.entry(route, versioned(route.pattern().getPatternString(), versions)))
                .filter(entry -> !entry.getValue().isEmpty())
                .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue)));
        this.actuator = SingletonSupplier.of(() -> actuator.get().stream()
                .map(PathPatternParser.defaultInstance::parse)
                .toList());
    }

    private static List<Versioned> versioned(String path, ApiVersions versions) {
        List<Versioned> all = new ArrayList<>();
        for (MatchResult literal : LITERAL.matcher(path).results().toList()) {
            Comparable<?> version = version(literal, versions);
            if (version != null && all.stream().noneMatch(other -> ApiVersions.areSame(other.version, version))) {
                String any = LITERAL.matcher(path).replaceAll(segment -> {
                    Comparable<?> other = version(segment, versions);
                    return other != null && ApiVersions.areSame(version, other)
                            ? "*"
                            : Matcher.quoteReplacement(segment.group());
                });
                all.add(new Versioned(version, Route.parseAnyCase(any)));
            }
        }
        return all;
    }

    private static @Nullable Comparable<?> version(MatchResult literal, ApiVersions versions) {
        Comparable<?> version = versions.parse(literal.group());
        return version instanceof SemanticApiVersionParser.Version
                        && !VERSION.matcher(literal.group()).matches()
                ? null
                : version;
    }

    /** Returns whether no route stands before or after Spring Security. */
    public boolean isEmpty(boolean beforeSecurity) {
        return routes.stream().noneMatch(route -> route.isBeforeSecurity() == beforeSecurity);
    }

    /** Returns whether a route names a version of the application's API, so that the version of a request matters. */
    public boolean nameVersions() {
        return !versioned.get().isEmpty();
    }

    /**
     * The routes of a request, in the order of the properties.
     *
     * @param counting those that count it
     * @param exempting those that leave it out, unless it guesses credentials
     */
    public record Matching(List<Route> counting, List<Route> exempting) {

        static final Matching NONE = new Matching(List.of(), List.of());

        public boolean isEmpty() {
            return counting.isEmpty() && exempting.isEmpty();
        }
    }

    /**
     * Finds the routes of a request.
     *
     * @param version of the request; null if it has none, or if routes do not {@link #nameVersions name versions}
     * @param headers the first value of a header by its name, null if there is none
     * @param beforeSecurity which ones: those before or those after Spring Security
     */
    public Matching matching(
            String method,
            RequestPaths path,
            @Nullable Comparable<?> version,
            Function<String, @Nullable String> headers,
            boolean beforeSecurity) {
        List<Route> counting = new ArrayList<>();
        List<Route> exempting = new ArrayList<>();
        boolean credentials = hasCredentials(headers);
        for (Route candidate : routes) {
            if (candidate.isBeforeSecurity() == beforeSecurity
                    && candidate.hasMethod(method)
                    && mayMatch(candidate, path, version)) {
                if (!isExcluded(candidate, method, path, credentials)) {
                    counting.add(candidate);
                } else if (!isOfOperators(method, path)) {
                    exempting.add(candidate);
                }
            }
        }
        return new Matching(counting, exempting);
    }

    private boolean mayMatch(Route route, RequestPaths path, @Nullable Comparable<?> version) {
        if (path.mayMatch(route.pattern())) {
            return true;
        }
        if (version != null) {
            for (Versioned versioned : versioned.get().getOrDefault(route, List.of())) {
                if (ApiVersions.areSame(versioned.version, version) && path.mayMatch(versioned.pattern)) {
                    return true;
                }
            }
        }
        return false;
    }

    /**
     * Returns whether a preflight may be left to the application's CORS configuration: it carries no credentials, and no
     * route names OPTIONS for its path.
     */
    public boolean mayLeaveOutPreflight(
            RequestPaths path, @Nullable Comparable<?> version, Function<String, @Nullable String> headers) {
        return !hasCredentials(headers)
                && routes.stream()
                        .noneMatch(candidate -> candidate.namesMethod("OPTIONS") && mayMatch(candidate, path, version));
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
                return !route.names(actuator.get(), path) && (!credentials || isCountedAsActuator(method, path));
            }
        }
        return false;
    }

    /** Returns whether a request is one to the actuator that a route which names it counts instead of others. */
    private boolean isOfOperators(String method, RequestPaths path) {
        for (PathPattern endpoint : actuator.get()) {
            if (path.mustMatch(endpoint)) {
                return isCountedAsActuator(method, path);
            }
        }
        return false;
    }

    /** Returns whether a route that names the actuator bounds the guesses of a caller before credentials are checked. */
    private boolean isCountedAsActuator(String method, RequestPaths path) {
        return routes.stream()
                .anyMatch(candidate -> candidate.isBeforeSecurity()
                        && candidate.hasMethod(method)
                        && candidate.names(actuator.get(), path)
                        && path.mayMatch(candidate.pattern())
                        && candidate.boundsGuesses());
    }

    /**
     * The limits of the routes that requests of an operation belong to.
     *
     * @param dispatcher the path of the dispatcher servlet; empty if it serves the whole application
     * @param template a path within that servlet as documents have it, with variables such as {@code {id}} that are not
     *     constrained
     */
    public List<ConfiguredLimit> limits(String method, String dispatcher, String template) {
        RequestPaths path = RequestPaths.ofTemplate(dispatcher, template);
        return routes.stream()
                .filter(candidate -> candidate.hasMethod(method)
                        && path.mayMatch(candidate.unconstrained())
                        && !isExcluded(candidate, method, path, false))
                .flatMap(Route::limits)
                .toList();
    }
}
