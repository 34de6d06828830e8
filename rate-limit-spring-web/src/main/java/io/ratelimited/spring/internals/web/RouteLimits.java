package io.ratelimited.spring.internals.web;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.call.Admission;
import io.ratelimited.spring.internals.call.Continuations;
import io.ratelimited.spring.internals.call.EveryRequest;
import io.ratelimited.spring.internals.call.ExemptCall;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.call.LimitRequest;
import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.check.InventedKeys;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.util.ClassUtils;

/**
 * The limits on requests by path, {@code rate-limit.routes}. Knows which limits a route has and asks them; matching a
 * request to its routes is left to the web filter. A bean of the starter. Immutable.
 */
public final class RouteLimits implements EveryRequest {

    /** Where the filter of the routes before Spring Security stands, unless that, at -100 by default, stands before it. */
    public static final int BEFORE_SECURITY = -101;

    /** Where the filter of the routes after Spring Security stands, unless that stands behind it. */
    public static final int AFTER_SECURITY = -90;

    /** Without Spring Web, no path can be parsed, and no request is served: {@link UncountedRoutes} warns of the routes. */
    private static final boolean WEB = ClassUtils.isPresent(
            "org.springframework.web.util.pattern.PathPattern", RouteLimits.class.getClassLoader());

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
        List<RouteProperties> all = properties == null || !WEB ? List.of() : properties;
        RouteLimits limits = new RouteLimits(
                IntStream.range(0, all.size())
                        .mapToObj(i -> Route.of("rate-limit.routes[" + i + "]", all.get(i), registry, beans))
                        .toList(),
                registry,
                enforcer);
        InventedKeys inventedKeys = new InventedKeys();
        limits.routes.forEach(route ->
                inventedKeys.warnOf(route.place(), route.uses(), limits.ofRoutes(List.of("/**", route.path()))));
        return limits;
    }

    /** The limits that every request passes. */
    @Override
    public List<LimitUse> ofEveryRequest() {
        return ofRoutes(List.of("/**"));
    }

    private List<LimitUse> ofRoutes(List<String> paths) {
        return routes.stream()
                .filter(route -> route.hasEveryMethod() && paths.contains(route.path()))
                .flatMap(route -> route.uses().stream())
                .toList();
    }

    /** Returns whether nothing in the application is limited so far, so that a web filter has nothing to do. */
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
     * @return the admission, to be ended with the request
     * @throws RateLimitExceededException when the request is refused
     */
    public Admission enter(List<Route> matching, CurrentRequest request) {
        return enforcer.reserve(limitRequests(matching, request), request);
    }

    /**
     * {@link #enter} without a thread. The future fails with the exception; cancelling it gives the permits back. Code that
     * is attached to it must not block.
     */
    public CompletableFuture<Admission> enterAsync(List<Route> matching, CurrentRequest request) {
        return enforcer.reserveAsync(limitRequests(matching, request), request, Callbacks.NEVER_BLOCK);
    }

    /**
     * Looks at the routes that leave a request out. Cheap where none does.
     *
     * @return completes with those that count it nevertheless, since its caller has used up a budget, and with what is charged
     *     if the answer says that it guessed credentials
     */
    public CompletionStage<Exemption> exempt(List<Route> routes, CurrentRequest request) {
        CompletionStage<Exemption> exemption = CompletableFuture.completedFuture(new Exemption(List.of(), List.of()));
        for (Route route : routes) {
            exemption = exemption.thenCombine(
                    exempt(route, request), (all, own) -> own.map(all::with).orElseGet(() -> all.without(route)));
        }
        return exemption;
    }

    private CompletionStage<Optional<ExemptCall>> exempt(Route route, CurrentRequest request) {
        List<LimitRequest> limitRequests = new ArrayList<>();
        for (LimitUse limit : route.uses()) {
            try {
                add(limit, request, limitRequests);
            } catch (RuntimeException ex) {
                // A health check does not depend on what looks a key up. Callers can cause this: other limits stay.
            }
        }
        return enforcer.exempt(limitRequests.toArray(LimitRequest.NONE));
    }

    /**
     * A request that routes leave out.
     *
     * @param counting the routes that count it nevertheless
     * @param exempt what it is charged by the others if it guessed credentials
     */
    public record Exemption(List<Route> counting, List<ExemptCall> exempt) {

        private Exemption with(ExemptCall call) {
            return new Exemption(
                    counting, Stream.concat(exempt.stream(), Stream.of(call)).toList());
        }

        private Exemption without(Route route) {
            return new Exemption(
                    Stream.concat(counting.stream(), Stream.of(route)).toList(), exempt);
        }

        /**
         * Charges a request that has been answered. Credentials of an application's own may stand anywhere in a request, so
         * only the answer tells that some were checked: 401, 403, or a redirect, which may be one to the login.
         */
        public void answered(int status) {
            boolean redirect = status == 302 || status == 303 || status == 307;
            if (status == 401 || status == 403 || redirect) {
                exempt.forEach(ExemptCall::charge);
            }
        }
    }

    /** Where a request goes on whose limits did not decide at once, as {@link Continuations#ofSubscriber}. */
    public Executor ofSubscriber(CurrentRequest request) {
        return enforcer.continuations().ofSubscriber(request);
    }

    private static LimitRequest[] limitRequests(List<Route> matching, CurrentRequest request) {
        List<LimitRequest> limitRequests = new ArrayList<>();
        for (Route route : matching) {
            for (LimitUse limit : route.uses()) {
                add(limit, request, limitRequests);
            }
        }
        return limitRequests.toArray(LimitRequest.NONE);
    }

    private static void add(LimitUse limit, CurrentRequest request, List<LimitRequest> limitRequests) {
        LimitRequest asked = limit.request(null, new Object[0], request);
        if (asked != null) {
            limitRequests.add(asked);
        }
    }
}
