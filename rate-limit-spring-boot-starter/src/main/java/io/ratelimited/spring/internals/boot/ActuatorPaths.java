package io.ratelimited.spring.internals.boot;

import io.ratelimited.spring.internals.web.Route;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.web.server.ManagementPortType;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.WebServerNamespace;
import org.springframework.core.env.Environment;

/**
 * The paths of the actuator's endpoints that the application's own port serves: with a management port, only those that are
 * added to it, such as {@code /livez}. Routes leave them out for requests without credentials: a limit must not stop health
 * checks.
 */
public record ActuatorPaths(ObjectProvider<PathMappedEndpoints> endpoints, Environment environment)
        implements Supplier<List<String>> {

    /** The path of the list of endpoints, and path patterns of each endpoint. */
    @Override
    public List<String> get() {
        boolean samePort = ManagementPortType.get(environment) == ManagementPortType.SAME;
        List<String> patterns = new ArrayList<>();
        for (PathMappedEndpoints all : endpoints) {
            if (samePort) {
                if (!all.getBasePath().isEmpty()) {
                    patterns.add(all.getBasePath());
                }
                all.getAllPaths().forEach(path -> patterns.add(path + "/**"));
            }
            all.stream()
                    .flatMap(endpoint -> endpoint.getAdditionalPaths(WebServerNamespace.SERVER).stream())
                    .forEach(path -> patterns.add(Route.slashed(path) + "/**"));
        }
        return patterns;
    }
}
