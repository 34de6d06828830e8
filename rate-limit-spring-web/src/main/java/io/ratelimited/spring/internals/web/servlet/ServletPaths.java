package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.RequestPaths;
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
        String servlet = request.getServletPath();
        String rest = request.getPathInfo();
        String decoded = rest == null ? servlet : servlet + rest;
        List<PathContainer> inApplication =
                RequestPaths.readings(sent(request, false), decoded.isEmpty() ? null : decoded);
        HttpServletMapping mapping = request.getHttpServletMapping();
        if (servlet.isEmpty() || mapping.getMappingMatch() != MappingMatch.PATH) {
            return new RequestPaths(inApplication, List.of(), null);
        }
        return new RequestPaths(
                inApplication,
                RequestPaths.readings(sent(request, true), rest == null ? "/" : rest),
                ServletHandlers.readsPathsWithin(request.getServletContext(), mapping.getServletName())
                        ? servlet
                        : null);
    }

    /** The path as it was sent; null where the server has found its context path in a spelling that Spring refuses. */
    private static @Nullable PathContainer sent(HttpServletRequest request, boolean inServlet) {
        try {
            RequestPath path = inServlet
                    ? ServletRequestPathUtils.parse(request)
                    : RequestPath.parse(request.getRequestURI(), request.getContextPath());
            return path.pathWithinApplication();
        } catch (IllegalArgumentException ex) {
            return null;
        }
    }
}
