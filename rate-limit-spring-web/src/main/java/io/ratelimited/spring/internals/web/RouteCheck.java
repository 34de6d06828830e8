package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.SimilarName;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.io.Resource;

/**
 * Logs the routes when the application has started, and warns of those that no handler of it can belong to.
 *
 * @param secured whether Spring Security filters requests
 * @param handlers of the application; null when they cannot be known
 * @param mechanisms the filters that check credentials on every path, unless the check itself has limits
 * @param hiddenMethods whether a filter behind those of routes gives requests another method
 */
public record RouteCheck(
        RouteLimits routes,
        BooleanSupplier secured,
        Supplier<@Nullable Handlers> handlers,
        Supplier<List<String>> mechanisms,
        BooleanSupplier hiddenMethods)
        implements Runnable {

    private static final LogText.Lines LOG = LogText.lines(RouteCheck.class);

    /** Where filters of Spring Security answer by default. */
    private static final Set<String> SECURITY =
            Set.of("login", "logout", "oauth2", "saml2", "webauthn", "ott", "connect", ".well-known");

    /** The methods that a form can have in a parameter. */
    private static final Set<String> HIDDEN = Set.of("PUT", "PATCH", "DELETE");

    /** The last part of paths at which applications take passwords. */
    private static final Set<String> LOGINS = Set.of("login", "log-in", "signin", "sign-in", "authenticate");

    /**
     * The paths that an application answers.
     *
     * @param patterns the path patterns of its handlers, but for those that serve files of any path
     * @param files where it finds such files
     */
    public record Handlers(Collection<String> patterns, List<Resource> files) {}

    @Override
    public void run() {
        if (routes.routes().isEmpty()) {
            return;
        }
        routes.routes().forEach(route -> LOG.info("Rate limits of " + route));
        warnOfLogins();
        warnOfHiddenMethods();
        Handlers known = handlers.get();
        if (known != null) {
            routes.routes().stream().filter(route -> isAstray(route, known)).forEach(route -> {
                String path = Route.slashed(route.path());
                LOG.warn(route.place() + " (" + path + ") matches no handler of the application"
                        + SimilarName.hint(path, known.patterns()) + ", so it limits nothing. Correct its path."
                        + " If a filter answers these requests, set order: before-security for the route. [RL-214]");
            });
        }
    }

    /** Warns of routes that limit guesses of passwords at one place only. */
    private void warnOfLogins() {
        boolean allCounted = routes.routes().stream()
                .anyMatch(route -> route.isBeforeSecurity() && route.hasEveryMethod() && isAny(segments(route.path())));
        List<Route> logins = allCounted
                ? List.of()
                : routes.routes().stream()
                        .filter(route -> route.hasMethod("POST") && isLogin(segments(route.path())))
                        .toList();
        List<String> others = logins.isEmpty() ? List.of() : mechanisms.get();
        if (!others.isEmpty()) {
            logins.forEach(route -> LOG.warn(route.place() + " (" + Route.slashed(route.path())
                    + ") limits a login, but Spring Security also checks credentials on every other path, by "
                    + String.join(" and ", others)
                    + ", which no route counts. Limit the check itself, by @RateLimited on"
                    + " an AuthenticationProvider or ReactiveAuthenticationManager, or add a route on /** with the key"
                    + " clientIp. [RL-215]"));
        }
    }

    /** Warns of routes that count a method, and not the POST of which a filter makes it. */
    private void warnOfHiddenMethods() {
        List<Route> bypassed = routes.routes().stream()
                .filter(route -> HIDDEN.stream().anyMatch(route::hasMethod) && !route.hasMethod("POST"))
                .toList();
        if (!bypassed.isEmpty() && hiddenMethods.getAsBoolean()) {
            bypassed.forEach(route -> LOG.warn(route.place() + " (" + Route.slashed(route.path())
                    + ") does not count requests with a parameter _method, because the HiddenHttpMethodFilter runs after"
                    + " the route. Give the filter an order below " + RouteLimits.BEFORE_SECURITY + ". [RL-214]"));
        }
    }

    private static boolean isLogin(String[] path) {
        return LOGINS.contains(path[path.length - 1]);
    }

    private static boolean isAny(String[] path) {
        return Stream.of(path).allMatch(RouteCheck::isRest);
    }

    private boolean isAstray(Route route, Handlers known) {
        String[] path = segments(route.path());
        boolean ofFilter = route.isStatedBeforeSecurity() || (SECURITY.contains(path[0]) && secured.getAsBoolean());
        return !isAny(path)
                && !ofFilter
                && known.patterns().stream().noneMatch(handler -> overlap(path, 0, segments(handler), 0))
                && known.files().stream().noneMatch(place -> hasFile(place, path));
    }

    private static String[] segments(String pattern) {
        return pattern.replaceFirst("^/+", "").toLowerCase(Locale.ROOT).split("/+");
    }

    /**
     * Returns whether some path belongs to both of two patterns. Segments with wildcards or variables may match any segment.
     */
    private static boolean overlap(String[] one, int i, String[] other, int j) {
        if (i == one.length && j == other.length) {
            return true;
        }
        if (i < one.length && isRest(one[i])) {
            return overlap(one, i + 1, other, j) || (j < other.length && overlap(one, i, other, j + 1));
        }
        if (j < other.length && isRest(other[j])) {
            return overlap(other, j, one, i);
        }
        return i < one.length
                && j < other.length
                && (isOpen(one[i]) || isOpen(other[j]) || one[i].equals(other[j]))
                && overlap(one, i + 1, other, j + 1);
    }

    private static boolean isRest(String segment) {
        return segment.equals("**") || segment.startsWith("{*");
    }

    private static boolean isOpen(String segment) {
        return segment.chars().anyMatch(character -> "*?{".indexOf(character) >= 0);
    }

    /** Returns whether there is a file or folder of the segments before the first wildcard. */
    private static boolean hasFile(Resource place, String[] path) {
        String fixed = String.join(
                "/", Stream.of(path).takeWhile(segment -> !isOpen(segment)).toList());
        try {
            return fixed.isEmpty()
                    || place.createRelative(fixed).exists()
                    || place.createRelative(fixed + "/").exists();
        } catch (IOException ex) {
            return true;
        }
    }
}
