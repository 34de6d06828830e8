package io.ratelimited.spring.web.servlet;

import io.ratelimited.spring.call.InvalidPermitsException;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.web.InvalidPermitsLog;
import io.ratelimited.spring.web.Problems;
import io.ratelimited.spring.web.Refusal;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
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
import org.springframework.http.HttpHeaders;
import org.springframework.http.MediaType;
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
 * The last of the exception resolvers: answers rejections, and exceptions that they have caused, which the application maps in no
 * way. Spring MVC writes the problem as it writes errors of the application, in filters too: with its messages, its interceptors
 * of errors and its message converters. Thread-safe.
 */
public final class ServletRefusals implements HandlerExceptionResolver, Ordered {

    private final int status;
    private final ServletRequests requests;
    private final LimitRegistry limits;
    private final Problems problems;
    private final ServletCors cors;
    private final InvalidPermitsLog log;
    private final Supplier<List<HandlerExceptionResolver>> resolvers;
    private final Supplier<Optional<HandlerMethodReturnValueHandler>> writer;
    private final Supplier<Optional<LocaleResolver>> locales;

    /**
     * @param status of requests over a limit
     * @param context with the resolvers of the application, and with what writes its errors
     */
    public ServletRefusals(
            int status,
            ServletRequests requests,
            LimitRegistry limits,
            Problems problems,
            ServletCors cors,
            InvalidPermitsLog log,
            ApplicationContext context) {
        this.status = status;
        this.requests = requests;
        this.limits = limits;
        this.problems = problems;
        this.cors = cors;
        this.log = log;
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
        Refusal refusal = in(failure);
        if (refusal == null || response.isCommitted()) {
            return null;
        }
        try {
            write(request, response, refusal);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
        return new ModelAndView();
    }

    /** Answers in a filter as the dispatcher servlet would; a view cannot be shown there, and becomes the problem. */
    void answer(HttpServletRequest request, HttpServletResponse response, Exception failure) throws IOException {
        for (HandlerExceptionResolver resolver : resolvers.get()) {
            ModelAndView answer = resolver.resolveException(request, response, null, failure);
            if (answer != null && answer.isEmpty()) {
                return;
            }
            if (answer != null) {
                break;
            }
        }
        Refusal refusal = in(failure);
        if (refusal != null && !response.isCommitted()) {
            write(request, response, refusal);
        }
    }

    /** The rejection that an exception is or was caused by; null if none. */
    @Nullable
    Refusal in(Throwable failure) {
        return Refusal.in(failure, status, limits::findsItsLimit);
    }

    private void write(HttpServletRequest request, HttpServletResponse response, Refusal refusal) throws IOException {
        if (refusal.exception() instanceof InvalidPermitsException invalid) {
            log.log(invalid);
        }
        // An error page that is rejected itself has no other one.
        if (request.getDispatcherType() != DispatcherType.ERROR
                && Refusal.isPageWanted(request.getHeader(HttpHeaders.ACCEPT))) {
            RefusalPage.request(request, response, refusal);
            return;
        }
        // Removes the media types of the handler, whose response this is not.
        request.removeAttribute(HandlerMapping.PRODUCIBLE_MEDIA_TYPES_ATTRIBUTE);
        forgetContentType(response);
        Refusal worded = problems.worded(refusal, () -> locale(request), request.getRequestURI());
        byte[] body = asApplication(request, response, worded);
        response.setStatus(worded.status());
        if (body.length == 0) {
            response.setContentType(MediaType.APPLICATION_PROBLEM_JSON_VALUE);
            body = problems.json(worded.getBody());
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

    private static void forgetContentType(HttpServletResponse response) {
        try {
            response.setContentType(null);
        } catch (IllegalStateException ex) {
            // Jetty keeps the type of a response whose writer is in use until another one is set.
        }
    }

    private Locale locale(HttpServletRequest request) {
        return locales.get().map(resolver -> resolver.resolveLocale(request)).orElseGet(request::getLocale);
    }

    /** Returns the body that the application writes; empty if it has no writer, or its writer fails. */
    private byte[] asApplication(HttpServletRequest request, HttpServletResponse response, Refusal worded) {
        HandlerMethodReturnValueHandler handler = writer.get().orElse(null);
        if (handler == null) {
            return new byte[0];
        }
        Written written = new Written(response);
        try {
            handler.handleReturnValue(
                    worded, Problems.RETURN_TYPE, new ModelAndViewContainer(), new ServletWebRequest(request, written));
            return written.body.toByteArray();
        } catch (Exception ex) {
            problems.failed(ex);
            return new byte[0];
        }
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

    /**
     * Sets the headers that every response to a rejection has, whoever answers it, and those that let scripts read them: before
     * the resolvers of Spring MVC, at 0, which ask advice.
     */
    public record Headers(ServletRefusals refusals) implements HandlerExceptionResolver, Ordered {

        @Override
        public int getOrder() {
            return -1;
        }

        @Override
        public @Nullable ModelAndView resolveException(
                HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
            Refusal refusal = refusals.in(failure);
            if (refusal != null && !response.isCommitted()) {
                ServletCurrentRequest call = refusals.requests.of(request, response);
                refusal.report(refusals.limits, call::knows, call::refused);
                call.answered(refusal.fields());
                try {
                    refusals.cors.write(request, response);
                } catch (IOException ex) {
                    throw new UncheckedIOException(ex);
                }
            }
            return null;
        }
    }
}
