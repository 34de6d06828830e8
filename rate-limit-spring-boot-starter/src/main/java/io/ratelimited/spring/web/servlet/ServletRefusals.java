package io.ratelimited.spring.web.servlet;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.web.Refusal;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;

/**
 * Answers refusals that nobody else has answered: the last of the exception resolvers, behind the application's
 * {@code @ExceptionHandler} methods, advice and resolvers.
 */
final class ServletRefusals implements HandlerExceptionResolver, Ordered {

    private final int status;
    private final ServletRequests requests;
    private final LimitRegistry limits;
    private final Supplier<Stream<HandlerExceptionResolver>> resolvers;

    /** @param resolvers all of the application, in their order */
    ServletRefusals(
            int status,
            ServletRequests requests,
            LimitRegistry limits,
            Supplier<Stream<HandlerExceptionResolver>> resolvers) {
        this.status = status;
        this.requests = requests;
        this.limits = limits;
        this.resolvers = resolvers;
    }

    @Override
    public int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
        Refusal refusal = Refusal.in(failure);
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

    /** Answers in a filter as the dispatcher servlet would; an answer that is a view cannot be shown there. */
    void answer(HttpServletRequest request, HttpServletResponse response, RateLimitExceededException refusal)
            throws IOException {
        boolean answered = resolvers
                .get()
                .map(resolver -> resolver.resolveException(request, response, null, refusal))
                .filter(view -> view != null)
                .findFirst()
                .map(ModelAndView::isEmpty)
                .orElse(false);
        if (!answered && !response.isCommitted()) {
            write(request, response, new Refusal(refusal));
        }
    }

    private void write(HttpServletRequest request, HttpServletResponse response, Refusal refusal) throws IOException {
        tellOf(refusal.exception(), requests.of(request, response));
        setRetryAfter(response, refusal);
        // An error page that is refused itself has no other one.
        if (request.getDispatcherType() != DispatcherType.ERROR
                && Refusal.isPageWanted(request.getHeader(HttpHeaders.ACCEPT))) {
            response.sendError(status);
            return;
        }
        byte[] body = refusal.body(status);
        response.setStatus(status);
        response.setContentType(Refusal.CONTENT_TYPE);
        try {
            OutputStream stream = response.getOutputStream();
            response.setContentLength(body.length);
            stream.write(body);
        } catch (IllegalStateException ex) {
            // A template or handler has the writer already, whose encoding decides how many bytes the text takes.
            response.getWriter().write(new String(body, StandardCharsets.UTF_8));
        }
    }

    private static void setRetryAfter(HttpServletResponse response, Refusal refusal) {
        String retryAfter = refusal.retryAfter();
        if (retryAfter != null) {
            response.setHeader(HttpHeaders.RETRY_AFTER, retryAfter);
        }
    }

    /** A refusal on another thread has not been reported to the request. */
    private void tellOf(RateLimitExceededException refusal, ServletCurrentRequest call) {
        if (!call.knows(refusal.limit())) {
            limits.all().stream()
                    .filter(limit -> limit.name().equals(refusal.limit()))
                    .forEach(limit -> call.refused(limit.limit(), refusal.decision()));
        }
    }

    /** The first of the exception resolvers: the answer of the application has {@code Retry-After}, or its own. */
    static final class RetryAfter implements HandlerExceptionResolver, Ordered {

        @Override
        public int getOrder() {
            return HIGHEST_PRECEDENCE;
        }

        @Override
        public @Nullable ModelAndView resolveException(
                HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
            Refusal refusal = Refusal.in(failure);
            if (refusal != null && !response.isCommitted()) {
                setRetryAfter(response, refusal);
            }
            return null;
        }
    }
}
