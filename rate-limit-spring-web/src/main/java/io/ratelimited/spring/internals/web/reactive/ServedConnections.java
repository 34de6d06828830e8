package io.ratelimited.spring.internals.web.reactive;

import io.netty.channel.EventLoop;
import java.io.IOException;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpRequestDecorator;
import org.springframework.util.ClassUtils;
import reactor.netty.http.server.HttpServerRequest;

/** Looks at the connection of a request, where the server is Reactor Netty. */
final class ServedConnections {

    private static final boolean REACTOR_NETTY = ClassUtils.isPresent(
            "reactor.netty.http.server.HttpServerRequest", ServedConnections.class.getClassLoader());

    private ServedConnections() {}

    /**
     * Returns the event loop of a request.
     *
     * @param request as the server or a filter made it
     * @return runs a task at once if it is called on that event loop; null for another server
     */
    static @Nullable Executor eventLoop(ServerHttpRequest request) {
        return REACTOR_NETTY ? ReactorNetty.eventLoop(request) : null;
    }

    /**
     * Returns whether the client of a request has disconnected, so that reads of its body fail. Reactor Netty reports that
     * failure before it cancels the request.
     *
     * @param request as the server or a filter made it
     * @param failure that may come of it
     * @return false for another server
     */
    static boolean isLost(ServerHttpRequest request, Throwable failure) {
        return REACTOR_NETTY && ReactorNetty.isLost(request, failure);
    }

    /** Loaded only where Reactor Netty is. */
    private static final class ReactorNetty {

        private static @Nullable Executor eventLoop(ServerHttpRequest request) {
            if (!(nativeRequest(request) instanceof HttpServerRequest served)) {
                return null;
            }
            EventLoop[] found = new EventLoop[1];
            served.withConnection(connection -> found[0] = connection.channel().eventLoop());
            EventLoop loop = found[0];
            return task -> {
                if (loop.inEventLoop()) {
                    task.run();
                } else {
                    loop.execute(task);
                }
            };
        }

        private static boolean isLost(ServerHttpRequest request, Throwable failure) {
            if (!(nativeRequest(request) instanceof HttpServerRequest served)) {
                return false;
            }
            boolean[] found = new boolean[1];
            // A reset is reported before the channel is closed: until then, the connection is only not to be used
            // again.
            served.withConnection(connection -> found[0] = !connection.channel().isActive()
                    || (!connection.isPersistent()
                            && NestedExceptionUtils.getMostSpecificCause(failure) instanceof IOException));
            return found[0];
        }

        private static @Nullable Object nativeRequest(ServerHttpRequest request) {
            try {
                return ServerHttpRequestDecorator.getNativeRequest(request);
            } catch (IllegalStateException | IllegalArgumentException ex) {
                // That of a test, or one that hides what it is made of.
                return null;
            }
        }
    }
}
