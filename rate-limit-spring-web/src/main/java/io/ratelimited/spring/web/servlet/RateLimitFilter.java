package io.ratelimited.spring.web.servlet;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.call.Admission;
import io.ratelimited.spring.web.RequestPaths;
import io.ratelimited.spring.web.Route;
import io.ratelimited.spring.web.RouteLimits;
import io.ratelimited.spring.web.RoutePatterns;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.web.cors.CorsUtils;

/**
 * Limits requests by route, and knows when a request has ended; once a request, not on its further dispatches. There are
 * two: before the filters of Spring Security, so that every request is counted; and after them, for routes that need to
 * know the principal.
 */
public final class RateLimitFilter implements Filter, Ordered {

    /** Where the filter of routes that need the principal stands, unless Spring Security's, at -100 by default, stands behind it. */
    public static final int ORDER = -90;

    /** Where the filter of the routes before Spring Security stands, unless that has an order of its own. */
    public static final int BEFORE_SECURITY = -101;

    private final boolean beforeSecurity;
    private final int order;
    private final RoutePatterns routes;
    private final RouteLimits limits;
    private final ServletRequests requests;
    private final ServletRefusals refusals;
    private final ServletCors cors;

    /** @param beforeSecurity which routes: those before or those after Spring Security */
    public RateLimitFilter(
            boolean beforeSecurity,
            int order,
            RoutePatterns routes,
            RouteLimits limits,
            ServletRequests requests,
            ServletRefusals refusals,
            ServletCors cors) {
        this.beforeSecurity = beforeSecurity;
        this.order = order;
        this.routes = routes;
        this.limits = limits;
        this.requests = requests;
        this.refusals = refusals;
        this.cors = cors;
    }

    @Override
    public int getOrder() {
        return order;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (limits.isIdle()
                || !(request instanceof HttpServletRequest httpRequest)
                || !(response instanceof HttpServletResponse httpResponse)) {
            chain.doFilter(request, response);
            return;
        }
        RequestPaths paths = routes.isEmpty() ? null : ServletPaths.of(httpRequest);
        List<Route> matching = paths == null
                ? List.of()
                : routes.matching(httpRequest.getMethod(), paths, httpRequest::getHeader, beforeSecurity);
        if (beforeSecurity && matching.isEmpty()) {
            chain.doFilter(request, response);
            return;
        }
        if (paths != null && !matching.isEmpty() && isLeftOut(httpRequest, httpResponse, paths)) {
            return;
        }
        ServletCurrentRequest call = requests.of(httpRequest, httpResponse);
        Admission admission;
        try {
            admission = matching.isEmpty() ? null : limits.enter(matching, call);
        } catch (RateLimitExceededException refusal) {
            refusals.answer(httpRequest, httpResponse, refusal);
            return;
        }
        proceed(httpRequest, httpResponse, chain, call, admission);
    }

    /**
     * A preflight is left out only if it ends here: a request that goes on may reach a filter or servlet that answers it.
     */
    private boolean isLeftOut(HttpServletRequest request, HttpServletResponse response, RequestPaths paths)
            throws IOException {
        return CorsUtils.isPreFlightRequest(request)
                && routes.mayLeaveOutPreflight(paths, request::getHeader)
                && cors.answersPreflight(request, response);
    }

    private static void proceed(
            HttpServletRequest request,
            HttpServletResponse response,
            FilterChain chain,
            ServletCurrentRequest call,
            @Nullable Admission admission)
            throws IOException, ServletException {
        boolean async = false;
        call.begin();
        if (admission != null && admission.followsResult()) {
            call.followResult();
        }
        if (admission != null) {
            call.atEnd(() -> admission.end(call.endOfResponse()));
        }
        try {
            chain.doFilter(request, response);
            async = request.isAsyncStarted() && new End(call).follow(request);
        } catch (Throwable ex) {
            call.failed(ex);
            throw ex;
        } finally {
            if (!async) {
                call.end();
            }
        }
    }

    /**
     * The end of a request that goes on after its first dispatch, on whichever thread it comes. That of a later dispatch
     * is seen by {@link RefusalFilter}.
     */
    private record End(ServletCurrentRequest call) implements AsyncListener {

        private boolean follow(HttpServletRequest request) {
            try {
                request.getAsyncContext().addListener(this);
                return true;
            } catch (IllegalStateException ex) {
                // It has ended meanwhile.
                return false;
            }
        }

        @Override
        public void onComplete(AsyncEvent event) {
            call.end();
        }

        @Override
        public void onTimeout(AsyncEvent event) {
            // Its handler completes it, and its status says how it has ended.
        }

        /** Nothing more of this response reaches the client, and Jetty reports no completion of one that has begun. */
        @Override
        public void onError(AsyncEvent event) {
            if (event.getThrowable() != null) {
                call.failed(event.getThrowable());
            }
            call.end();
        }

        /** The server forgets the listeners of an earlier dispatch. */
        @Override
        public void onStartAsync(AsyncEvent event) {
            event.getAsyncContext().addListener(this);
        }
    }
}
