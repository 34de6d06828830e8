package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.expression.InvalidCallException;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.web.InvalidCallLog;
import io.ratelimited.spring.internals.web.Problems;
import io.ratelimited.spring.internals.web.Rejection;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.MediaType;
import org.springframework.util.function.SingletonSupplier;

/**
 * Answers rejections, and exceptions that they have caused, which the application maps in no way. Where there is Spring MVC, it
 * writes the problem as it writes errors of the application, in filters and below other servlets, too; elsewhere the problem is
 * JSON. Thread-safe.
 */
public final class ServletRejections {

    private final int status;
    private final ServletRequests requests;
    private final LimitRegistry limits;
    private final Problems problems;
    private final ServletCors cors;
    private final InvalidCallLog log;
    private final Supplier<@Nullable Mvc> mvc;

    /** What Spring MVC makes of exceptions. */
    public interface Mvc {

        /** Lets all resolvers answer, ours last; false if none does, or by a view, which a filter cannot show. */
        boolean answers(HttpServletRequest request, HttpServletResponse response, Exception failure);

        /** The body that the application writes; empty if it has no writer for it. */
        byte[] body(HttpServletRequest request, HttpServletResponse response, Rejection worded) throws Exception;

        Locale locale(HttpServletRequest request);
    }

    /**
     * @param status of requests over a limit
     * @param mvc null without Spring MVC; asked at the first rejection
     */
    public ServletRejections(
            int status,
            ServletRequests requests,
            LimitRegistry limits,
            Problems problems,
            ServletCors cors,
            InvalidCallLog log,
            Supplier<@Nullable Mvc> mvc) {
        this.status = status;
        this.requests = requests;
        this.limits = limits;
        this.problems = problems;
        this.cors = cors;
        this.log = log;
        this.mvc = SingletonSupplier.ofNullable(mvc);
    }

    /**
     * Answers outside of Spring MVC as the dispatcher servlet would. An exception that is no rejection, and that the application
     * does not answer, is left alone.
     */
    void answer(HttpServletRequest request, HttpServletResponse response, Exception failure) throws IOException {
        Mvc application = mvc.get();
        if (application == null) {
            setHeaders(request, response, failure);
        } else if (application.answers(request, response, failure)) {
            return;
        }
        write(request, response, failure);
    }

    /** The rejection that an exception is or was caused by; null if none. */
    private @Nullable Rejection in(Throwable failure) {
        return Rejection.in(failure, status, limits::findsItsLimit);
    }

    /** {@link #in} of a request whose headers may have been set for it. */
    private @Nullable Rejection in(HttpServletRequest request, Throwable failure) {
        Rejection known = ServletRequestState.refusal(request);
        return known != null && known.isIn(failure) ? known : in(failure);
    }

    /**
     * Words a rejection for frameworks that write responses by themselves, and sets the headers that every response to it has.
     *
     * @param failure a rejection, or one that was {@linkplain Rejection#isCauseOf caused} by one
     * @param writer writes the response: the status, and the problem as JSON
     */
    public <T> T worded(
            HttpServletRequest request,
            HttpServletResponse response,
            Exception failure,
            BiFunction<Integer, byte[], T> writer)
            throws IOException {
        setHeaders(request, response, failure);
        Rejection refusal = Objects.requireNonNull(in(request, failure));
        if (refusal.exception() instanceof InvalidCallException invalid) {
            log.log(invalid);
        }
        Rejection worded = problems.worded(refusal, request::getLocale, request.getRequestURI());
        return writer.apply(worded.status(), problems.json(worded.getBody()));
    }

    /** Sets the headers that every response to a rejection has, whoever answers it, and those that let scripts read them. */
    void setHeaders(HttpServletRequest request, HttpServletResponse response, Exception failure) throws IOException {
        Rejection refusal = in(failure);
        if (refusal != null && !response.isCommitted()) {
            ServletCurrentRequest call = requests.of(request, response);
            refusal.report(limits, call::knows, call::refused);
            call.answered(refusal);
            cors.write(request, response);
        }
    }

    /** Answers a rejection, unless the response has begun; false if that is left to others. */
    boolean write(HttpServletRequest request, HttpServletResponse response, Exception failure) throws IOException {
        Rejection refusal = in(request, failure);
        if (refusal == null || response.isCommitted()) {
            return false;
        }
        write(request, response, refusal);
        return true;
    }

    void write(HttpServletRequest request, HttpServletResponse response, Rejection refusal) throws IOException {
        if (refusal.exception() instanceof InvalidCallException invalid) {
            log.log(invalid);
        }
        // An error page that is rejected itself has no other one.
        if (request.getDispatcherType() != DispatcherType.ERROR
                && Rejection.isPageWanted(request.getHeader(HttpHeaders.ACCEPT))) {
            RejectionPage.request(request, response, refusal);
            return;
        }
        forgetContentType(response);
        Mvc application = mvc.get();
        Rejection worded = problems.worded(
                refusal,
                () -> application == null ? request.getLocale() : application.locale(request),
                request.getRequestURI());
        byte[] body = application == null ? new byte[0] : body(application, request, response, worded);
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

    private byte[] body(Mvc application, HttpServletRequest request, HttpServletResponse response, Rejection worded) {
        try {
            return application.body(request, response, worded);
        } catch (Exception ex) {
            problems.failed(ex);
            return new byte[0];
        }
    }
}
