package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.spring.internals.web.RouteCheck.Handlers;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.core.io.Resource;
import org.springframework.web.reactive.HandlerMapping;
import org.springframework.web.reactive.function.server.support.RouterFunctionMapping;
import org.springframework.web.reactive.handler.AbstractUrlHandlerMapping;
import org.springframework.web.reactive.resource.ResourceWebHandler;
import org.springframework.web.reactive.result.method.RequestMappingInfoHandlerMapping;

/** Finds the paths that a WebFlux application answers. */
public final class ReactiveHandlers {

    private ReactiveHandlers() {}

    /** Returns null when a mapping does not show its paths. */
    public static @Nullable Handlers of(ApplicationContext context) {
        List<String> patterns = new ArrayList<>();
        List<Resource> files = new ArrayList<>();
        for (HandlerMapping mapping :
                context.getBeansOfType(HandlerMapping.class).values()) {
            if (mapping instanceof RequestMappingInfoHandlerMapping methods) {
                methods.getHandlerMethods()
                        .keySet()
                        .forEach(info -> info.getPatternsCondition()
                                .getPatterns()
                                .forEach(pattern -> patterns.add(pattern.getPatternString())));
            } else if (mapping instanceof AbstractUrlHandlerMapping urls) {
                urls.getHandlerMap().forEach((pattern, handler) -> {
                    if (pattern.getPatternString().equals("/**") && handler instanceof ResourceWebHandler resources) {
                        files.addAll(resources.getLocations());
                    } else {
                        patterns.add(pattern.getPatternString());
                    }
                });
            } else if (!(mapping instanceof RouterFunctionMapping functions && functions.getRouterFunction() == null)) {
                return null;
            }
        }
        return new Handlers(patterns, files);
    }
}
