package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.internals.call.Admission;
import io.ratelimited.spring.internals.call.CallerTime;
import io.ratelimited.spring.internals.web.RequestPaths;
import io.ratelimited.spring.internals.web.Route;
import io.ratelimited.spring.internals.web.RouteLimits;
import io.ratelimited.spring.internals.web.RouteLimits.Exemption;
import io.ratelimited.spring.internals.web.RoutePatterns;
import io.ratelimited.spring.internals.web.RoutePatterns.Matching;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
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
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.web.cors.CorsUtils;

/**
 * Limits requests by route, and knows when a request has ended; once a request, not on its further dispatches. A request that
 * an earlier filter has forwarded comes here by its forward, one that it has suspended by its asynchronous dispatch, and one that
 * it or the server has rejected by the dispatch to its error page, where later filters may still check credentials. There are
 * two: before the filters of Spring Security, so that every request is counted, if there are such routes; and after them, for
 * routes that need to know the principal.
 */
public final class RateLimitFilter implements Filter, Ordered {

    /** Spring Security keeps why it denies a request, for the page to which it forwards (WebAttributes). */
    private static final String DENIED = "SPRING_SECURITY_403_EXCEPTION";

    private final boolean beforeSecurity;
    private final int order;
    private final RoutePatterns routes;
    private final RouteLimits limits;
    private final ServletRequests requests;
    private final ServletRejections refusals;
    private final ServletCors cors;
    private final ServletVersions versions;
    private final boolean noRoutes;

    /** @param beforeSecurity which routes: those before or those after Spring Security */
    public RateLimitFilter(
            boolean beforeSecurity,
            int order,
            RoutePatterns routes,
            RouteLimits limits,
            ServletRequests requests,
            ServletRejections refusals,
            ServletCors cors,
            ServletVersions versions) {
        this.beforeSecurity = beforeSecurity;
        this.order = order;
        this.routes = routes;
        this.limits = limits;
        this.requests = requests;
        this.refusals = refusals;
        this.cors = cors;
        this.versions = versions;
        this.noRoutes = routes.isEmpty(beforeSecurity);
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
        DispatcherType type = request.getDispatcherType();
        if (type != DispatcherType.REQUEST
                && (ServletRequestState.hasPassed(request, beforeSecurity) || isErrorPage(request))) {
            chain.doFilter(request, response);
            return;
        }
        if (noRoutes) {
            proceed(httpRequest, httpResponse, chain, requests.of(httpRequest, httpResponse), null, null);
            return;
        }
        RequestPaths paths = ServletPaths.of(httpRequest);
        Comparable<?> version = routes.nameVersions() ? versions.of(httpRequest) : null;
        String method = type == DispatcherType.ERROR ? failedMethod(httpRequest) : httpRequest.getMethod();
        Matching matching = routes.matching(method, paths, version, httpRequest::getHeader, beforeSecurity);
        if (beforeSecurity && matching.isEmpty()) {
            chain.doFilter(request, response);
            return;
        }
        if (!matching.isEmpty()
                && CorsUtils.isPreFlightRequest(httpRequest)
                && routes.mayLeaveOutPreflight(paths, version, httpRequest::getHeader)
                // Left out only if it ends here: a request that goes on may reach a filter or servlet that answers it.
                && cors.answersPreflight(httpRequest, httpResponse)) {
            return;
        }
        ServletCurrentRequest call = requests.of(httpRequest, httpResponse);
        Exemption exemption = null;
        Admission admission;
        try {
            List<Route> counting = matching.counting();
            if (!matching.exempting().isEmpty()) {
                exemption = limits.exempt(matching.exempting(), call)
                        .toCompletableFuture()
                        .join();
                counting = Stream.concat(counting.stream(), exemption.counting().stream())
                        .toList();
            }
            admission = counting.isEmpty() ? null : limits.enter(counting, call);
        } catch (RateLimitExceededException refusal) {
            call.stop();
            refusals.answer(httpRequest, httpResponse, refusal);
            return;
        } catch (RuntimeException ex) {
            call.stop();
            throw ex;
        }
        proceed(httpRequest, httpResponse, chain, call, admission, exemption);
    }

    /** As the client has sent it: an error page is got. */
    private static String failedMethod(HttpServletRequest request) {
        return request.getAttribute(RequestDispatcher.ERROR_METHOD) instanceof String method
                ? method
                : request.getMethod();
    }

    /**
     * Returns whether a dispatch shows the page of an error: of a request that limits have stopped, or, by a forward, of a WAR,
     * to which Spring Boot forwards, or of Spring Security for requests that it denies. Their statuses are no evidence: a filter
     * may set any and forward to what a route limits.
     */
    private static boolean isErrorPage(ServletRequest request) {
        return switch (request.getDispatcherType()) {
            case ERROR -> ServletRequestState.isStopped(request);
            case FORWARD ->
                request.getAttribute(RequestDispatcher.ERROR_STATUS_CODE) != null
                        || request.getAttribute(DENIED) != null;
            default -> false;
        };
    }

    private void proceed(
            HttpServletRequest request,
            HttpServletResponse response,
            FilterChain chain,
            ServletCurrentRequest call,
            @Nullable Admission admission,
            @Nullable Exemption exemption)
            throws IOException, ServletException {
        boolean async = false;
        // Filters between the two, such as those of Spring Security, may still answer: the outer one ends the request.
        boolean outer = call.begin(beforeSecurity);
        if (admission != null && admission.followsResult()) {
            call.followResult();
        }
        CallerTime time = admission == null ? null : admission.callerTime();
        if (admission != null) {
            call.whenComplete(() -> {
                if (time != null) {
                    time.close();
                }
                admission.end(call.endOfResponse());
            });
        }
        if (exemption != null) {
            call.atEachEnd(() -> {
                if (!call.isRejectionAnswered()) {
                    exemption.answered(response.getStatus());
                }
            });
        }
        try {
            chain.doFilter(
                    time == null ? request : new TimedRequest(request, time),
                    time == null ? response : new TimedResponse(response, time));
            async = outer && request.isAsyncStarted() && new End(call).follow(request) && call.goesOn();
        } catch (Throwable ex) {
            call.failed(ex);
            throw ex;
        } finally {
            if (outer && !async) {
                call.end();
            }
        }
    }

    /**
     * The end of a request that goes on after its first dispatch, on whichever thread it comes. That of a later dispatch
     * is seen by {@link RejectionFilter}.
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
            call.heard();
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
