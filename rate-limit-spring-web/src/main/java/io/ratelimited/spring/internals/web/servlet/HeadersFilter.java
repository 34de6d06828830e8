package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.RouteLimits;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the fields of limits on a response that is reset: by code of the application, by Spring Boot before the error page of
 * a WAR, or by a container before it dispatches to an error page. Knows the response whose headers are sent, and which threads
 * serve requests.
 */
public final class HeadersFilter implements Filter {

    /** Before all others: Spring Boot's filter of error pages, at one more, resets responses. */
    public static final int ORDER = Integer.MIN_VALUE;

    /** True in a thread that serves a request. Not removed afterwards, because each new entry of a thread is an object. */
    private static final ThreadLocal<Boolean> SERVING = new ThreadLocal<>();

    /** Names of threads that have served a request, up to their numbers: those of the pools of the servers. */
    private static final Set<String> POOLS = ConcurrentHashMap.newKeySet();

    /** A server has one or two; an executor that gives each thread a name of its own must not fill the memory. */
    private static final int MOST_POOLS = 100;

    private static final String RESPONSE = HeadersFilter.class.getName() + ".RESPONSE";

    private final RouteLimits limits;

    public HeadersFilter(RouteLimits limits) {
        this.limits = limits;
    }

    /**
     * Returns whether the calling thread is of a pool that serves requests. It need not serve one now, nor have served one:
     * the messages of a WebSocket come to any thread of the pool, without filters. The handshake, a request, was there before.
     * Virtual threads are of no pool.
     */
    static boolean isRequestThread() {
        return (SERVING.get() != null || POOLS.contains(pool())) && !VirtualThreads.isCurrent();
    }

    private static void learnPool() {
        String pool = pool();
        if (!pool.isEmpty() && POOLS.size() < MOST_POOLS) {
            POOLS.add(pool);
        }
    }

    /** The name of the calling thread up to its number; empty for one without a number, which is that of no pool. */
    private static String pool() {
        String name = Thread.currentThread().getName();
        int end = name.length();
        while (end > 0 && Character.isDigit(name.charAt(end - 1))) {
            end--;
        }
        return end == name.length() ? "" : name.substring(0, end);
    }

    /**
     * The response whose headers are sent. Servers ignore those of a response that is included in another one, and Tomcat puts the
     * included one below the wrappers of filters: only the response that the first filter has got is not affected.
     */
    static @Nullable HttpServletResponse responseWithHeaders(
            HttpServletRequest request, @Nullable HttpServletResponse response) {
        return response != null && request.getAttribute(RESPONSE) instanceof HttpServletResponse first
                ? first
                : response;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        Boolean serving = SERVING.get();
        if (Boolean.TRUE.equals(serving)) {
            // An error page within the request.
            keepFields(request, response, chain);
            return;
        }
        if (serving == null) {
            learnPool();
        }
        SERVING.set(true);
        try {
            keepFields(request, response, chain);
        } finally {
            SERVING.set(false);
        }
    }

    private void keepFields(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (limits.isIdle()
                || !(request instanceof HttpServletRequest httpRequest)
                || !(response instanceof HttpServletResponse httpResponse)) {
            chain.doFilter(request, response);
            return;
        }
        if (request.getDispatcherType() == DispatcherType.ERROR) {
            ServletRequestState.restoreFields(request, httpResponse);
        }
        request.setAttribute(RESPONSE, httpResponse);
        if (request.getDispatcherType() != DispatcherType.REQUEST) {
            ServletRequestState.dispatched(request);
        }
        FollowedRequest followed = new FollowedRequest(httpRequest);
        chain.doFilter(followed, new FollowedResponse(followed, httpResponse));
        if (request.isAsyncStarted()) {
            ServletRequestState.returned(request);
        }
    }
}
