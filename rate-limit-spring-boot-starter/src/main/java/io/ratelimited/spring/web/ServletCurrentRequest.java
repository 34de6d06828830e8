package io.ratelimited.spring.web;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitProperties.Headers;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpSession;
import java.security.Principal;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A servlet request as the calling code sees it. Fields are set when a limit decides, long before anything is written:
 * nothing has to be wrapped, and streams have them too.
 */
final class ServletCurrentRequest implements CurrentRequest {

    private static final String ATTRIBUTE = ServletCurrentRequest.class.getName();

    private final HttpServletRequest request;
    private final @Nullable HttpServletResponse response;
    private final ClientAddress clients;
    private final Headers style;
    private final Told told;

    /** @param response null if nobody knows it, so that no fields can be set */
    ServletCurrentRequest(
            HttpServletRequest request, @Nullable HttpServletResponse response, ClientAddress clients, Headers style) {
        this.request = request;
        this.response = response;
        this.clients = clients;
        this.style = style;
        this.told = Told.of(request);
    }

    @Override
    public @Nullable String clientIp() {
        return clients.of(request.getRemoteAddr());
    }

    @Override
    public @Nullable Principal principal() {
        return request.getUserPrincipal();
    }

    @Override
    public @Nullable String header(String name) {
        return request.getHeader(name);
    }

    @Override
    public @Nullable String session() {
        HttpSession session = request.getSession(false);
        return session == null ? null : session.getId();
    }

    @Override
    public void decided(NamedLimit limit, Limit applied, Outcome outcome, Supplier<Decision> decision) {
        if (style != Headers.NONE && limit.policy() != Policy.SHADOW) {
            decided(applied, decision.get());
        }
    }

    void decided(Limit limit, Decision decision) {
        told.fields.decided(limit, decision);
        write();
    }

    @Override
    public void applies(NamedLimit limit, Limit applied) {
        told.fields.applies(applied);
        write();
    }

    boolean knows(String limit) {
        return told.fields.knows(limit);
    }

    /** The response now belongs to another request: late decisions must not touch it. */
    void end() {
        synchronized (told) {
            told.ended = true;
        }
    }

    private void write() {
        synchronized (told) {
            if (response != null && !told.ended && !response.isCommitted()) {
                told.fields.write(style, response::setHeader);
            }
        }
    }

    /** What the response tells, kept with the request through all its dispatches. */
    private static final class Told {

        private final LimitFields fields = new LimitFields();
        private boolean ended;

        private static Told of(HttpServletRequest request) {
            if (request.getAttribute(ATTRIBUTE) instanceof Told told) {
                return told;
            }
            Told told = new Told();
            request.setAttribute(ATTRIBUTE, told);
            return told;
        }
    }
}
