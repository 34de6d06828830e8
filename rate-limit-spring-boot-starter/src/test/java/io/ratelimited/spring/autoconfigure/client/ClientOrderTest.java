package io.ratelimited.spring.autoconfigure.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.client.LimitedClients;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.reactive.ReactiveHttpClientAutoConfiguration;
import org.springframework.boot.restclient.RestClientCustomizer;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.restclient.RestTemplateCustomizer;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestTemplateAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.webclient.WebClientCustomizer;
import org.springframework.boot.webclient.autoconfigure.WebClientAutoConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.http.client.ReactorResourceFactory;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.Disposable;

/** Answers that take long, and what the application puts around its calls. */
class ClientOrderTest {

    private final ManualTicker ticker = new ManualTicker(5, Instant.parse("2026-03-01T12:00:00Z")).autoAdvance();
    private final ExecutorService executor = Executors.newCachedThreadPool();
    private final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
    /** What the interceptors of the application authorize calls with, one after the other. */
    private final Queue<String> accounts = new ArrayDeque<>(List.of("a", "a", "b"));

    private final CountDownLatch streamEnds = new CountDownLatch(1);
    private HttpServer server;
    private String url;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(executor);
        server.createContext("/", exchange -> {
            seen.add(String.valueOf(exchange.getRequestHeaders().getFirst("Authorization")));
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.createContext("/stream", exchange -> {
            exchange.getResponseHeaders().set("Content-Type", "text/event-stream");
            exchange.sendResponseHeaders(200, 0);
            exchange.getResponseBody().write("data:first\n\n".getBytes(StandardCharsets.UTF_8));
            exchange.getResponseBody().flush();
            try {
                streamEnds.await();
            } catch (InterruptedException ex) {
                Thread.currentThread().interrupt();
            }
            exchange.close();
        });
        server.start();
        url = "http://localhost:" + server.getAddress().getPort();
    }

    @AfterEach
    void stop() {
        streamEnds.countDown();
        server.stop(0);
        executor.shutdownNow();
    }

    private ApplicationContextRunner runner(String... properties) {
        return Contexts.runner(ticker)
                .withBean(ReactorResourceFactory.class, Contexts::reactorResources)
                .withConfiguration(AutoConfigurations.of(
                        ClientRateLimitAutoConfiguration.class,
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        ReactiveHttpClientAutoConfiguration.class,
                        RestClientAutoConfiguration.class,
                        RestTemplateAutoConfiguration.class,
                        WebClientAutoConfiguration.class))
                // Other clients read a stream to its end when it is closed.
                .withPropertyValues(
                        "rate-limit.clients.partner.hosts=localhost", "spring.http.clients.imperative.factory=jetty")
                .withPropertyValues(properties);
    }

    private ApplicationContextRunner withTwoPlaces() {
        return runner(
                "rate-limit.clients.partner.limits=places",
                "rate-limit.limits.places.algorithm=concurrency",
                "rate-limit.limits.places.max-concurrent=2",
                "rate-limit.clients.partner.policy=reject");
    }

    private static long places(ApplicationContext context) {
        return context.getBean(RateLimits.class).peek("places", null).remaining();
    }

    @Test
    void aStreamThatIsClosedInTheMiddleGivesItsPlaceBackOnce() {
        withTwoPlaces().run(context -> {
            RestClient client = context.getBean(RestClient.Builder.class).build();
            ClientHttpResponse one = client.get().uri(url + "/stream").exchange((request, response) -> response, false);
            ClientHttpResponse other =
                    client.get().uri(url + "/stream").exchange((request, response) -> response, false);
            InputStream body = one.getBody();
            assertThat(body.readNBytes(10)).asString(StandardCharsets.UTF_8).isEqualTo("data:first");
            assertThat(places(context)).isZero();
            body.close();
            one.close();
            body.close();
            assertThat(places(context)).isEqualTo(1);
            other.close();
            other.close();
            assertThat(places(context)).isEqualTo(2);
        });
    }

    /** HTTP libraries take the connection back then, so nobody notices that the answer is not closed. */
    @Test
    void anAnswerThatIsReadToItsEndGivesItsPlaceBackOnce() {
        withTwoPlaces().run(context -> {
            RestClient client = context.getBean(RestClient.Builder.class).build();
            ClientHttpResponse one = client.get().uri(url + "/stream").exchange((request, response) -> response, false);
            ClientHttpResponse other =
                    client.get().uri(url + "/stream").exchange((request, response) -> response, false);
            streamEnds.countDown();
            one.getBody().readAllBytes();
            assertThat(places(context)).isEqualTo(1);
            InputStream body = other.getBody();
            while (body.read() >= 0) {
                assertThat(places(context)).isEqualTo(1);
            }
            assertThat(places(context)).isEqualTo(2);
            one.close();
            other.close();
            assertThat(places(context)).isEqualTo(2);
        });
    }

    @Test
    void aStreamThatIsCancelledInTheMiddleGivesItsPlaceBackOnce() {
        withTwoPlaces().run(context -> {
            WebClient client = context.getBean(WebClient.Builder.class).build();
            List<Disposable> streams = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                ConcurrentLinkedQueue<String> received = new ConcurrentLinkedQueue<>();
                streams.add(client.get()
                        .uri(url + "/stream")
                        .retrieve()
                        .bodyToFlux(String.class)
                        .subscribe(received::add));
                Threads.until(() -> received.contains("first"));
            }
            assertThat(places(context)).isZero();
            streams.get(0).dispose();
            Threads.until(() -> places(context) == 1);
            streams.get(0).dispose();
            assertThat(places(context)).isEqualTo(1);
            streamEnds.countDown();
            Threads.until(() -> places(context) == 2);
        });
    }

