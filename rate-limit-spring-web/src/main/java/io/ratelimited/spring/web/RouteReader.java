package io.ratelimited.spring.web;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.call.LimitUse;
import io.ratelimited.spring.expression.CallExpression;
import io.ratelimited.spring.limit.ConfiguredLimit;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.limit.PropertyText;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;

/**
 * From {@code rate-limit.routes} to routes.
 *
 * @param beans what {@code @bean} refers to
 */
record RouteReader(LimitRegistry registry, ConfigurableBeanFactory beans) {

    /** Those that Spring's mappings know. */
    private static final List<String> METHODS =
            List.of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE");

    /**
     * Reads one.
     *
     * @param place of the route
     * @throws InvalidRateLimitException when it is invalid
     */
    RouteLimits.Route read(String place, RouteProperties route) {
        List<String> names = route.limits() == null ? List.of() : route.limits();
        String path = route.path();
        if (names.isEmpty()) {
            throw new InvalidRateLimitException(
                    String.valueOf(path),
                    place + ".limits",
                    "no limit is named",
                    "Name limits of rate-limit.limits. A property source that sets any part of a list replaces the whole list. [RL-112]");
        }
        if (path == null || path.isBlank()) {
            throw new InvalidRateLimitException(
                    names.get(0),
                    place + ".path",
                    "the path is missing",
                    "Set it, as in /api/**. A property source that sets any part of a list replaces the whole list. [RL-112]");
        }
        List<LimitUse> limits = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            limits.add(limit(place, place + ".limits[" + i + "]", names.get(i), route.key()));
        }
        limits.forEach(limit -> registry.prepare(limit::reads));
        Map<String, String> keys = new LinkedHashMap<>();
        for (String name : names) {
            String key = route.key() == null
                    ? registry.ofUse(name, place, Map.of()).properties().key()
                    : route.key();
            if (key != null && !key.isBlank()) {
                keys.put(name, key);
            }
        }
        List<String> exclude = route.exclude() == null ? List.of() : route.exclude();
        return new RouteLimits.Route(
                place, path, exclude, methods(place, names.get(0), route), limits, keys, route.order());
    }

    /** Who answers GET answers HEAD. */
    private static Set<String> methods(String place, String limit, RouteProperties route) {
        Set<String> methods = new TreeSet<>();
        List<String> written = route.methods() == null ? List.of() : route.methods();
        for (int i = 0; i < written.size(); i++) {
            String method = written.get(i).strip().toUpperCase(Locale.ROOT);
            if (!METHODS.contains(method)) {
                throw new InvalidRateLimitException(
                        limit,
                        place + ".methods[" + i + "]",
                        "\"" + written.get(i) + "\" is not an HTTP method",
                        "Use one of " + METHODS + ", or leave out methods for all. [RL-112]");
            }
            methods.add(method);
        }
        if (methods.contains("GET")) {
            methods.add("HEAD");
        }
        return methods;
    }

    private LimitUse limit(String route, String place, String name, @Nullable String key) {
        String property = PropertyText.limit(name);
        ConfiguredLimit limit = named(name, place, property);
        // A servlet filter sleeps; WebFlux has no threads of requests to run out of.
        limit.usedBy(true);
        LimitProperties use = registry.ofUse(name, property, Map.of()).properties();
        return LimitUse.of(
                limit,
                expression("key", key == null ? use.key() : key, limit, key == null ? property : route + ".key"),
                use,
                property,
                // A request has no result that could be charged.
                (attribute, text) -> attribute.equals("charge") ? null : expression(attribute, text, limit, property),
                null);
    }

    private ConfiguredLimit named(String name, String place, String property) {
        try {
            return registry.get(name);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "there is no limit of this name under rate-limit.limits",
                    "Define " + property + ", or correct the name. [RL-104]",
                    ex);
        }
    }

    private @Nullable CallExpression expression(
            String attribute, @Nullable String text, ConfiguredLimit limit, String place) {
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
                    "Use what a request has: clientIp, principal, session, header('…') and @bean; or set the key of the route. [RL-106]",
                    ex);
        }
    }
}
