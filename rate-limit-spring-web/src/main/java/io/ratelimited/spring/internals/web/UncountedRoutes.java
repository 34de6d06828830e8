package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.text.LogText;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;

/**
 * Warns of an application whose routes nothing counts: it serves no requests, neither by servlets nor by WebFlux, or has
 * excluded the filters. A child context may serve them with routes of its own, which its parent cannot know.
 *
 * @param noRequests whether neither servlets nor WebFlux serve any
 */
public record UncountedRoutes(@Nullable List<RouteProperties> routes, BooleanSupplier noRequests)
        implements SmartInitializingSingleton {

    private static final LogText.Lines LOG = LogText.lines(UncountedRoutes.class);

    @Override
    public void afterSingletonsInstantiated() {
        if (routes != null && !routes.isEmpty() && noRequests.getAsBoolean()) {
            LOG.warn("rate-limit.routes limit nothing: neither a servlet filter nor a WebFlux filter counts requests of"
                    + " this application. If it serves requests, add spring-boot-starter-webmvc or"
                    + " spring-boot-starter-webflux, do not set spring.main.web-application-type to none, and exclude no"
                    + " auto-configuration of rate limits. If it serves none, such as a batch job, set the routes only"
                    + " in the profile of the application that does. [RL-214]");
        }
    }
}
