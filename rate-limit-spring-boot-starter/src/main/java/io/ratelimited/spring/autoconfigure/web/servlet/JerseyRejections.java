package io.ratelimited.spring.autoconfigure.web.servlet;

import io.ratelimited.spring.internals.web.Rejection;
import io.ratelimited.spring.internals.web.servlet.ServletRejections;
import jakarta.annotation.Priority;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.Context;
import jakarta.ws.rs.core.Response;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Supplier;
import org.glassfish.jersey.server.ResourceConfig;
import org.glassfish.jersey.spi.ExtendedExceptionMapper;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.http.MediaType;

/**
 * Answers rejections in resources of Jersey, which would answer them by 500. Every mapper of the application for the exception, or
 * for a type above it, takes precedence: this one is for the farthest type, and of the lowest priority.
 */
@Priority(Integer.MAX_VALUE)
final class JerseyRejections implements ExtendedExceptionMapper<Throwable> {

    private final Supplier<ServletRejections> refusals;

    /** Of the response that Jersey writes, in whichever thread it does. Null in containers that serve no servlets. */
    @Context
    private @Nullable HttpServletRequest request;

    @Context
    private @Nullable HttpServletResponse response;

    private JerseyRejections(Supplier<ServletRejections> refusals) {
        this.refusals = refusals;
    }

    /** Registers it in every application of Jersey that is a bean. */
    static BeanPostProcessor registering(Supplier<ServletRejections> refusals) {
        return new BeanPostProcessor() {

            @Override
            public Object postProcessAfterInitialization(Object bean, String name) {
                if (bean instanceof ResourceConfig application && !application.isRegistered(JerseyRejections.class)) {
                    application.register(new JerseyRejections(refusals), Integer.MAX_VALUE);
                }
                return bean;
            }
        };
    }

    @Override
    public boolean isMappable(Throwable failure) {
        return failure instanceof Exception
                && !(failure instanceof WebApplicationException) // the answer of the application
                && request != null
                && response != null
                && Rejection.isCauseOf(failure);
    }

    @Override
    public Response toResponse(Throwable failure) {
        if (request == null || response == null) {
            throw new IllegalStateException("not mappable", failure);
        }
        try {
            return refusals.get()
                    .worded(
                            request,
                            response,
                            (Exception) failure,
                            (status, problem) -> Response.status(status)
                                    .type(MediaType.APPLICATION_PROBLEM_JSON_VALUE)
                                    .entity(problem)
                                    .build());
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
