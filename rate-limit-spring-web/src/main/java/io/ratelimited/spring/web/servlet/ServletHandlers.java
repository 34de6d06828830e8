package io.ratelimited.spring.web.servlet;

import io.ratelimited.spring.web.RouteCheck.Handlers;
import jakarta.servlet.ServletContext;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.core.io.Resource;
import org.springframework.web.context.WebApplicationContext;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.function.support.RouterFunctionMapping;
import org.springframework.web.servlet.handler.AbstractUrlHandlerMapping;
import org.springframework.web.servlet.mvc.method.RequestMappingInfoHandlerMapping;
import org.springframework.web.servlet.resource.ResourceHttpRequestHandler;

/** Finds the paths that an application of Spring MVC answers. */
public final class ServletHandlers {

    private ServletHandlers() {}

    /** Returns null when a mapping does not show its paths. */
    public static @Nullable Handlers of(ApplicationContext context) {
        List<String> patterns = new ArrayList<>();
        List<Resource> files = new ArrayList<>();
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
            } else if (!(mapping instanceof RouterFunctionMapping functions && functions.getRouterFunction() == null)) {
                return null;
            }
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
                .forEach((name, servlet) -> servlet.getMappings().stream()
                        .filter(mapping -> mapping.endsWith("/*"))
                        .map(mapping -> mapping.substring(0, mapping.length() - 2))
                        .forEach(path -> {
                            if (name.equals("dispatcherServlet")) {
                                handlers.forEach(handler -> patterns.add(path + handler));
                            } else {
                                patterns.add(path + "/**");
                            }
                        }));
    }
}
