package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.RouteCheck.Handlers;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletRegistration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.core.io.Resource;
import org.springframework.util.ClassUtils;
import org.springframework.web.context.WebApplicationContext;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.function.support.RouterFunctionMapping;
import org.springframework.web.servlet.handler.AbstractUrlHandlerMapping;
import org.springframework.web.servlet.mvc.method.RequestMappingInfoHandlerMapping;
import org.springframework.web.servlet.resource.ResourceHttpRequestHandler;

/** Finds the paths that an application answers by Spring MVC and other servlets. */
public final class ServletHandlers {

    private static final boolean MVC = ClassUtils.isPresent(
            "org.springframework.web.servlet.DispatcherServlet", ServletHandlers.class.getClassLoader());

    /** The name of the servlet of Spring MVC that Spring Boot registers. */
    static final String DISPATCHER = "dispatcherServlet";

    /** Spring Boot registers it by the name of a class of the application. */
    private static final String JERSEY = "org.glassfish.jersey.servlet.ServletContainer";

    private ServletHandlers() {}

    /** Returns whether a servlet finds its handlers by the path within it, among them those of the actuator. */
    static boolean readsPathsWithin(ServletContext context, String name) {
        if (name.equals(DISPATCHER)) {
            return true;
        }
        ServletRegistration servlet = context.getServletRegistration(name);
        return servlet != null && JERSEY.equals(servlet.getClassName());
    }

    /** Returns null when a mapping does not show its paths. */
    public static @Nullable Handlers of(ApplicationContext context) {
        List<String> patterns = new ArrayList<>();
        List<Resource> files = new ArrayList<>();
        if (MVC && !Mvc.addHandlers(context, patterns, files)) {
            return null;
        }
        if (context instanceof WebApplicationContext web && web.getServletContext() != null) {
            addServlets(web.getServletContext(), patterns);
        }
        return new Handlers(patterns, files);
    }

    /** Other servlets, and the handlers with the path of their own servlet. */
    private static void addServlets(ServletContext servlets, List<String> patterns) {
        List<String> handlers = List.copyOf(patterns);
        servlets.getServletRegistrations()
                .forEach((name, servlet) -> servlet.getMappings().forEach(mapping -> {
                    boolean hasPath = mapping.endsWith("/*");
                    String path = hasPath ? mapping.substring(0, mapping.length() - 2) : mapping;
                    if (!name.equals(DISPATCHER)) {
                        pattern(mapping, path, hasPath).ifPresent(patterns::add);
                    } else if (hasPath) {
                        handlers.forEach(handler -> patterns.add(path + handler));
                    }
                }));
    }

    /** None for a servlet that takes what no other one does: with Spring MVC that is a dispatcher servlet, or sends files. */
    private static Optional<String> pattern(String mapping, String path, boolean hasPath) {
        if (mapping.equals("/")) {
            return MVC ? Optional.empty() : Optional.of("/**");
        }
        return Optional.of(hasPath ? path + "/**" : mapping.startsWith("*") ? "/**/" + mapping : mapping);
    }

    /** Loaded only where Spring MVC is. */
    private static final class Mvc {

        /** Returns false when a mapping does not show its paths. */
        private static boolean addHandlers(ApplicationContext context, List<String> patterns, List<Resource> files) {
            for (HandlerMapping mapping :
                    context.getBeansOfType(HandlerMapping.class).values()) {
                if (mapping instanceof RequestMappingInfoHandlerMapping methods) {
                    methods.getHandlerMethods().keySet().forEach(info -> patterns.addAll(info.getPatternValues()));
                } else if (mapping instanceof AbstractUrlHandlerMapping urls) {
                    urls.getHandlerMap().forEach((pattern, handler) -> {
                        if (pattern.equals("/**") && handler instanceof ResourceHttpRequestHandler resources) {
                            files.addAll(resources.getLocations());
                        } else {
                            patterns.add(pattern);
                        }
                    });
                } else if (!(mapping instanceof RouterFunctionMapping functions
                        && functions.getRouterFunction() == null)) {
                    return false;
                }
            }
            return true;
        }
    }
}
