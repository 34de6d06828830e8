package io.ratelimited.spring.internals.expression;

import io.ratelimited.spring.internals.request.RequestFacts;
import java.security.Principal;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The words of a request that a charge reads, read when the call begins: when the call ends, the server may use the
 * request object for another request. A header whose name is computed is read at the end, and may fail.
 */
final class CapturedRequest implements RequestFacts {

    private final RequestFacts live;
    private final Map<String, @Nullable String> headers = new HashMap<>();
    private final @Nullable String clientIp;
    private final @Nullable Principal principal;
    private final @Nullable String session;

    /**
     * Reads a request.
     *
     * @param names of the headers to read
     */
    CapturedRequest(RequestFacts live, CallExpression reader, Set<String> names) {
        this.live = live;
        this.clientIp = reader.reads("clientIp") ? live.clientIp() : null;
        this.principal = reader.reads("principal") ? live.principal() : null;
        this.session = reader.reads("session") ? live.session() : null;
        names.forEach(name -> headers.put(name, live.header(name)));
    }

    @Override
    public @Nullable String clientIp() {
        return clientIp;
    }

    @Override
    public @Nullable Principal principal() {
        return principal;
    }

    @Override
    public @Nullable String header(String name) {
        return headers.containsKey(name) ? headers.get(name) : live.header(name);
    }

    @Override
    public @Nullable String session() {
        return session;
    }
}
