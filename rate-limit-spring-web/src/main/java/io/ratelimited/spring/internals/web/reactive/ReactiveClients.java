package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.spring.internals.web.ClientAddress;
import io.ratelimited.spring.internals.web.TrustedProxies;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.reactive.HttpHandler;
import org.springframework.http.server.reactive.ServerHttpRequest;
import reactor.util.context.ContextView;

/**
 * Finds the address of the client of a WebFlux request.
 *
 * @param proxies null when none is trusted: the client is the one that the server has resolved
 * @param untrusted sees the requests in that case
 */
public record ReactiveClients(
        ClientAddress addresses, @Nullable TrustedProxies proxies, TrustedProxies.Untrusted untrusted) {

    /** Key of the request in the Reactor context, as the server has read it. */
    private static final String RAW = ReactiveClients.class.getName();

    /** Keeps requests as they came, before anything hides their forwarding headers. */
    public static HttpHandler keepingRaw(HttpHandler handler) {
        return (request, response) ->
                handler.handle(request, response).contextWrite(context -> context.put(RAW, request));
    }

    static @Nullable ServerHttpRequest raw(ContextView context) {
        return context.getOrDefault(RAW, null);
    }

    /**
     * The client of a request.
     *
     * @throws IllegalStateException when proxies are trusted and nobody knows how the request came
     */
    @Nullable
    String of(ServerHttpRequest request, @Nullable ServerHttpRequest raw) {
        if (proxies == null) {
            untrusted.seen(request.getHeaders()::getFirst, () -> false);
            return addresses.of(request.getRemoteAddress());
        }
        if (raw == null) {
            throw new IllegalStateException(
                    "clientIp with rate-limit.http.trusted-proxies needs a request that has passed"
                            + " the HttpHandler of the application");
        }
        return addresses.of(proxies.client(
                address(raw.getRemoteAddress()), lines(raw, "X-Forwarded-For"), lines(raw, "Forwarded")));
    }

    private static @Nullable InetAddress address(@Nullable InetSocketAddress socket) {
        if (socket == null) {
            return null;
        }
        InetAddress address = socket.getAddress();
        return address == null ? ClientAddress.parse(socket.getHostString()) : address;
    }

    private static List<String> lines(ServerHttpRequest request, String header) {
        List<String> lines = request.getHeaders().get(header);
        return lines == null ? List.of() : lines;
    }
}
