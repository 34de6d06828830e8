package io.ratelimited.spring.web;

import io.ratelimited.spring.text.LogText;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;

/**
 * Warns of a web application whose routes nothing counts: one that answers by JAX-RS or servlets alone has neither Spring MVC
 * nor WebFlux.
 */
public final class UncountedRoutes implements SmartInitializingSingleton {

    private static final LogText.Lines LOG = LogText.lines(UncountedRoutes.class);

    private final @Nullable List<RouteProperties> routes;
    private final BooleanSupplier noRequests;

    /** @param noRequests whether neither Spring MVC nor WebFlux serves any */
    public UncountedRoutes(@Nullable List<RouteProperties> routes, BooleanSupplier noRequests) {
        this.routes = routes;
        this.noRequests = noRequests;
    }

    @Override
    public void afterSingletonsInstantiated() {
        if (routes != null && !routes.isEmpty() && noRequests.getAsBoolean()) {
            LOG.warn("rate-limit.routes limit nothing: this application has neither Spring MVC nor WebFlux, which count"
                    + " requests. Add spring-boot-starter-webmvc: its filters also count requests of JAX-RS resources and"
                    + " other servlets. [RL-214]");
        }
    }
}
