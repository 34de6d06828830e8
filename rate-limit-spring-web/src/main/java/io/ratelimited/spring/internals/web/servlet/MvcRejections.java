package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.Problems;
import io.ratelimited.spring.internals.web.Rejection;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.core.Ordered;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.context.request.ServletWebRequest;
import org.springframework.web.method.support.HandlerMethodReturnValueHandler;
import org.springframework.web.method.support.ModelAndViewContainer;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.LocaleResolver;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerAdapter;

/**
 * The last of the exception resolvers, and what Spring MVC writes as it writes errors of the application: with its messages, its
 * interceptors of errors and its message converters. Thread-safe.
 */
public final class MvcRejections implements HandlerExceptionResolver, Ordered, ServletRejections.Mvc {

    private final ServletRejections refusals;
    private final Supplier<List<HandlerExceptionResolver>> resolvers;
    private final Supplier<Optional<HandlerMethodReturnValueHandler>> writer;
    private final Supplier<Optional<LocaleResolver>> locales;

    /** @param context with the resolvers of the application, and with what writes its errors */
    public MvcRejections(ServletRejections refusals, ApplicationContext context) {
        this.refusals = refusals;
        this.resolvers = SingletonSupplier.of(() -> context.getBeanProvider(HandlerExceptionResolver.class)
                .orderedStream()
                .toList());
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

    @Override
    public int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
        if (isIncluded(request)) {
            // Has no status and no headers of its own: the exception goes on, and the request is rejected.
            return null;
        }
        try {
            return refusals.write(request, response, failure) ? new ModelAndView() : null;
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static boolean isIncluded(HttpServletRequest request) {
        return request.getDispatcherType() == DispatcherType.INCLUDE;
    }

    @Override
    public boolean answers(HttpServletRequest request, HttpServletResponse response, Exception failure) {
        for (HandlerExceptionResolver resolver : resolvers.get()) {
            ModelAndView answer = resolver.resolveException(request, response, null, failure);
            if (answer != null) {
                return answer.isEmpty();
            }
        }
        return false;
    }

    @Override
    public Locale locale(HttpServletRequest request) {
        return locales.get().map(resolver -> resolver.resolveLocale(request)).orElseGet(request::getLocale);
    }

    @Override
    public byte[] body(HttpServletRequest request, HttpServletResponse response, Rejection worded) throws Exception {
        // Removes the media types of the handler, whose response this is not.
        request.removeAttribute(HandlerMapping.PRODUCIBLE_MEDIA_TYPES_ATTRIBUTE);
        HandlerMethodReturnValueHandler handler = writer.get().orElse(null);
        if (handler == null) {
            return new byte[0];
        }
        Written written = new Written(response);
        handler.handleReturnValue(
                worded, Problems.RETURN_TYPE, new ModelAndViewContainer(), new ServletWebRequest(request, written));
        return written.body.toByteArray();
    }

    /** Keeps the body that the application writes: it would commit the response, whose writer may be in use. */
    private static final class Written extends HttpServletResponseWrapper {

        private final ByteArrayOutputStream body = new ByteArrayOutputStream();

        private Written(HttpServletResponse response) {
            super(response);
        }

        @Override
        public ServletOutputStream getOutputStream() {
            return new ServletOutputStream() {
                @Override
                public void write(int b) {
                    body.write(b);
                }

                @Override
                public void write(byte[] bytes, int offset, int length) {
                    body.write(bytes, offset, length);
                }

                @Override
                public boolean isReady() {
                    return true;
                }

                @Override
                public void setWriteListener(WriteListener listener) {
                    throw new IllegalStateException("the body is kept in memory");
                }
            };
        }

        @Override
        public PrintWriter getWriter() {
            return new PrintWriter(body, true, StandardCharsets.UTF_8);
        }

        @Override
        public void setContentLength(int length) {
            // Stated when the body is written.
        }

        @Override
        public void setContentLengthLong(long length) {
            // Stated when the body is written.
        }

        @Override
        public void flushBuffer() {
            // Nothing has been written yet.
        }
    }

    /** Sets the headers that every response to a rejection has: before the resolvers of Spring MVC, at 0, which ask advice. */
    public record Headers(ServletRejections refusals) implements HandlerExceptionResolver, Ordered {

        @Override
        public int getOrder() {
            return -1;
        }

        @Override
        public @Nullable ModelAndView resolveException(
                HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
            if (isIncluded(request)) {
                return null;
            }
            try {
                refusals.setHeaders(request, response, failure);
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
            return null;
        }
    }
}
