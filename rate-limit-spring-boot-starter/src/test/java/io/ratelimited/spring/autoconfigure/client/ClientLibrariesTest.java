package io.ratelimited.spring.autoconfigure.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimits;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.HttpClientSettings;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;

/**
 * What becomes of a call in flight, with each HTTP library that {@code RestClient} can use here. Another call is in flight all
 * the time: a place that came back twice would be its place.
 */
class ClientLibrariesTest {

    @SuppressWarnings("ImmutableEnumChecker") // the builders are immutable
    private enum Library {
        JDK(ClientHttpRequestFactoryBuilder.jdk()),
        JETTY(ClientHttpRequestFactoryBuilder.jetty()),
        REACTOR(ClientHttpRequestFactoryBuilder.reactor()),
        SIMPLE(ClientHttpRequestFactoryBuilder.simple());

        private final ClientHttpRequestFactoryBuilder<?> builder;

        Library(ClientHttpRequestFactoryBuilder<?> builder) {
            this.builder = builder;
        }
    }

    /** Nobody listens there. */
    private static final String NOBODY = "http://localhost:1";

    private final ExecutorService executor = Executors.newCachedThreadPool();
    private final CountDownLatch testEnds = new CountDownLatch(1);
    /** The free places when a request came, by its path. */
    private final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();

    private volatile ToLongFunction<String> places = path -> -1;
    private HttpServer server;
    private String url;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(executor);
        server.createContext("/", this::answer);
        server.start();
        url = "http://localhost:" + server.getAddress().getPort();
    }

    @AfterEach
    void stop() {
        testEnds.countDown();
        server.stop(0);
        executor.shutdownNow();
    }

    private void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        seen.add(path + " " + places.applyAsLong(path));
        try (exchange) {
            switch (path) {
                case "/moved" -> {
                    exchange.getResponseHeaders().set("Location", "/there");
                    exchange.sendResponseHeaders(302, -1);
                }
                case "/stream" -> {
                    exchange.sendResponseHeaders(200, 0);
                    exchange.getResponseBody().write("first\n".getBytes(StandardCharsets.UTF_8));
                    exchange.getResponseBody().flush();
                    awaitEnd();
                }
                case "/silent" -> awaitEnd();
                default -> exchange.sendResponseHeaders(204, -1);
            }
        }
    }

    private void awaitEnd() {
        try {
            testEnds.await();
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private static Throwable failure(RestClient client, String uri) {
        return catchThrowable(() -> client.get().uri(uri).retrieve().toBodilessEntity());
    }

    private static ClientHttpResponse open(RestClient client, String uri) {
        return client.get().uri(uri).exchange((request, response) -> response, false);
    }

    @ParameterizedTest
    @EnumSource
    void aPlaceComesBackOnceWhateverBecomesOfTheCall(Library library) {
        Contexts.runner()
                .withConfiguration(AutoConfigurations.of(
                        ClientRateLimitAutoConfiguration.class, RestClientAutoConfiguration.class))
                .withPropertyValues(
                        "rate-limit.clients.partner.hosts=localhost",
                        "rate-limit.clients.partner.limits=places",
                        "rate-limit.limits.places.algorithm=concurrency",
                        "rate-limit.limits.places.max-concurrent=3",
                        "rate-limit.clients.partner.policy=reject")
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    places = path -> limits.peek("places", null).remaining();
                    RestClient client = context.getBean(RestClient.Builder.class)
                            .requestFactory(library.builder.build())
                            .build();
                    RestClient hasty = context.getBean(RestClient.Builder.class)
                            .requestFactory(library.builder.build(
                                    HttpClientSettings.defaults().withReadTimeout(Duration.ofMillis(100))))
                            .build();
                    ClientHttpResponse other = open(client, url + "/stream");
                    // Reactor Netty subscribes on its own thread, and a body is closed only behind that.
                    assertThat(other.getBody().read()).isEqualTo('f');
                    assertThat(places.applyAsLong("")).isEqualTo(2);

                    ClientHttpResponse stream = open(client, url + "/stream");
                    InputStream body = stream.getBody();
                    assertThat(body.read()).isEqualTo('f');
                    assertThat(places.applyAsLong("")).isEqualTo(1);
                    body.close();
                    stream.close();
                    body.close();
                    assertThat(places.applyAsLong("")).as("closed early").isEqualTo(2);

                    assertThat(failure(client, NOBODY)).isInstanceOf(ResourceAccessException.class);
                    assertThat(places.applyAsLong("")).as("refused").isEqualTo(2);

                    seen.clear();
                    assertThat(failure(client, url + "/moved")).isNull();
                    assertThat(seen).containsExactly("/moved 1", "/there 1");
                    assertThat(places.applyAsLong("")).as("redirected").isEqualTo(2);

                    assertThat(failure(hasty, url + "/silent")).isInstanceOf(ResourceAccessException.class);
                    assertThat(places.applyAsLong("")).as("timed out").isEqualTo(2);

                    assertThat(catchThrowable(() -> {
                                try (ClientHttpResponse late = open(hasty, url + "/stream")) {
                                    late.getBody().readAllBytes();
                                }
                            }))
                            .isNotNull();
                    assertThat(places.applyAsLong(""))
                            .as("timed out in the body")
                            .isEqualTo(2);

                    other.getBody().close();
                    other.close();
                    assertThat(places.applyAsLong("")).isEqualTo(3);
                    assertThat(failure(client, url + "/")).isNull();
                    assertThat(places.applyAsLong("")).isEqualTo(3);
                });
    }
}
