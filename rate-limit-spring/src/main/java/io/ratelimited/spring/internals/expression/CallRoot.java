package io.ratelimited.spring.internals.expression;

import io.ratelimited.spring.internals.request.RequestFacts;
import java.lang.reflect.Method;
import java.security.Principal;
import org.jspecify.annotations.Nullable;

/** Root of the expressions of a limit: the names that need no {@code #}. Public for compiled expressions only. */
public final class CallRoot {

    private final Method method;
    private final @Nullable Object target;
    private final @Nullable Object[] args;
    private final @Nullable RequestFacts request;

    CallRoot(Method method, @Nullable Object target, @Nullable Object[] args, @Nullable RequestFacts request) {
        this.method = method;
        this.target = target;
        this.args = args;
        this.request = request;
    }

    /** The called method. */
    public Method getMethod() {
        return method;
    }

    /** The called object. */
    public @Nullable Object getTarget() {
        return target;
    }

    /** The arguments. */
    public @Nullable Object[] getArgs() {
        return args;
    }

    /** Address of the client. */
    public @Nullable String getClientIp() {
        return web("clientIp").clientIp();
    }

    /** The authenticated caller. */
    public @Nullable Principal getPrincipal() {
        // A message of a WebSocket has no request on its thread, and the security context of its handshake.
        return request == null && CallerNames.isKnownToThread()
                ? CallerNames.ofThread()
                : web("principal").principal();
    }

    /** Id of the session, if there is one. */
    public @Nullable String getSession() {
        return web("session").session();
    }

    /** First value of a request header. */
    public @Nullable String header(String name) {
        return web("header('" + name + "')").header(name);
    }

    private RequestFacts web(String word) {
        if (request == null) {
            throw notInRequest(word);
        }
        return request;
    }

    /** The failure to read a word of requests in a call that is not part of one; short enough for a message that quotes it. */
    static IllegalStateException notInRequest(String word) {
        return new IllegalStateException(
                word + " is only known in a request. Use an argument such as #user; on WebFlux, return a Mono, or add"
                        + " io.micrometer:context-propagation with spring.reactor.context-propagation: auto");
    }
}
