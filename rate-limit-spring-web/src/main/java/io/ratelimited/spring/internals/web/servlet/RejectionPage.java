package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.Rejection;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContext;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextImpl;
import org.springframework.util.ClassUtils;

/**
 * The error page of the application for a refusal. The container dispatches to it, and the dispatcher servlet is called
 * without further filters: Spring Security would send readers who may not see the page to the login.
 */
public final class RejectionPage {

    public static final String ATTRIBUTE = RejectionPage.class.getName();
    private static final boolean SECURITY = ClassUtils.isPresent(
            "org.springframework.security.core.context.SecurityContextHolder", RejectionPage.class.getClassLoader());

    private final Pages pages;

    public RejectionPage(Pages pages) {
        this.pages = pages;
    }

    /** Shows the error pages of a server. */
    public interface Pages {

        /** Writes the pages of a servlet: the dispatcher servlet of a name; null if there is none, or no Spring MVC. */
        @Nullable
        FilterChain of(String servlet);
    }

    /** For a server that has no page for browsers: the problem, as others get it. */
    public static Pages none(ServletRejections refusals) {
        return servlet -> (request, response) -> refusals.write(
                (HttpServletRequest) request,
                (HttpServletResponse) response,
                Objects.requireNonNull(shownFor(request.getAttribute(ATTRIBUTE))));
    }

    /** Asks the container for the page. */
    static void request(HttpServletRequest request, HttpServletResponse response, Rejection refusal)
            throws IOException {
        request.setAttribute(ATTRIBUTE, new Requested(refusal, SECURITY ? Security.current() : null));
        response.sendError(refusal.status(), refusal.detail());
    }

    /** The refusal that a page is shown for; null if it is shown for something else. */
    public static @Nullable Rejection shownFor(@Nullable Object attribute) {
        return attribute instanceof Requested requested ? requested.refusal : null;
    }

    /** Shows the page if this dispatch to an error page is for a rejection; otherwise returns false. */
    boolean show(ServletRequest request, ServletResponse response) throws IOException, ServletException {
        if (!(request instanceof HttpServletRequest httpRequest)
                || !(request.getAttribute(ATTRIBUTE) instanceof Requested requested)) {
            return false;
        }
        FilterChain target = target(httpRequest);
        if (target == null) {
            return false;
        }
        if (requested.security == null) {
            target.doFilter(request, response);
        } else {
            Security.run(requested.security, target, request, response);
        }
        return true;
    }

    /** The dispatcher servlet, if the page is one of its own: other pages are static files, which other servlets send. */
    private @Nullable FilterChain target(HttpServletRequest request) {
        return pages.of(request.getHttpServletMapping().getServletName());
    }

    /** @param security of the refused request, so that the page knows who reads it; null without Spring Security */
    private record Requested(Rejection refusal, @Nullable Object security) {}

    /** Loaded only where Spring Security is. */
    private static final class Security {

        private static SecurityContext current() {
            return SecurityContextHolder.getContext();
        }

        private static void run(Object context, FilterChain target, ServletRequest request, ServletResponse response)
                throws IOException, ServletException {
            SecurityContextHolder.setContext(withReader((SecurityContext) context));
            try {
                target.doFilter(request, response);
            } finally {
                SecurityContextHolder.clearContext();
            }
        }

        /** Pages expect a reader; before the filters of Spring Security that is nobody in particular, as for a login page. */
        private static SecurityContext withReader(SecurityContext context) {
            return context.getAuthentication() != null
                    ? context
                    : new SecurityContextImpl(new AnonymousAuthenticationToken(
                            ATTRIBUTE, "anonymousUser", AuthorityUtils.createAuthorityList("ROLE_ANONYMOUS")));
        }
    }
}
