package io.ratelimited.spring.internals.web.reactive;

import io.netty.channel.EventLoop;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpRequestDecorator;
import org.springframework.util.ClassUtils;
import reactor.netty.http.server.HttpServerRequest;

/** Finds the event loop that serves the connection of a request, where the server is Reactor Netty. */
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
