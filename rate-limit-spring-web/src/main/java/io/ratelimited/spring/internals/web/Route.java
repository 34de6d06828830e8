package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.expression.CallExpression;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.ResolvedLimit;
import io.ratelimited.spring.internals.text.PropertyText;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;
import org.springframework.web.util.pattern.PatternParseException;

/** Some requests, by path and method, and the limits on them: an element of {@code rate-limit.routes}. Immutable. */
public final class Route {

    /** Those that Spring's mappings know. */
    private static final List<String> METHODS =
            List.of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE");

    private static final String LIST =
            " A property source that sets any part of a list replaces the whole list. [RL-112]";

    /** A variable with a regular expression, which may have braces itself. */
    private static final Pattern CONSTRAINT = Pattern.compile("\\{(\\w+):(?:[^{}]|\\{[^{}]*})*}");

    private static final PathPatternParser ANY_CASE = new PathPatternParser();

    static {
        ANY_CASE.setCaseSensitive(false);
    }

    private final String place;
    private final String path;
    private final PathPattern pattern;
    private final List<PathPattern> excluded;
    private final Set<String> methods;
    private final List<LimitUse> limits;
    /** Of the limits that have one, by their names. */
    private final Map<String, String> keys;

    private final RouteProperties.@Nullable Order order;
    private final boolean beforeSecurity;

    private Route(
            String place,
            String path,
            PathPattern pattern,
            List<PathPattern> excluded,
            Set<String> methods,
            List<LimitUse> limits,
            Map<String, String> keys,
            RouteProperties.@Nullable Order order,
            boolean beforeSecurity) {
        this.place = place;
        this.path = path;
        this.pattern = pattern;
        this.excluded = excluded;
        this.methods = methods;
        this.limits = limits;
        this.keys = keys;
        this.order = order;
        this.beforeSecurity = beforeSecurity;
    }

    /**
     * Makes the route that properties describe.
     *
     * @param place of the route
     * @param beans what {@code @bean} refers to
     * @throws InvalidRateLimitException when it is invalid
     */
    static Route of(String place, RouteProperties stated, LimitRegistry registry, ConfigurableBeanFactory beans) {
        List<String> names = orEmpty(stated.limits());
        String path = stated.path();
        if (names.isEmpty()) {
            throw new InvalidRateLimitException(
                    "Property " + place + ".limits is empty", "List names under rate-limit.limits." + LIST);
        }
        if (path == null || path.isBlank()) {
            throw new InvalidRateLimitException(
                    "Property " + place + ".path is missing", "Set it, as in /api/**." + LIST);
        }
        List<LimitUse> limits = new ArrayList<>();
        Map<String, String> keys = new LinkedHashMap<>();
        for (int i = 0; i < names.size(); i++) {
            String name = names.get(i);
            if (names.indexOf(name) < i) {
                throw new InvalidRateLimitException(
                        "Property " + place + ".limits has " + name + " twice", "Remove one. [RL-112]");
            }
            String property = PropertyText.limit(name);
            ConfiguredLimit limit = named(name, place + ".limits[" + i + "]", registry);
            ResolvedLimit use = registry.ofUse(name, property, Map.of());
            String key = stated.key() == null ? use.text(LimitProperty.KEY) : stated.key();
            if (key != null && !key.isBlank() && limit.findsItsLimit()) {
                throw new InvalidRateLimitException(
                        name,
                        place + ".key",
                        "key is \"" + key
                                + "\", but ADAPTIVE has one limit for all calls of this instance and does not support it",
                        "Remove it, and set the key of the other limits under rate-limit.limits. [RL-112]");
            }
            if (key != null && !key.isBlank()) {
                keys.put(name, key);
            }
            LimitUse limitUse = LimitUse.of(
                    limit,
                    expression("key", key, limit, stated.key() == null ? property : place + ".key", beans),
                    use,
                    property,
                    property + ".priority",
                    // A request has no result that could be charged.
                    (attribute, text) ->
                            attribute.equals("charge") ? null : expression(attribute, text, limit, property, beans),
                    null);
            limits.add(limitUse.declaredAt(place));
        }
        limits.forEach(limit -> registry.prepare(limit::reads));
        Set<String> methods = methods(place, names.get(0), orEmpty(stated.methods()));
        boolean readsPrincipal = limits.stream().anyMatch(limit -> limit.reads("principal"));
        if (readsPrincipal && stated.order() == RouteProperties.Order.BEFORE_SECURITY) {
            throw new InvalidRateLimitException(
                    names.get(0),
                    place + ".order",
                    "order is before-security, but the key reads principal, which is not known there",
                    "Use another key, such as clientIp, or remove order. [RL-112]");
        }
        PathPattern pattern = parse(ANY_CASE, unslashed(slashed(path)), names.get(0), place + ".path");
        List<PathPattern> excluded = new ArrayList<>();
        for (String exclude : orEmpty(stated.exclude())) {
            String excludePlace = place + ".exclude[" + excluded.size() + "]";
            excluded.add(
                    parse(PathPatternParser.defaultInstance, unslashed(slashed(exclude)), names.get(0), excludePlace));
        }
        return new Route(
                place,
                path,
                pattern,
                excluded,
                methods,
                limits,
                keys,
                stated.order(),
                stated.order() == null ? !readsPrincipal : stated.order() == RouteProperties.Order.BEFORE_SECURITY);
    }

    private static List<String> orEmpty(@Nullable List<String> list) {
        return list == null ? List.of() : list;
    }

