package io.ratelimited.spring.web.servlet;

import io.ratelimited.spring.web.Problems;
import io.ratelimited.spring.web.Refusal;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.springframework.context.ApplicationContext;
import org.springframework.http.MediaType;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.ErrorResponse;
import org.springframework.web.context.request.ServletWebRequest;
import org.springframework.web.method.support.HandlerMethodReturnValueHandler;
import org.springframework.web.method.support.ModelAndViewContainer;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.LocaleResolver;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerAdapter;
import org.springframework.web.util.ContentCachingResponseWrapper;

/**
 * Writes refusals as Spring MVC writes errors of the application, in filters too: with its messages, its interceptors of errors
 * and its message converters. Thread-safe.
 */
public final class ServletProblems {

    private final Problems problems;
    private final Supplier<Optional<HandlerMethodReturnValueHandler>> writer;
    private final Supplier<Optional<LocaleResolver>> locales;

    public ServletProblems(ApplicationContext context, Problems problems) {
        this.problems = problems;
        this.writer = SingletonSupplier.of(() -> writer(context));
        this.locales = SingletonSupplier.of(() -> locales(context));
    }

    private static Optional<HandlerMethodReturnValueHandler> writer(ApplicationContext context) {
        return context.getBeanProvider(RequestMappingHandlerAdapter.class)
                .orderedStream()
                .map(adapter -> Objects.requireNonNullElse(
                        adapter.getReturnValueHandlers(), List.<HandlerMethodReturnValueHandler>of()))
                .flatMap(List::stream)
                .filter(handler -> handler.supportsReturnType(Problems.RETURN_TYPE))
                .findFirst();
    }

    private static Optional<LocaleResolver> locales(ApplicationContext context) {
        String name = DispatcherServlet.LOCALE_RESOLVER_BEAN_NAME;
        return context.containsBean(name) ? Optional.of(context.getBean(name, LocaleResolver.class)) : Optional.empty();
    }

    void write(HttpServletRequest request, HttpServletResponse response, Refusal refusal) throws IOException {
        // Removes the media types of the handler, whose answer this is not.
        request.removeAttribute(HandlerMapping.PRODUCIBLE_MEDIA_TYPES_ATTRIBUTE);
        response.setContentType(null);
        ErrorResponse problem = problems.of(refusal, () -> locale(request), request.getRequestURI());
        byte[] body = asApplication(request, response, problem);
        response.setStatus(refusal.status());
        if (body.length == 0) {
            response.setContentType(MediaType.APPLICATION_PROBLEM_JSON_VALUE);
            body = problems.json(problem.getBody());
        }
        try {
            OutputStream stream = response.getOutputStream();
            response.setContentLength(body.length);
            stream.write(body);
        } catch (IllegalStateException ex) {
            // A template or handler has the writer already, whose encoding decides how many bytes the text takes.
            response.getWriter().write(new String(body, StandardCharsets.UTF_8));
        }
    }

    private Locale locale(HttpServletRequest request) {
        return locales.get().map(resolver -> resolver.resolveLocale(request)).orElseGet(request::getLocale);
    }

    /** Returns the body that the application writes; empty if it has no writer, or its writer fails. */
    private byte[] asApplication(HttpServletRequest request, HttpServletResponse response, ErrorResponse problem) {
        HandlerMethodReturnValueHandler handler = writer.get().orElse(null);
        if (handler == null) {
            return new byte[0];
        }
        // Spring would commit the response, and the writer of the response may be in use.
        ContentCachingResponseWrapper written = new ContentCachingResponseWrapper(response);
        try {
            handler.handleReturnValue(
                    problem,
                    Problems.RETURN_TYPE,
                    new ModelAndViewContainer(),
                    new ServletWebRequest(request, written));
            return written.getContentAsByteArray();
        } catch (Exception ex) {
            problems.failed(ex);
            return new byte[0];
        }
    }
}
