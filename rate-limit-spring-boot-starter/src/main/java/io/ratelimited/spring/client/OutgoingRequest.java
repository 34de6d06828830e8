package io.ratelimited.spring.client;

import java.net.URI;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A call to another side: the root of the {@code key} of a client. Public for compiled expressions only. */
public final class OutgoingRequest {

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
        return uri.getHost() == null ? "" : uri.getHost();
    }

    /** The HTTP method, such as {@code GET}. */
    public String getMethod() {
        return method;
    }

    /** The whole address. */
    public URI getUri() {
        return uri;
    }

    /** First value of a request header. */
    public @Nullable String header(String name) {
        List<String> values = headers.apply(name);
        return values == null || values.isEmpty() ? null : values.get(0);
    }
}