    private static ConfiguredLimit named(String name, String place, LimitRegistry registry) {
        try {
            ConfiguredLimit limit = registry.getOfProperties(name);
            // A servlet filter sleeps; WebFlux has no threads of requests to run out of.
            limit.usedBy(true);
            return limit;
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    String.valueOf(ex.getMessage()),
                    LimitRegistry.remedyOfUnknown(name) + " [RL-104]",
                    ex);
        }
    }

    private static @Nullable CallExpression expression(
            String attribute,
            @Nullable String text,
            ConfiguredLimit limit,
            String place,
            ConfigurableBeanFactory beans) {
        if (text == null || text.isBlank()) {
            return null;
        }
        try {
            return CallExpression.ofRequest(attribute, limit.name(), text, beans);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    place,
                    attribute + " " + ex.getMessage(),
                    "Use clientIp, principal, session, header('…') and @bean only; or set the key of"
                            + " the route. [RL-106]",
                    ex);
        }
    }

    /** Who answers GET answers HEAD. */
    private static Set<String> methods(String place, String limit, List<String> stated) {
        Set<String> methods = new TreeSet<>();
        for (int i = 0; i < stated.size(); i++) {
            String method = stated.get(i).strip().toUpperCase(Locale.ROOT);
            if (!METHODS.contains(method)) {
                throw new InvalidRateLimitException(
                        limit,
                        place + ".methods[" + i + "]",
                        "\"" + stated.get(i) + "\" is not an HTTP method",
                        "Use one of " + METHODS + ", or omit methods for all. [RL-112]");
            }
            methods.add(method);
        }
        if (methods.contains("GET")) {
            methods.add("HEAD");
        }
        return methods;
    }

    private static PathPattern parse(PathPatternParser parser, String path, String limit, String place) {
        try {
            return parser.parse(path);
        } catch (PatternParseException ex) {
            throw new InvalidRateLimitException(
                    limit,
                    place,
                    "\"" + path + "\" is not a path pattern: " + ex.toDetailedString(),
                    "Correct the pattern, as in /api/** or /users/{id}. [RL-112]",
                    ex);
        }
    }

    /** The pattern of a path that is known to be one, whatever the case of its letters. */
    static PathPattern parseAnyCase(String path) {
        return ANY_CASE.parse(path);
    }

    /** Readings of a request have no slash at the end either. */
    private static String unslashed(String path) {
        return path.length() > 1 && path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
    }

    /** A path of the properties, which may leave out the slash at its beginning. */
    public static String slashed(String path) {
        return path.startsWith("/") ? path : "/" + path;
    }

    /** The route as the endpoint shows it under one of its limits; null if it does not have the limit. */
    @Nullable
    Map<String, Object> describe(String limit) {
        if (limits().noneMatch(own -> own.name().equals(limit))) {
            return null;
        }
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("path", path);
        if (!excluded.isEmpty()) {
            report.put("exclude", excludedPaths());
        }
        report.put("methods", methods.isEmpty() ? "all" : methods);
        if (keys.containsKey(limit)) {
            report.put("key", keys.get(limit));
        }
        report.put("order", shownOrder());
        report.put("declaredBy", place);
        return report;
    }

    private List<String> excludedPaths() {
        return excluded.stream().map(PathPattern::getPatternString).toList();
    }

    private String shownOrder() {
        return beforeSecurity ? "before-security" : "after-security";
    }

    /** For the log: what the route counts, and whose budgets it uses. */
    @Override
    public String toString() {
        String uses = limits().map(ConfiguredLimit::name)
                .map(name -> keys.containsKey(name) ? name + " with key " + keys.get(name) : name + " without a key")
                .collect(Collectors.joining(" and "));
        return (methods.isEmpty() ? "all methods" : String.join(", ", methods)) + " " + path
                + (excluded.isEmpty() ? "" : " except " + String.join(", ", excludedPaths())) + ": " + uses + ", "
                + shownOrder() + " (" + place + ")";
    }

    /** Where the route is declared, for messages. */
    String place() {
        return place;
    }

    /** The limits of the route; all of them must agree. */
    Stream<ConfiguredLimit> limits() {
        return limits.stream().map(LimitUse::limit);
    }

    /** The limits as the route uses them. */
    List<LimitUse> uses() {
        return limits;
    }

    /** Whether the properties say that requests are counted which a filter of Spring Security answers. */
    boolean isStatedBeforeSecurity() {
        return order == RouteProperties.Order.BEFORE_SECURITY;
    }

    /** Whether requests are counted before Spring Security sees them: all that need not know who sends them. */
    boolean isBeforeSecurity() {
        return beforeSecurity;
    }

    /** The path as it is stated. */
    String path() {
        return path;
    }

    /** The path within the application, whatever the case of its letters. */
    PathPattern pattern() {
        return pattern;
    }

    /** The path with variables that match any text, as those of documents do. */
    PathPattern unconstrained() {
        return parseAnyCase(CONSTRAINT.matcher(pattern.getPatternString()).replaceAll("{$1}"));
    }

    /** The paths of requests that are not meant. */
    List<PathPattern> excluded() {
        return excluded;
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

    /** Whether a limit of the route bounds how often every caller guesses credentials. Limits on calls in flight do not. */
    boolean boundsGuesses() {
        return limits.stream()
                .anyMatch(use -> use.boundsEveryCaller() && !use.limit().countsInFlight());
    }

    /** Whether the path begins with that of an endpoint or of all endpoints, with or without the path of the dispatcher servlet. */
    boolean names(List<PathPattern> endpoints, RequestPaths path) {
        String own = path.inDispatcher(pattern.getPatternString());
        return endpoints.stream()
                .map(endpoint -> endpoint.getPatternString().replace("/**", ""))
                .anyMatch(endpoint -> own.equals(endpoint) || own.startsWith(endpoint + "/"));
    }
}