    /** Starts and ends, in seconds of virtual time. */
    private final class Times implements ObservationHandler<Observation.Context> {

        private final ConcurrentLinkedQueue<String> times = new ConcurrentLinkedQueue<>();

        @Override
        public boolean supportsContext(Observation.Context context) {
            return true;
        }

        @Override
        public void onStart(Observation.Context context) {
            times.add("begins at " + ticker.elapsed().toSeconds());
        }

        @Override
        public void onStop(Observation.Context context) {
            times.add("ends at " + ticker.elapsed().toSeconds());
        }
    }

    private ClientHttpResponse authorize(HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
            throws IOException {
        request.getHeaders().set("Authorization", accounts.remove());
        return execution.execute(request, body);
    }

    /** The first call takes the permit of its account; the second waits for two seconds, one of the other account does not. */
    @ParameterizedTest
    @ValueSource(strings = {"RestClient", "RestTemplate", "WebClient"})
    void headersOfTheApplicationAreThereForTheKeyAndItsObservationIncludesTheWait(String kind) {
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=1/2s",
                        "rate-limit.clients.partner.key=header('Authorization')")
                .withBean(RestClientCustomizer.class, () -> builder -> builder.requestInterceptor(this::authorize))
                .withBean(
                        RestTemplateCustomizer.class,
                        () -> template -> template.getInterceptors().add(this::authorize))
                .withBean(
                        WebClientCustomizer.class,
                        () -> builder -> builder.filter((request, next) -> next.exchange(ClientRequest.from(request)
                                .headers(headers -> headers.set("Authorization", accounts.remove()))
                                .build())))
                .run(context -> {
                    Times times = new Times();
                    ObservationRegistry observations = ObservationRegistry.create();
                    observations.observationConfig().observationHandler(times);
                    for (int i = 0; i < 3; i++) {
                        call(kind, context, observations);
                    }
                    assertThat(seen).containsExactly("a", "a", "b");
                    assertThat(times.times)
                            .containsExactly(
                                    "begins at 0", "ends at 0", "begins at 0", "ends at 2", "begins at 2", "ends at 2");
                    Map<String, Object> report = context.getBean(LimitedClients.class)
                            .all()
                            .iterator()
                            .next()
                            .report(key -> "<" + key + ">");
                    assertThat(report.get("state").toString()).contains("<a>", "<b>");
                });
    }

    private void call(String kind, ApplicationContext context, ObservationRegistry observations) {
        switch (kind) {
            case "RestClient" ->
                context.getBean(RestClient.Builder.class)
                        .observationRegistry(observations)
                        .build()
                        .get()
                        .uri(url)
                        .retrieve()
                        .toBodilessEntity();
            case "RestTemplate" -> {
                RestTemplate template =
                        context.getBean(RestTemplateBuilder.class).build();
                template.setObservationRegistry(observations);
                template.getForEntity(url, Void.class);
            }
            default ->
                context.getBean(WebClient.Builder.class)
                        .observationRegistry(observations)
                        .build()
                        .get()
                        .uri(url)
                        .retrieve()
                        .toBodilessEntity()
                        .block();
        }
    }
}
