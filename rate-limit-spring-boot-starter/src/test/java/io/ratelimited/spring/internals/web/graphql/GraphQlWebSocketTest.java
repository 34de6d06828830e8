package io.ratelimited.spring.internals.web.graphql;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.SecuredServers;
import jakarta.servlet.ServletContext;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.tomcat.websocket.server.WsSci;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.tomcat.servlet.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.graphql.data.method.annotation.Argument;
import org.springframework.graphql.data.method.annotation.QueryMapping;
import org.springframework.graphql.data.method.annotation.support.AnnotatedControllerConfigurer;
import org.springframework.graphql.execution.DataFetcherExceptionResolver;
import org.springframework.graphql.execution.DefaultExecutionGraphQlService;
import org.springframework.graphql.execution.GraphQlSource;
import org.springframework.graphql.server.WebGraphQlHandler;
import org.springframework.graphql.server.webmvc.GraphQlWebSocketHandler;
import org.springframework.http.converter.json.JacksonJsonHttpMessageConverter;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.stereotype.Controller;
import org.springframework.web.socket.server.standard.StandardWebSocketUpgradeStrategy;
import org.springframework.web.socket.server.support.DefaultHandshakeHandler;
import org.springframework.web.socket.server.support.WebSocketHandlerMapping;

/** Messages of GraphQL over a WebSocket of Spring MVC: the caller is that of the handshake, whose request has ended. */
@Tag("spring-boot")
@Tag("slow")
class GraphQlWebSocketTest {

    @ParameterizedTest
    @ValueSource(strings = {"TOMCAT", "JETTY"})
    void eachCallerHasABudgetOfItsOwnOnAllItsConnections(String server) {
        try (SecuredServers application = SecuredServers.start(server, List.of(Application.class))) {
            for (String field : List.of("plain", "listed", "joined")) {
                try (Client ann = new Client(application.port(), "ann");
                        Client annAgain = new Client(application.port(), "ann");
                        Client bob = new Client(application.port(), "bob")) {
                    assertThat(ann.ask(field)).as(field).contains("\"sold\"").doesNotContain("RATE_LIMITED");
                    assertThat(ann.ask(field)).as(field).contains("RATE_LIMITED");
                    assertThat(annAgain.ask(field)).as(field).contains("RATE_LIMITED");
                    assertThat(bob.ask(field)).as(field).contains("\"sold\"").doesNotContain("RATE_LIMITED");
                }
            }
        }
    }

    /** One connection by the protocol graphql-transport-ws. */
    private static final class Client implements WebSocket.Listener, AutoCloseable {

        private final BlockingQueue<String> messages = new LinkedBlockingQueue<>();
        private final StringBuilder part = new StringBuilder();
        private final WebSocket socket;
        private int asked;

        private Client(int port, String user) {
            String basic = Base64.getEncoder().encodeToString((user + ":secret").getBytes(StandardCharsets.US_ASCII));
            socket = HttpClient.newHttpClient()
                    .newWebSocketBuilder()
                    .header("Authorization", "Basic " + basic)
                    .subprotocols("graphql-transport-ws")
                    .buildAsync(URI.create("ws://localhost:" + port + "/graphql"), this)
                    .join();
            socket.sendText("{\"type\":\"connection_init\"}", true).join();
            assertThat(next()).contains("connection_ack");
        }

        private String ask(String field) {
            asked++;
            socket.sendText(
                            "{\"id\":\"" + asked + "\",\"type\":\"subscribe\",\"payload\":{\"query\":\"{" + field
                                    + "(region: \\\"eu\\\")}\"}}",
                            true)
                    .join();
            String answer = next();
            assertThat(next()).contains("complete");
            return answer;
        }

        private String next() {
            try {
                String message = messages.poll(1, TimeUnit.MINUTES);
                assertThat(message).isNotNull();
                return message;
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }

        @Override
        public @Nullable CompletionStage<?> onText(WebSocket from, CharSequence data, boolean last) {
            part.append(data);
            if (last) {
                messages.add(part.toString());
                part.setLength(0);
            }
            from.request(1);
            return null;
        }

        @Override
        public void close() {
            socket.abort();
        }
    }

    @Controller
    static class Shop {

        @QueryMapping
        @RateLimited(rate = "1/m", key = "principal")
        public String plain(@Argument String region) {
            return "sold";
        }

        @QueryMapping
        @RateLimited(rate = "1/m", key = "{principal, #region}")
        public String listed(@Argument String region) {
            return "sold";
        }

        @QueryMapping
        @RateLimited(rate = "1/m", key = "principal + ':' + #region")
        public String joined(@Argument String region) {
            return "sold";
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Shop.class)
    static class Application {

        private static final String SCHEMA =
                "type Query { plain(region: String): String, listed(region: String): String, joined(region: String): String }";

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        UserDetailsService users() {
            return new InMemoryUserDetailsManager(
                    User.withUsername("ann").password("{noop}secret").build(),
                    User.withUsername("bob").password("{noop}secret").build());
        }

        @Bean
        AnnotatedControllerConfigurer controllers() {
            return new AnnotatedControllerConfigurer();
        }

        /** As Spring Boot's starter for WebSocket does. */
        @Bean
        WebServerFactoryCustomizer<TomcatServletWebServerFactory> webSockets() {
            return tomcat ->
                    tomcat.addContextCustomizers(context -> context.addServletContainerInitializer(new WsSci(), null));
        }

        /** As Spring Boot's starter for GraphQL does. */
        @Bean
        WebSocketHandlerMapping graphQl(
                AnnotatedControllerConfigurer controllers,
                List<DataFetcherExceptionResolver> resolvers,
                ServletContext servlets) {
            GraphQlSource source = GraphQlSource.schemaResourceBuilder()
                    .schemaResources(new ByteArrayResource(SCHEMA.getBytes(StandardCharsets.UTF_8)))
                    .configureRuntimeWiring(controllers)
                    .exceptionResolvers(resolvers)
                    .build();
            GraphQlWebSocketHandler handler = new GraphQlWebSocketHandler(
                    WebGraphQlHandler.builder(new DefaultExecutionGraphQlService(source))
                            .build(),
                    new JacksonJsonHttpMessageConverter(),
                    Duration.ofMinutes(1));
            // Both servers are on the class path of the test.
            DefaultHandshakeHandler handshake = servlets.getServerInfo().contains("Tomcat")
                    ? new DefaultHandshakeHandler(new StandardWebSocketUpgradeStrategy())
                    : new DefaultHandshakeHandler();
            WebSocketHandlerMapping mapping = new WebSocketHandlerMapping();
            mapping.setWebSocketUpgradeMatch(true);
            mapping.setUrlMap(Map.of("/graphql", handler.initWebSocketHttpRequestHandler(handshake)));
            mapping.setOrder(-2);
            return mapping;
        }
    }
}
