package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.RequestPaths;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.http.HttpServletMapping;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.MappingMatch;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.RequestPath;
import org.springframework.web.util.ServletRequestPathUtils;

/** Reads the path of a servlet request in all the ways in which a handler may be reached. */
final class ServletPaths {

    private ServletPaths() {}

    static RequestPaths of(HttpServletRequest request) {
        if (request.getDispatcherType() == DispatcherType.ERROR
                && request.getAttribute(RequestDispatcher.ERROR_REQUEST_URI) instanceof String failed) {
            return new RequestPaths(
                    RequestPaths.readings(sent(failed, request.getContextPath()), null), List.of(), null);
        }
        String servlet = request.getServletPath();
        String rest = request.getPathInfo();
        String decoded = rest == null ? servlet : servlet + rest;
        List<PathContainer> inApplication = RequestPaths.readings(
                sent(request.getRequestURI(), request.getContextPath()), decoded.isEmpty() ? null : decoded);
        HttpServletMapping mapping = request.getHttpServletMapping();
        if (servlet.isEmpty() || mapping.getMappingMatch() != MappingMatch.PATH) {
            return new RequestPaths(inApplication, List.of(), null);
        }
        return new RequestPaths(
                inApplication,
                RequestPaths.readings(sentWithin(request), rest == null ? "/" : rest),
                ServletHandlers.readsPathsWithin(request.getServletContext(), mapping.getServletName())
                        ? servlet
                        : null);
    }

    /** The path as it was sent; null where the server has found its context path in a spelling that Spring refuses. */
    private static @Nullable PathContainer sent(String uri, String context) {
        try {
            return RequestPath.parse(uri, context).pathWithinApplication();
        } catch (IllegalArgumentException ex) {
            return null;
        }
    }

    /** The path within the servlet, likewise. */
    private static @Nullable PathContainer sentWithin(HttpServletRequest request) {
        try {
            return ServletRequestPathUtils.parse(request).pathWithinApplication();
        } catch (IllegalArgumentException ex) {
            return null;
        }
    }
}
