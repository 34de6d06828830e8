package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.ClientAddress;
import io.ratelimited.spring.internals.web.TrustedProxies;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.http.HttpServletRequest;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds the address of the client of a servlet request.
 *
 * @param proxies null when none is trusted: the client is the one that the server has resolved
 * @param untrusted sees the requests in that case
 */
record ServletClients(ClientAddress addresses, @Nullable TrustedProxies proxies, TrustedProxies.Untrusted untrusted) {

    @Nullable
    String of(HttpServletRequest request) {
        if (proxies == null) {
            untrusted.seen(request::getHeader, () -> ForwardingFilters.haveChanged(request));
            return addresses.of(request.getRemoteAddr());
        }
        HttpServletRequest raw = asItCame(request);
        return addresses.of(proxies.client(
                ClientAddress.parse(raw.getRemoteAddr()), lines(raw, "X-Forwarded-For"), lines(raw, "Forwarded")));
    }

    /** Below the wrappers of filters, such as the one that hides forwarding headers. */
    private static HttpServletRequest asItCame(HttpServletRequest request) {
        ServletRequest inner = request;
        while (inner instanceof ServletRequestWrapper wrapper) {
            inner = wrapper.getRequest();
        }
        return inner instanceof HttpServletRequest http ? http : request;
    }

    private static List<String> lines(HttpServletRequest request, String header) {
        Enumeration<String> lines = request.getHeaders(header);
        return lines == null ? List.of() : Collections.list(lines);
    }
}
