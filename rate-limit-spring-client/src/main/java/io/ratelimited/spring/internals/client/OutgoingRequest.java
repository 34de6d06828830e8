package io.ratelimited.spring.internals.client;

import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A call to another side: the root of the {@code key} of a client. Public for compiled expressions only. */
public final class OutgoingRequest {

    /**
     * The authority of an address whose host has an underscore, as names of containers do: {@link URI} reads no host there.
     */
    private static final Pattern AUTHORITY = Pattern.compile("(?:.*@)?([^@:]+)(?::(\\d{0,5}))?");

    private static final Map<String, Integer> PORTS = Map.of("http", 80, "https", 443);

    private final String method;
    private final URI uri;
    private final Function<String, @Nullable List<String>> headers;

    /** @param headers the values of a field by its name */
    OutgoingRequest(String method, URI uri, Function<String, @Nullable List<String>> headers) {
        this.method = method;
        this.uri = uri;
        this.headers = headers;
    }

    /** The host that is called; empty for an address without one. */
    public String getHost() {
        String host = host(uri);
        return host == null ? "" : host;
    }

    /** The host of an address as it is written; null for an address without one. */
    static @Nullable String host(URI uri) {
        Matcher authority = authority(uri);
        return authority == null ? uri.getHost() : authority.group(1);
    }

    /** The port that an address means; -1 if it does not say. */
    static int port(URI uri) {
        Matcher authority = authority(uri);
        String written = authority == null ? null : authority.group(2);
        int port = written == null || written.isEmpty() ? uri.getPort() : Integer.parseInt(written);
        String scheme = uri.getScheme() == null ? "" : uri.getScheme().toLowerCase(Locale.ROOT);
        return port < 0 ? PORTS.getOrDefault(scheme, -1) : port;
    }

    /** Reads the authority if {@link URI} has not read it. */
    private static @Nullable Matcher authority(URI uri) {
        if (uri.getHost() != null || uri.getRawAuthority() == null) {
            return null;
        }
        Matcher authority = AUTHORITY.matcher(uri.getRawAuthority());
        return authority.matches() ? authority : null;
    }

    /** The HTTP method, such as {@code GET}. */
    public String getMethod() {
        return method;
    }

    /** The whole address. */
    public URI getUri() {
        return uri;
    }

    /** The host, the path and the method: what services have quotas of. */
    String place() {
        String path = uri.getRawPath() == null ? "" : uri.getRawPath();
        return getHost().toLowerCase(Locale.ROOT) + ":" + port(uri)
                + (path.endsWith("/") ? path.substring(0, path.length() - 1) : path) + "/" + method;
    }

    /** First value of a request header. */
    public @Nullable String header(String name) {
        List<String> values = headers.apply(name);
        return values == null || values.isEmpty() ? null : values.get(0);
    }
}
