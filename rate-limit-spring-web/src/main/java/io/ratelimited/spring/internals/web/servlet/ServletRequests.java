package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.web.ClientAddress;
import io.ratelimited.spring.internals.web.LimitHeaders;
import io.ratelimited.spring.internals.web.TrustedProxies;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/** Finds the servlet request of the calling thread where Spring keeps it. */
public final class ServletRequests implements CurrentRequest.Source {

    private final ServletClients clients;
    private final LimitHeaders.Style style;
    private volatile boolean readsClientIp;

    /** @param proxies null if none is trusted */
    public ServletRequests(ClientAddress address, @Nullable TrustedProxies proxies, LimitHeaders.Style style) {
        this.clients = new ServletClients(address, proxies, new TrustedProxies.Untrusted());
        this.style = style;
    }

    @Override
    public void prepare(Predicate<String> reads) {
        if (reads.test("clientIp")) {
            readsClientIp = true;
        }
    }

    /** Returns whether any limit reads the address of clients. */
    public boolean readClientIp() {
        return readsClientIp;
    }

    public LimitHeaders.Style style() {
        return style;
    }

    /** Null when none is trusted. */
    @Nullable
    public TrustedProxies proxies() {
        return clients.proxies();
    }

    /** Reports requests that have passed a proxy, though none is trusted. */
    public void watchForProxies() {
        clients.untrusted().watch();
    }

    @Override
    public @Nullable CurrentRequest current() {
        if (!(RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes attributes)) {
            return null;
        }
        try {
            return of(attributes.getRequest(), attributes.getResponse());
        } catch (IllegalStateException ex) {
            // The thread has outlived the request whose attributes it holds.
            return null;
        }
    }

    @Override
    public boolean isRequestThread() {
        return HeadersFilter.isRequestThread();
    }

    ServletCurrentRequest of(HttpServletRequest request, @Nullable HttpServletResponse response) {
        return new ServletCurrentRequest(request, response, clients, style);
    }
}
