package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.internals.client.ClientCall.Responder;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatusCode;

/**
 * A request of a limited call: the first, or one that a redirect asks for, as browsers understand it (RFC 9110, 15.4). They are
 * followed on this side of the HTTP library, so that it is known which host has responded. Immutable.
 *
 * @param home the address of the first request
 * @param redirects how many led here
 * @param hasBody whether the body of the first request is sent
 * @param hasCredentials whether the credentials of the first request are sent: no redirect has left its host
 */
record Hop(HttpMethod method, URI uri, URI home, int redirects, boolean hasBody, boolean hasCredentials) {

    private static final int MOST = 20;
    private static final int HTTP = 80;
    private static final int MOVED_PERMANENTLY = 301;
    private static final int FOUND = 302;
    private static final int SEE_OTHER = 303;
    private static final Set<Integer> FOLLOWED = Set.of(MOVED_PERMANENTLY, FOUND, SEE_OTHER, 307, 308);
    private static final List<String> CREDENTIALS =
            List.of(HttpHeaders.AUTHORIZATION, HttpHeaders.COOKIE, HttpHeaders.PROXY_AUTHORIZATION, HttpHeaders.HOST);
    /** Characters that servers write into addresses, although none may have them. */
    private static final Pattern ILLEGAL = Pattern.compile("[\\x00-\\x20\"<>\\\\^`{|}\\x7f]");

    static Hop first(HttpMethod method, URI uri) {
        return new Hop(method, uri, uri, 0, true, true);
    }

    /** The request that a response asks for; null if the response is the last, or cannot be followed. */
    @Nullable
    Hop next(HttpStatusCode status, HttpHeaders response) {
        String location = FOLLOWED.contains(status.value()) ? response.getFirst(HttpHeaders.LOCATION) : null;
        URI target = location == null || redirects == MOST ? null : target(location);
        if (target == null) {
            return null;
        }
        boolean isPost = method.equals(HttpMethod.POST);
        boolean gets = status.value() == SEE_OTHER
                || (isPost && (status.value() == MOVED_PERMANENTLY || status.value() == FOUND));
        return new Hop(
                gets && !method.equals(HttpMethod.HEAD) ? HttpMethod.GET : method,
                target,
                home,
                redirects + 1,
                hasBody && !gets,
                hasCredentials && trusts(uri, target));
    }

    private @Nullable URI target(String location) {
        String text = ILLEGAL.matcher(location.strip().replaceFirst("#.*", ""))
                .replaceAll(
                        illegal -> String.format("%%%02X", (int) illegal.group().charAt(0)));
        if (text.isEmpty()) {
            return null;
        }
        URI base = uri.getRawPath() == null || uri.getRawPath().isEmpty() ? uri.resolve("/") : uri;
        URI target;
        try {
            // URI would resolve a query alone against the directory.
            target = base.resolve(text.startsWith("?") ? base.getRawPath() + text : text);
        } catch (IllegalArgumentException ex) {
            return null;
        }
        boolean isSafe = scheme(target).equals("https")
                || (scheme(target).equals("http") && !scheme(uri).equals("https"));
        return isSafe && OutgoingRequest.host(target) != null ? target : null;
    }

    /** Removes from the header fields of the first request what this one does not send. */
    void reduce(HttpHeaders headers) {
        if (!hasBody) {
            headers.remove(HttpHeaders.TRANSFER_ENCODING);
            List.copyOf(headers.headerNames()).stream()
                    .filter(name -> name.toLowerCase(Locale.ROOT).startsWith("content-"))
                    .forEach(headers::remove);
        }
        if (!hasCredentials) {
            CREDENTIALS.forEach(headers::remove);
        }
    }

    /**
     * Returns who is asked for the client that makes the call. The host of the first request is that of the client, whatever a
     * load balancer has made of its name.
     */
    Responder responder(ClientCall call, LimitedClients clients) {
        return redirects == 0 ? Responder.CALLED : responder(home, uri, call, clients);
    }

    /** Returns who is asked behind a redirect from one address to another. */
    static Responder responder(URI home, URI uri, ClientCall call, LimitedClients clients) {
        if (isAt(home, uri) || trusts(home, uri)) {
            return Responder.SAME_HOST;
        }
        return call.isOf(clients.of(uri)) ? Responder.OWN_HOST : Responder.FOREIGN;
    }

    /** Returns whether an address is of the same origin, or the encrypted one of the same host. */
    private static boolean trusts(URI uri, URI target) {
        return scheme(uri).equals(scheme(target))
                ? isAt(uri, target)
                : isAt(URI.create("https://" + OutgoingRequest.host(uri)), target) && OutgoingRequest.port(uri) == HTTP;
    }

    private static boolean isAt(URI one, URI other) {
        return String.valueOf(OutgoingRequest.host(one)).equalsIgnoreCase(OutgoingRequest.host(other))
                && OutgoingRequest.port(one) == OutgoingRequest.port(other);
    }

    private static String scheme(URI uri) {
        return String.valueOf(uri.getScheme()).toLowerCase(Locale.ROOT);
    }
}
