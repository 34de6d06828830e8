package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Threads;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.ServletContext;
import jakarta.websocket.DeploymentException;
import jakarta.websocket.OnMessage;
import jakarta.websocket.server.ServerContainer;
import jakarta.websocket.server.ServerEndpoint;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.net.http.WebSocketHandshakeException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.reactive.config.WebFluxConfigurer;
import org.springframework.web.reactive.handler.SimpleUrlHandlerMapping;
import org.springframework.web.reactive.socket.WebSocketHandler;
import org.springframework.web.reactive.socket.server.WebSocketService;
import org.springframework.web.reactive.socket.server.support.HandshakeWebSocketService;
import org.springframework.web.reactive.socket.server.upgrade.ReactorNettyRequestUpgradeStrategy;

/** A route counts the handshake of a WebSocket, which is a request that ends then, and none of its messages. */
@Tag("slow")
class WebSocketRoutesTest {

    private static final String[] ROUTE = {
        "rate-limit.limits.sockets.rate=1/h",
        "rate-limit.limits.open.algorithm=concurrency",
        "rate-limit.limits.open.max-concurrent=1",
        "rate-limit.routes[0].path=/socket",
        "rate-limit.routes[0].limits=sockets,open"
    };

    @ParameterizedTest
    @EnumSource
    void aRouteCountsHandshakesAndNoMessages(Kind kind) throws Exception {
        Class<?> application = kind == Kind.REACTOR_NETTY ? Reactive.class : Servlet.class;
        try (RunningServer server = kind.start(List.of(application), ROUTE);
                Client client = new Client(server)) {
            for (String message : List.of("one", "two", "three")) {
                // The echo may be there before the end of this is known, and until then nothing else is sent.
                client.socket.sendText(message, true).join();
                assertThat(client.received.poll(20, TimeUnit.SECONDS)).isEqualTo(message);
            }
            assertThatThrownBy(() -> new Client(server))
                    .isInstanceOf(CompletionException.class)
                    .cause()
                    .isInstanceOfSatisfying(
                            WebSocketHandshakeException.class,
                            rejected -> assertThat(rejected.getResponse().statusCode())
                                    .isEqualTo(429));
            RateLimits limits = server.context.getBean(RateLimits.class);
            Threads.untilAsserted(
                    () -> assertThat(limits.peek("open", null).remaining()).isEqualTo(1));
        }
    }

    static final class Client implements AutoCloseable, WebSocket.Listener {

        final LinkedBlockingQueue<String> received = new LinkedBlockingQueue<>();
        final WebSocket socket;

        Client(RunningServer server) {
            socket = HttpClient.newHttpClient()
                    .newWebSocketBuilder()
                    .buildAsync(
                            URI.create("ws://localhost:"
                                    + server.context.getEnvironment().getRequiredProperty("local.server.port")
                                    + "/socket"),
                            this)
                    .join();
        }

        @Override
        public CompletionStage<?> onText(WebSocket socket, CharSequence text, boolean last) {
            received.add(text.toString());
            socket.request(1);
            return null;
        }

        @Override
        public void close() {
            socket.abort();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Reactive implements WebFluxConfigurer {

        /** Spring takes the first server that it finds on the class path. */
        @Override
        public WebSocketService getWebSocketService() {
            return new HandshakeWebSocketService(new ReactorNettyRequestUpgradeStrategy());
        }

        @Bean
        SimpleUrlHandlerMapping sockets() {
            WebSocketHandler echo = session ->
                    session.send(session.receive().map(message -> session.textMessage(message.getPayloadAsText())));
            return new SimpleUrlHandlerMapping(Map.of("/socket", echo), -1);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Servlet {

        @Bean
        SmartInitializingSingleton sockets(ServletContext servlets) {
            return () -> {
                try {
                    ((ServerContainer) servlets.getAttribute(ServerContainer.class.getName())).addEndpoint(Echo.class);
                } catch (DeploymentException ex) {
                    throw new IllegalStateException(ex);
                }
            };
        }
    }

    /** Annotated, so that the server calls it by itself. */
    @ServerEndpoint("/socket")
    public static class Echo {

        @OnMessage
        public String echo(String message) {
            return message;
        }
    }
}
