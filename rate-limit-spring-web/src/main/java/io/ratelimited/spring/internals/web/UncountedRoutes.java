package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.text.LogText;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;

/**
 * Warns of a web application whose routes nothing counts: it answers neither by servlets nor by WebFlux, or has excluded the filters.
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
                    + " this application. Add spring-boot-starter-webmvc or spring-boot-starter-webflux, and exclude no"
                    + " auto-configuration of rate limits. [RL-214]");
        }
    }
}
