package io.ratelimited.spring;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.Projection;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.Selection;
import org.springframework.util.ReflectionUtils;

/**
 * From {@code rate-limit.routes} to routes.
 *
 * @param beans what {@code @bean} refers to
 */
record RouteReader(RateLimits rateLimits, BeanFactory beans) {

    /** Expressions belong to a method: a request is a call without parameters. */
    private static final Method REQUEST =
            Objects.requireNonNull(ReflectionUtils.findMethod(CurrentRequest.class, "clientIp"));

    private static final Set<String> KNOWN = Set.of("clientIp", "principal", "session");

    /**
     * Reads one.
     *
     * @param place of the route
     * @throws InvalidRateLimitException when it cannot be meant
     */
    RouteLimits.Route read(String place, RateLimitProperties.Route route) {
        List<String> names = route.limits() == null ? List.of() : route.limits();
        String path = route.path();
        if (names.isEmpty()) {
            throw new InvalidRateLimitException(
                    String.valueOf(path), place + ".limits", "no limit is named", "Name limits of rate-limit.limits.");
        }
        if (path == null || path.isBlank()) {
            throw new InvalidRateLimitException(
                    names.get(0), place + ".path", "the path is missing", "Set it, as in /api/**.");
        }
        List<MethodLimit> limits = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            limits.add(limit(place, place + ".limits[" + i + "]", names.get(i), route.key()));
        }
        return new RouteLimits.Route(place, path, methods(route), limits);
    }

    /** Who answers GET answers HEAD. */
    private static Set<String> methods(RateLimitProperties.Route route) {
        Set<String> methods = new TreeSet<>();
        if (route.methods() != null) {
            route.methods().forEach(method -> methods.add(method.toUpperCase(Locale.ROOT)));
        }
        if (methods.contains("GET")) {
            methods.add("HEAD");
        }
        return methods;
    }

    private MethodLimit limit(String route, String place, String name, @Nullable String key) {
        String property = LimitSettings.property(name);
        NamedLimit limit;
        try {
            limit = rateLimits.get(name);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "there is no limit of this name under rate-limit.limits",
                    "Define " + property + ", or correct the name.",
                    ex);
        }
        LimitProperties use = rateLimits.merged(name, LimitProperties.NONE);
        String permits = use.permits() == null ? "1" : use.permits();
        boolean fixed = NamedLimit.isFixed(permits);
        return new MethodLimit(
                limit,
                key == null
                        ? expression("key", use.key(), limit, property)
                        : expression("key", key, limit, route + ".key"),
                fixed ? null : expression("permits", permits, limit, property),
                fixed ? limit.fixedPermits(permits, property) : 1,
                expression("when", use.when(), limit, property),
                expression("tier", use.tier(), limit, property));
    }

    private @Nullable CallExpression expression(
            String attribute, @Nullable String text, NamedLimit limit, String place) {
        if (text == null || text.isBlank()) {
            return null;
        }
        try {
            requireKnown(CallExpression.parse(text).getAST(), text);
            return new CallExpression(
                    attribute + " of rate limit '" + limit.name() + "'", text, REQUEST, Map.of(), beans);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    place,
                    attribute + " " + ex.getMessage(),
                    "Use what a request has: clientIp, principal, session, header('…') and @bean; or set the key of the route.",
                    ex);
        }
    }

    /** Refuses words that only calls of methods have, and words that nothing has. */
    private static void requireKnown(SpelNode node, String text) {
        if (node instanceof PropertyOrFieldReference property && !KNOWN.contains(property.getName())) {
            throw new IllegalArgumentException(
                    "names " + property.getName() + ", which a request does not have, in \"" + text + "\"");
        }
        boolean path = node instanceof CompoundExpression;
        for (int i = 0; i < (path ? 1 : node.getChildCount()); i++) {
            SpelNode child = node.getChild(i);
            if (!(child instanceof Projection || child instanceof Selection)) {
                requireKnown(child, text);
            }
        }
    }
}
