package io.ratelimited.spring.web;

import io.ratelimited.spring.web.RouteLimits.Route;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.http.server.PathContainer;
import org.springframework.util.ReflectionUtils;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * Finds the routes on paths that Spring Security answers itself, such as that of its form login: a filter behind it
 * never sees their requests. A route on such a path alone is moved before it; one that has other paths too is warned of.
 */
public final class SecuredRoutes implements SmartInitializingSingleton {

    private static final Log LOG = LogFactory.getLog(SecuredRoutes.class);

    /** The filters of logins and logouts, servlet and reactive, keep there which requests they answer. */
    private static final Set<String> SERVLET_MATCHERS =
            Set.of("requiresAuthenticationRequestMatcher", "logoutRequestMatcher");

    private static final Set<String> REACTIVE_MATCHERS = Set.of("requiresAuthenticationMatcher", "requiresLogout");

    /** A filter that looks at any request lets most of them pass. */
    private static final String ANY = "any request";

    /** As their texts have it: {@code PathPattern [POST /login]}, or {@code pattern='/login', method=POST}. */
    private static final Pattern PATH = Pattern.compile("\\[(?:[A-Z]+ )?(/[^\\]\\s]*)\\]|pattern='(/[^']*)'");

    private final RouteLimits routes;
    private final Supplier<Stream<?>> filters;

    /** @param filters of Spring Security */
    public SecuredRoutes(RouteLimits routes, Supplier<Stream<?>> filters) {
        this.routes = routes;
        this.filters = filters;
    }

    @Override
    public void afterSingletonsInstantiated() {
        List<Route> open = routes.routes().stream()
                .filter(route -> !route.isOrderStated() && route.hasMethod("POST"))
                .toList();
        if (open.isEmpty()) {
            return;
        }
        Set<String> answered = new TreeSet<>();
        Set<String> unknown = new TreeSet<>();
        filters.get()
                .forEach(filter -> ReflectionUtils.doWithFields(
                        filter.getClass(),
                        field -> {
                            String requests = text(field, filter);
                            List<String> paths = paths(requests);
                            answered.addAll(paths);
                            if (paths.isEmpty()
                                    && SERVLET_MATCHERS.contains(field.getName())
                                    && !requests.equals(ANY)) {
                                unknown.add(filter.getClass().getName());
                            }
                        },
                        field -> SERVLET_MATCHERS.contains(field.getName())
                                || REACTIVE_MATCHERS.contains(field.getName())));
        if (!unknown.isEmpty()) {
            LOG.warn(
                    "It cannot be known which requests " + unknown + " of Spring Security answer themselves. If one of "
                            + open.stream().map(Route::place).toList()
                            + " has their path it does not count them: set order: before-security for it, else after-security.");
        }
        for (Route route : open) {
            PathPattern pattern = PathPatternParser.defaultInstance.parse(RoutePatterns.slashed(route.path()));
            List<String> covered = answered.stream()
                    .filter(path -> pattern.matches(PathContainer.parsePath(path)))
                    .toList();
            if (covered.equals(List.of(pattern.getPatternString())) && !route.readsPrincipal()) {
                route.standBeforeSecurity();
                LOG.info(route.place() + " stands before Spring Security, which answers " + route.path() + " itself");
            } else if (!covered.isEmpty()) {
                LOG.warn(route.place() + " (" + route.path() + ") does not count requests of " + covered
                        + ", which Spring Security answers before the route is asked. To count them, give these paths a"
                        + " route with order: before-security and a key other than principal; if they need not be"
                        + " counted, set order: after-security for this route.");
            }
        }
    }

    private static List<String> paths(String requests) {
        List<String> paths = new ArrayList<>();
        Matcher path = PATH.matcher(requests);
        while (path.find()) {
            paths.add(path.group(1) == null ? path.group(2) : path.group(1));
        }
        return paths;
    }

    private static String text(Field field, Object filter) throws IllegalAccessException {
        field.setAccessible(true);
        return String.valueOf(field.get(filter));
    }
}
