package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.RequestPaths;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.http.HttpServletMapping;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.MappingMatch;
import java.util.List;
import java.util.function.Supplier;
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
                    RequestPaths.readings(sent(() -> RequestPath.parse(failed, request.getContextPath())), null),
                    List.of(),
                    null);
        }
        String servlet = request.getServletPath();
        String rest = request.getPathInfo();
        String decoded = rest == null ? servlet : servlet + rest;
        List<PathContainer> inApplication = RequestPaths.readings(
                sent(() -> RequestPath.parse(request.getRequestURI(), request.getContextPath())),
                decoded.isEmpty() ? null : decoded);
        HttpServletMapping mapping = request.getHttpServletMapping();
        if (servlet.isEmpty() || mapping.getMappingMatch() != MappingMatch.PATH) {
            return new RequestPaths(inApplication, List.of(), null);
        }
        return new RequestPaths(
                inApplication,
                RequestPaths.readings(sent(() -> ServletRequestPathUtils.parse(request)), rest == null ? "/" : rest),
                ServletHandlers.readsPathsWithin(request.getServletContext(), mapping.getServletName())
                        ? servlet
                        : null);
    }

    /** The path as it was sent; null where the server has found its context path in a spelling that Spring refuses. */
    private static @Nullable PathContainer sent(Supplier<RequestPath> parsed) {
        try {
            return parsed.get().pathWithinApplication();
        } catch (IllegalArgumentException ex) {
            return null;
        }
    }
}
