package io.ratelimited.spring.internals.web;

import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Recognizes what servers throw when they read from a client that has disconnected, or write to one. Not by messages, nor by
 * exceptions of Java or of Jetty, whose client throws the same: a backend of the application fails with them while the client
 * is still there.
 */
public final class ClientDisconnects {

    private static final int DEEPEST = 32;

    /** Supertypes, by name because the servers need not be there. */
    private static final Set<String> OF_SERVERS = Set.of(
            "org.apache.catalina.connector.ClientAbortException",
            "org.springframework.web.context.request.async.AsyncRequestNotUsableException");

    private ClientDisconnects() {}

    /** Returns whether a server has thrown the failure or one of its causes. */
    public static boolean isCauseOf(Throwable failure) {
        @Nullable Throwable cause = failure;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (isOfServer(cause.getClass())) {
                return true;
            }
        }
        return false;
    }

    private static boolean isOfServer(Class<?> thrown) {
        for (Class<?> type = thrown; type != null; type = type.getSuperclass()) {
            if (OF_SERVERS.contains(type.getName())) {
                return true;
            }
        }
        return false;
    }
}
