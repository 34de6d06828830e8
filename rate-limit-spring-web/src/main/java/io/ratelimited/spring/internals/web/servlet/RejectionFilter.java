package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.Rejection;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/**
 * Answers refusals that filters throw, those of Spring Security among them, and others that the dispatcher servlet does not
 * answer, such as refusals of a template. The container would make an error 500 of each. Also sees the end of a request that
 * ends with an asynchronous dispatch, whichever filter lets it pass, and the dispatch to an error page, where the request
 * may be read again.
 */
public final class RejectionFilter implements Filter {

    /** Behind the filters that wrap every request (forwarded headers, observation, session), before all others. */
    public static final int ORDER = Integer.MIN_VALUE + 100;

    private final ServletRejections refusals;
    private final RejectionPage page;

    public RejectionFilter(ServletRejections refusals, RejectionPage page) {
        this.refusals = refusals;
        this.page = page;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        DispatcherType type = request.getDispatcherType();
        boolean error = type == DispatcherType.ERROR;
        if (error) {
            ServletRequestState.resume(request);
        } else if (type == DispatcherType.FORWARD) {
            // In a server that is not embedded, Spring Boot's own filter forwards to error pages when the request has
            // ended.
            error = request.getAttribute(RequestDispatcher.ERROR_STATUS_CODE) != null
                    && ServletRequestState.resume(request);
        }
        try {
            if (!error || !page.show(request, response)) {
                chain.doFilter(request, response);
            }
        } catch (Throwable failure) {
            if (!tryAnswer(request, response, failure)) {
                throw failure;
            }
        } finally {
            // Jetty completes no asynchronous request whose later dispatch fails after its response has begun.
            if ((error || type == DispatcherType.ASYNC) && !request.isAsyncStarted()) {
                ServletRequestState.end(request);
            }
        }
    }

    /** A response that is pending, here or on another thread, is left alone. */
    private boolean tryAnswer(ServletRequest request, ServletResponse response, Throwable failure) throws IOException {
        if (!Rejection.isCauseOf(failure)
                || response.isCommitted()
                || request.isAsyncStarted()
                || !(request instanceof HttpServletRequest httpRequest)
                || !(response instanceof HttpServletResponse httpResponse)) {
            return false;
        }
        httpResponse.resetBuffer();
        refusals.answer(
                httpRequest,
                httpResponse,
                failure instanceof Exception exception ? exception : new ServletException(failure));
        return true;
    }
}
