package io.ratelimited.spring.internals.boot;

import io.ratelimited.spring.internals.web.ApiVersions;
import io.ratelimited.spring.internals.web.RouteLimits;
import io.ratelimited.spring.internals.web.RoutePatterns;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.actuate.autoconfigure.web.server.ManagementPortType;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;

/** Wires the patterns of routes, for the auto-configurations of both stacks. */
@Configuration(proxyBeanMethods = false)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
public class RouteConfiguration {

    @Bean("io.ratelimited.rateLimitRoutePatterns")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    RoutePatterns rateLimitRoutePatterns(
            RouteLimits limits, ObjectProvider<ActuatorPaths> actuator, ApiVersions versions) {
        return new RoutePatterns(
                limits,
                () -> actuator.stream().flatMap(paths -> paths.get().stream()).toList(),
                versions);
    }

    @Configuration(proxyBeanMethods = false)
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnClass({PathMappedEndpoints.class, ManagementPortType.class})
    static class Actuator {

        @Bean("io.ratelimited.rateLimitActuatorPaths")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        ActuatorPaths rateLimitActuatorPaths(ObjectProvider<PathMappedEndpoints> endpoints, Environment environment) {
            return new ActuatorPaths(endpoints, environment);
        }
    }
}
