package io.ratelimited.spring.internals.web.reactive;

import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.web.server.adapter.ForwardedHeaderTransformer;
import org.springframework.web.server.adapter.WebHttpHandlerBuilder;

/** Finds the bean of a WebFlux application that takes the address of clients from headers. */
public final class ForwardingTransformers {

    private ForwardingTransformers() {}

    /** Returns a description; null if there is none, or if it only removes the headers. */
    public static @Nullable String of(ApplicationContext context) {
        String name = WebHttpHandlerBuilder.FORWARDED_HEADER_TRANSFORMER_BEAN_NAME;
        return context.containsBean(name)
                        && context.getBean(name) instanceof ForwardedHeaderTransformer transformer
                        && !transformer.isRemoveOnly()
                ? "the bean '" + name + "' is a ForwardedHeaderTransformer"
                : null;
    }
}
