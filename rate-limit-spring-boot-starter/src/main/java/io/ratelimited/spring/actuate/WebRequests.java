package io.ratelimited.spring.actuate;

import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.security.Principal;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.endpoint.EndpointId;
import org.springframework.boot.actuate.endpoint.InvocationContext;
import org.springframework.boot.actuate.endpoint.OperationType;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvoker;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvokerAdvisor;
import org.springframework.boot.actuate.endpoint.invoke.OperationParameters;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.WebServerNamespace;

/**
 * The endpoint over HTTP: name and key in the path, all members of a body as they are, 404 for a limit that does not exist,
 * 400 for an invalid value, 503 for a change that a backend could not make. Paths are {@code /{name}} and
 * {@code /{name}/{key}}; a key with empty path segments or an encoded slash, which servers refuse or drop, is given as
 * {@code ?key=}.
 *
 * <p>Spring Boot has members of a body and parameters of a query in the place of path variables of the same name, so that
 * a request could change another limit than its path names. The path is an array, which no member or parameter can be: any
 * other value is refused.
 */
record WebRequests(ObjectProvider<RateLimitsEndpoint> endpoint, LimitRegistry registry)
        implements OperationInvokerAdvisor {

    private static final EndpointId ENDPOINT = EndpointId.of("ratelimits");
    /** The parameter of the operations that has the path. */
    private static final String PATH = "name";

    private static final String KEY = "key";

    /** The parameter that Spring Security adds to the address to which it returns after a login. */
    private static final String CONTINUE = "continue";

    @Override
    public OperationInvoker apply(
            EndpointId id, OperationType operation, OperationParameters parameters, OperationInvoker invoker) {
        return id.equals(ENDPOINT) && parameters.hasParameters()
                ? context -> isOfWeb(context)
                        ? answer(operation, context.getArguments(), caller(context))
                        : invoker.invoke(context)
                : invoker;
    }

    /** JMX names no server. */
    private static boolean isOfWeb(InvocationContext context) {
        return context.canResolve(WebServerNamespace.class);
    }

    private static @Nullable Principal caller(InvocationContext context) {
        SecurityContext security = context.resolveArgument(SecurityContext.class);
        return security == null ? null : security.getPrincipal();
    }

    private @Nullable Object answer(
            OperationType operation, Map<String, Object> arguments, @Nullable Principal caller) {
        if (!(arguments.get(PATH) instanceof String[] path)) {
            return failure(
                    WebEndpointResponse.STATUS_BAD_REQUEST,
                    "a limit has no [" + PATH + "]: the path names the limit; nothing was changed");
        }
        Map<String, Object> members = new HashMap<>(arguments);
        members.remove(PATH);
        // A member of a body must not choose the caller.
        Object key = operation == OperationType.WRITE ? null : members.remove(KEY);
        if (operation != OperationType.WRITE) {
            members.remove(CONTINUE);
            if (!members.isEmpty()) {
                return failure(
                        WebEndpointResponse.STATUS_BAD_REQUEST,
                        "a query has no " + new TreeSet<>(members.keySet()) + ", but only [" + KEY
                                + "]; nothing was changed");
            }
        }
        if (key != null && !(key instanceof String)) {
            return failure(
                    WebEndpointResponse.STATUS_BAD_REQUEST,
                    "the query has the keys " + key + ": give one key; nothing was changed");
        }
        Target target;
        try {
            target = target(path, (String) key);
        } catch (IllegalArgumentException ex) {
            return failure(WebEndpointResponse.STATUS_NOT_FOUND, String.valueOf(ex.getMessage()));
        }
        try {
            return switch (operation) {
                case READ -> endpoint.getObject().limit(target.name, target.key);
                case WRITE -> endpoint.getObject().update(target.name, target.key, members, caller);
                case DELETE -> {
                    endpoint.getObject().forget(target.name, target.key, caller);
                    yield null;
                }
            };
        } catch (IllegalArgumentException ex) {
            return failure(WebEndpointResponse.STATUS_BAD_REQUEST, String.valueOf(ex.getMessage()));
        } catch (RuntimeException ex) {
            if (operation == OperationType.READ) {
                throw ex;
            }
            // The backend, and so its exception, is not known here.
            String done = operation == OperationType.DELETE ? "forgotten" : "changed";
            return failure(
                    WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE,
                    "it is unknown whether anything was " + done + ": " + ex.getMessage()
                            + ". Try again when the backend is available");
        }
    }

    /**
     * The limit and the key that a path names. The name is the longest beginning of the path that is the name of a limit,
     * since names and keys may have slashes.
     *
     * @param key from the query
     * @throws IllegalArgumentException when there is no such limit
     */
    private Target target(String[] path, @Nullable String key) {
        for (int end = path.length; end > 0; end--) {
            String name = join(path, 0, end);
            try {
                registry.get(name);
                String rest = end < path.length ? join(path, end, path.length) : null;
                return new Target(name, rest != null ? rest : key);
            } catch (IllegalArgumentException ex) {
                if (end == 1) {
                    throw ex;
                }
            }
        }
        throw new IllegalArgumentException("the path names no rate limit");
    }

    private static String join(String[] path, int from, int to) {
        return String.join("/", Arrays.copyOfRange(path, from, to));
    }

    private static WebEndpointResponse<Map<String, Object>> failure(int status, String message) {
        return new WebEndpointResponse<>(Map.of("error", message), status);
    }

    private record Target(String name, @Nullable String key) {}
}
