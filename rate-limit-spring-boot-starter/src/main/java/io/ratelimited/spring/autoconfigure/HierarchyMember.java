package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.limit.RequestThreads;
import io.ratelimited.spring.request.CurrentRequest;
import java.util.Collection;
import java.util.Set;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.context.ApplicationContext;
import org.springframework.core.env.Environment;

/** A context that shares the limits of its hierarchy: adds its sources of requests, until it closes. */
public final class HierarchyMember implements DisposableBean {

    private static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of("rate-limit");

    /** Properties of the parent that hold for all contexts. */
    private static final Set<String> SHARED =
            Set.of("enabled", "backend", "defaults", "limits", "memory", "clients", "redis");

    private final ContextRequests requests;
    private final Collection<CurrentRequest.Source> own;

    public HierarchyMember(ApplicationContext context, LimitRegistry registry, ContextRequests requests) {
        if (context.getBeanNamesForType(LimitRegistry.class).length == 0) {
            requireSameLimits(context);
        }
        this.requests = requests;
        this.own = context.getBeansOfType(CurrentRequest.Source.class).values();
        requests.add(own);
        context.getBeansOfType(RequestThreads.class).values().forEach(registry::addThreads);
    }

    @Override
    public void destroy() {
        requests.remove(own);
    }

    /**
     * Checks that a context sets no property of the limits that it shares otherwise than its parent, whose properties they have.
     * Routes and answers are those of each context.
     *
     * @throws InvalidRateLimitException when it does
     */
    public static void requireSameLimits(ApplicationContext context) {
        ApplicationContext parent = context.getParent();
        if (parent == null || parent.getBeanProvider(LimitRegistry.class).getIfAvailable() == null) {
            return;
        }
        Environment here = context.getEnvironment();
        Environment there = parent.getEnvironment();
        names(here)
                .filter(name -> SHARED.contains(name.getElement(1, Form.UNIFORM)))
                .filter(name -> !value(name, here).equals(value(name, there)))
                .sorted()
                .findFirst()
                .ifPresent(name -> {
                    throw new InvalidRateLimitException(
                            "Property " + name + " is " + value(name, here) + " in a child context, but "
                                    + value(name, there) + " in its parent, with which it shares its limits",
                            "Set it for the parent, such as in a file that both read; or let only one of the two"
                                    + " contexts have the auto-configuration of limits. [RL-116]");
                });
    }

    private static Stream<ConfigurationPropertyName> names(Environment environment) {
        return sources(environment)
                .filter(IterableConfigurationPropertySource.class::isInstance)
                .flatMap(source -> ((IterableConfigurationPropertySource) source).stream())
                .filter(PREFIX::isAncestorOf);
    }

    private static String value(ConfigurationPropertyName name, Environment environment) {
        return sources(environment)
                .flatMap(source -> Stream.ofNullable(source.getConfigurationProperty(name)))
                .findFirst()
                .map(property -> String.valueOf(property.getValue()))
                .orElse("not set");
    }

    private static Stream<ConfigurationPropertySource> sources(Environment environment) {
        return StreamSupport.stream(
                ConfigurationPropertySources.get(environment).spliterator(), false);
    }
}
