package io.ratelimited.spring.internals.boot;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.web.ApiVersions;
import io.ratelimited.spring.internals.web.RouteLimits;
import io.ratelimited.spring.internals.web.RoutePatterns;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.web.server.ManagementPortType;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.core.env.Environment;

/** Wires the patterns of routes, for the auto-configurations of both stacks. */
@InternalConfiguration
public class RouteConfiguration {

    @InternalBean("io.ratelimited.rateLimitRoutePatterns")
    RoutePatterns rateLimitRoutePatterns(
            RouteLimits limits, ObjectProvider<ActuatorPaths> actuator, ApiVersions versions) {
        return new RoutePatterns(
                limits,
                () -> actuator.stream().flatMap(paths -> paths.get().stream()).toList(),
                versions);
    }

    @InternalConfiguration
    @ConditionalOnClass({PathMappedEndpoints.class, ManagementPortType.class})
    static class Actuator {

        @InternalBean("io.ratelimited.rateLimitActuatorPaths")
        ActuatorPaths rateLimitActuatorPaths(ObjectProvider<PathMappedEndpoints> endpoints, Environment environment) {
            return new ActuatorPaths(endpoints, environment);
        }
    }
}
