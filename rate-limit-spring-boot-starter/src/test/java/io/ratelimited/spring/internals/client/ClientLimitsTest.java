package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.sun.net.httpserver.HttpServer;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.actuate.RateLimitMetricsAutoConfiguration;
import io.ratelimited.spring.actuate.RateLimitsEndpoint;
import io.ratelimited.spring.actuate.RateLimitsEndpointAutoConfiguration;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import io.ratelimited.spring.internals.overload.RecordingBackend;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.reactive.ReactiveHttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.service.HttpServiceClientPropertiesAutoConfiguration;
import org.springframework.boot.restclient.RestClientCustomizer;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestTemplateAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.service.HttpServiceClientAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.webclient.autoconfigure.WebClientAutoConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.http.client.ReactorResourceFactory;
import org.springframework.mock.http.client.MockClientHttpRequest;
import org.springframework.mock.http.client.MockClientHttpResponse;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientResponseException;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClientResponseException;
import org.springframework.web.service.annotation.GetExchange;
import org.springframework.web.service.registry.ImportHttpServices;

/** What RestClient, RestTemplate, WebClient and HTTP interface clients send, to a server on loopback, in virtual time. */
@Tag("slow")
class ClientLimitsTest {

    private final ManualTicker ticker = new ManualTicker(5, Instant.parse("2026-03-01T12:00:00Z")).autoAdvance();
    private final Map<String, String> fields = new ConcurrentHashMap<>();
    private final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
    private final AtomicInteger status = new AtomicInteger(200);
    private final ExecutorService executor = Executors.newCachedThreadPool();
    private HttpServer server;
    private String url;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(executor);
        server.createContext("/", exchange -> {
            seen.add(exchange.getRequestURI().getPath() + ":"
                    + exchange.getRequestHeaders().getFirst("X-Trace"));
            if (exchange.getRequestURI().getPath().equals("/moved")) {
                exchange.getResponseHeaders().add("Location", "/there");
                exchange.sendResponseHeaders(302, -1);
            } else {
                fields.forEach((name, value) -> exchange.getResponseHeaders().add(name, value));
                byte[] body = "answer".getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(status.get(), body.length);
                exchange.getResponseBody().write(body);
            }
            exchange.close();
        });
        server.start();
        url = "http://localhost:" + server.getAddress().getPort();
    }

    @AfterEach
    void stop() {
        server.stop(0);
        executor.shutdownNow();
    }

    /** The kinds of clients, each as an application gets it. */
    private enum Kind {
        REST_CLIENT {
            @Override
            String get(ApplicationContext context, String url) {
                return context.getBean(RestClient.Builder.class)
                        .build()
                        .get()
                        .uri(url)
                        .retrieve()
                        .body(String.class);
            }
        },
        REST_TEMPLATE {
            @Override
            String get(ApplicationContext context, String url) {
                return context.getBean(RestTemplateBuilder.class).build().getForObject(url, String.class);
            }
        },
        WEB_CLIENT {
            @Override
            String get(ApplicationContext context, String url) {
                return context.getBean(WebClient.Builder.class)
                        .build()
                        .get()
                        .uri(url)
                        .retrieve()
                        .bodyToMono(String.class)
                        .block();
            }
        },
        HTTP_INTERFACE {
            @Override
            String get(ApplicationContext context, String url) {
                return context.getBean(Partner.class).get();
            }
        };

        abstract String get(ApplicationContext context, String url);
    }

    interface Partner {
        @GetExchange("/")
        String get();

        @GetExchange("/limited")
        @RateLimited(name = "annotated", rate = "1/h")
        String limited();
    }

    @Configuration(proxyBeanMethods = false)
    @ImportHttpServices(group = "partner", types = Partner.class)
    static class Application {}

    private ApplicationContextRunner runner(String... properties) {
        return Contexts.runner(ticker)
                .withBean(ReactorResourceFactory.class, Contexts::reactorResources)
                .withConfiguration(AutoConfigurations.of(
                        ClientRateLimitAutoConfiguration.class,
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        ReactiveHttpClientAutoConfiguration.class,
                        HttpServiceClientPropertiesAutoConfiguration.class,
                        RestClientAutoConfiguration.class,
                        RestTemplateAutoConfiguration.class,
                        HttpServiceClientAutoConfiguration.class,
                        WebClientAutoConfiguration.class))
                .withUserConfiguration(Application.class)
                .withPropertyValues(
                        "rate-limit.clients.partner.hosts=localhost",
                        "spring.http.serviceclient.partner.base-url=" + url)
                .withPropertyValues(properties);
    }

    private static void assertRefused(ApplicationContext context, Kind kind, String url, String by) {
        Throwable failure = catchThrowable(() -> kind.get(context, url));
        assertThat(failure).isInstanceOfSatisfying(RateLimitExceededException.class, refusal -> {
            assertThat(refusal.limit()).isEqualTo(by);
            assertThat(refusal.decision().retryAfter()).isPositive();
        });
    }

    @ParameterizedTest
    @EnumSource
    void aLimitPacesWhatGoesOut(Kind kind) {
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=1/s",
                        "rate-limit.clients.partner.max-wait=2s")
                .run(context -> {
                    for (int i = 0; i < 4; i++) {
                        assertThat(kind.get(context, url)).isEqualTo("answer");
                    }
                    assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(3));
                });
    }

    @ParameterizedTest
    @EnumSource
    void aLimitThatFindsItselfLearnsHowTheOtherSideAnswers(Kind kind) {
        RecordingBackend backend = new RecordingBackend();
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.clients.partner.obey=",
                        "rate-limit.limits.partner.algorithm=adaptive",
                        "rate-limit.backend=recording")
                .withBean(RecordingBackend.class, () -> backend)
                .run(context -> {
                    for (int each : List.of(200, 404, 429, 503)) {
                        status.set(each);
                        Throwable failure = catchThrowable(() -> kind.get(context, url));
                        assertThat(failure == null).isEqualTo(each == 200);
                    }
                    stop();
                    assertThat(catchThrowable(() -> kind.get(context, url))).isNotNull();
                });
        assertThat(backend.ends).containsExactly("ANSWERED", "FAILED", "OVERLOADED", "OVERLOADED", "FAILED");
    }

    @Test
    void anAnswerThatBreaksOffHasEndedAsItsReaderFails() {
        RecordingBackend backend = new RecordingBackend();
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.algorithm=adaptive",
                        "rate-limit.backend=recording")
                .withBean(RecordingBackend.class, () -> backend)
                .run(context -> {
                    for (IOException failure : List.of(new SocketTimeoutException(), new IOException("reset"))) {
                        RestClient client = context.getBean(RestClient.Builder.class)
                                .requestFactory((uri, method) -> answering(failure))
                                .build();
                        assertThatThrownBy(
                                        () -> client.get().uri(url).retrieve().body(byte[].class))
                                .hasRootCause(failure);
                    }
                });
        assertThat(backend.ends).containsExactly("OVERLOADED", "FAILED");
    }

    /** A request that is answered 200 with a body that cannot be read. */
    private static MockClientHttpRequest answering(IOException failure) {
        MockClientHttpRequest request = new MockClientHttpRequest();
        request.setResponse(new MockClientHttpResponse(
                new InputStream() {
                    @Override
                    public int read() throws IOException {
                        throw failure;
                    }

                    @Override
                    public int read(byte[] bytes, int from, int length) throws IOException {
                        throw failure;
                    }
                },
                200));
        return request;
    }

    @Test
    void aKeyHasNoMeaningForALimitThatFindsItself() {
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.clients.partner.key=host",
                        "rate-limit.limits.partner.algorithm=adaptive")
                .run(context -> assertThat(context)
                        .hasFailed()
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("rate-limit.clients.partner.key")
                        .hasMessageContaining("ADAPTIVE, which has one limit for all calls"));
    }

    /** With an interceptor Spring keeps the bodies of requests in memory. */
    @Test
    void withoutClientsInThePropertiesNothingIsAdded() {
        Contexts.runner(ticker)
                .withBean(ReactorResourceFactory.class, Contexts::reactorResources)
                .withConfiguration(AutoConfigurations.of(
                        ClientRateLimitAutoConfiguration.class,
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        ReactiveHttpClientAutoConfiguration.class,
                        RestClientAutoConfiguration.class,
                        RestTemplateAutoConfiguration.class,
                        WebClientAutoConfiguration.class))
                .run(context -> {
                    context.getBean(RestClient.Builder.class)
                            .requestInterceptors(added -> assertThat(added).isEmpty());
                    assertThat(context.getBean(RestTemplateBuilder.class)
                                    .build()
                                    .getInterceptors())
                            .isEmpty();
                    context.getBean(WebClient.Builder.class)
                            .filters(added -> assertThat(added).isEmpty());
                });
    }

    @ParameterizedTest
    @EnumSource
    void theLimitRefusesWithoutTheNetwork(Kind kind) {
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=1/h",
                        "rate-limit.clients.partner.policy=reject")
                .run(context -> {
                    kind.get(context, url);
                    assertRefused(context, kind, url, "partner");
                    assertThat(seen).hasSize(1);
                    assertThat(client(context).refusedHere()).isEqualTo(1);
                });
    }

    private static LimitedClient client(ApplicationContext context) {
        return context.getBean(LimitedClients.class).all().iterator().next();
    }

    @ParameterizedTest
    @EnumSource
    void aPauseIsWaitedForOrRefusedWithoutTheNetwork(Kind kind) {
        runner("rate-limit.clients.partner.max-wait=20s", "rate-limit.clients.partner.max-pause=30s")
                .run(context -> {
                    status.set(429);
                    fields.put("Retry-After", "10");
                    assertThatThrownBy(() -> kind.get(context, url))
                            .isInstanceOfAny(RestClientResponseException.class, WebClientResponseException.class);
                    assertThat(client(context).refusedThere()).isEqualTo(1);
                    status.set(200);
                    kind.get(context, url);
                    assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(10));
                    assertThat(client(context).delayed()).isEqualTo(1);

                    status.set(503);
                    fields.put("Retry-After", "86400");
                    assertThatThrownBy(() -> kind.get(context, url)).isNotInstanceOf(RateLimitExceededException.class);
                    assertRefused(context, kind, url, "clients.partner");
                    assertThat(seen).hasSize(3);
                    assertThat(client(context).pausedKeys()).isEqualTo(1);
                    ticker.advance(Duration.ofSeconds(30));
                    status.set(200);
                    assertThat(kind.get(context, url)).isEqualTo("answer");
                });
    }

    @ParameterizedTest
    @EnumSource
    void whatIsLeftIsSpread(Kind kind) {
        runner("rate-limit.clients.partner.max-wait=1h", "rate-limit.clients.partner.max-pause=1h")
                .run(context -> {
                    fields.put("RateLimit-Policy", "\"p\";q=4;w=100");
                    fields.put("RateLimit", "\"p\";r=1;t=100");
                    kind.get(context, url);
                    fields.put("RateLimit", "\"p\";r=0;t=50");
                    kind.get(context, url);
                    assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(50));
                    fields.clear();
                    kind.get(context, url);
                    assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(100));
                });
    }

    @Test
    void obeyChoosesWhatIsObeyed() {
        runner("rate-limit.clients.partner.obey=rate-limit", "rate-limit.clients.partner.policy=reject")
                .run(context -> {
                    status.set(503);
                    fields.put("Retry-After", "10");
                    for (int i = 0; i < 2; i++) {
                        assertThatThrownBy(() -> Kind.REST_CLIENT.get(context, url))
                                .isInstanceOf(RestClientResponseException.class);
                    }
                });
    }

    @Test
    void theKeyDividesTheState() {
        runner("rate-limit.clients.partner.key=uri.path", "rate-limit.clients.partner.policy=reject")
                .run(context -> {
                    fields.put("RateLimit", "\"p\";r=0;t=100");
                    Kind.REST_CLIENT.get(context, url + "/a");
                    Kind.REST_CLIENT.get(context, url + "/b");
                    assertRefused(context, Kind.REST_CLIENT, url + "/a", "clients.partner");
                });
    }

    @Test
    void otherHostsAreLeftAlone() {
        runner("rate-limit.clients.partner.hosts=api.partner.example", "rate-limit.clients.partner.policy=reject")
                .run(context -> {
                    fields.put("RateLimit", "\"p\";r=0;t=100");
                    for (Kind kind : Kind.values()) {
                        kind.get(context, url);
                    }
                    assertThat(client(context).refusedHere()).isZero();
                });
    }

    @ParameterizedTest
    @EnumSource(names = {"REST_CLIENT", "REST_TEMPLATE", "WEB_CLIENT"})
    void placesOfCallsInFlightComeBackWhateverBecomesOfTheCall(Kind kind) {
        runner(
                        "rate-limit.clients.partner.limits=places",
                        "rate-limit.limits.places.algorithm=concurrency",
                        "rate-limit.limits.places.max-concurrent=1",
                        "rate-limit.clients.partner.policy=reject")
                .run(context -> {
                    kind.get(context, url);
                    // Nobody listens at that port.
                    assertThat(catchThrowable(() -> kind.get(context, "http://localhost:1")))
                            .isNotNull()
                            .isNotInstanceOf(RateLimitExceededException.class);
                    status.set(500);
                    assertThat(catchThrowable(() -> kind.get(context, url)))
                            .isNotNull()
                            .isNotInstanceOf(RateLimitExceededException.class);
                    assertThat(context.getBean(RateLimits.class)
                                    .peek("places", null)
                                    .remaining())
                            .isEqualTo(1);
                });
    }

    @Test
    void aCancelledExchangeGivesItsPlaceBack() {
        runner(
                        "rate-limit.clients.partner.limits=places",
                        "rate-limit.limits.places.algorithm=concurrency",
                        "rate-limit.limits.places.max-concurrent=1")
                .run(context -> {
                    WebClient client = context.getBean(WebClient.Builder.class)
                            .exchangeFunction(request -> reactor.core.publisher.Mono.never())
                            .build();
                    var call = client.get()
                            .uri(url)
                            .retrieve()
                            .bodyToMono(String.class)
                            .subscribe();
                    assertThat(context.getBean(RateLimits.class)
                                    .peek("places", null)
                                    .remaining())
                            .isZero();
                    call.dispose();
                    assertThat(context.getBean(RateLimits.class)
                                    .peek("places", null)
                                    .remaining())
                            .isEqualTo(1);
                });
    }

    @Test
    void aRedirectIsOneCall() {
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=5/h",
                        "rate-limit.clients.partner.policy=reject")
                .run(context -> {
                    Kind.REST_CLIENT.get(context, url + "/moved");
                    assertThat(seen).hasSize(2);
                    assertThat(context.getBean(RateLimits.class)
                                    .peek("partner", null)
                                    .remaining())
                            .isEqualTo(4);
                });
    }

    @Test
    void interceptorsOfTheApplicationStandOutside() {
        List<String> order = new ArrayList<>();
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=1/s",
                        "rate-limit.clients.partner.key=header('X-Trace')",
                        "rate-limit.clients.partner.policy=reject")
                .withBean(
                        "tracing",
                        RestClientCustomizer.class,
                        () -> builder -> builder.requestInterceptor((request, body, execution) -> {
                            order.add("tracing");
                            request.getHeaders().add("X-Trace", "t" + order.size());
                            return execution.execute(request, body);
                        }))
                .run(context -> {
                    // Each call has another key, which the interceptor outside has set.
                    Kind.REST_CLIENT.get(context, url);
                    Kind.REST_CLIENT.get(context, url);
                    assertThat(order).hasSize(2);
                    assertThat(seen).containsExactly("/:t1", "/:t2");
                });
    }

    @Test
    void metersAndEndpointShowTheClient() {
        SimpleMeterRegistry meters = new SimpleMeterRegistry();
        runner("management.endpoints.web.exposure.include=ratelimits", "rate-limit.clients.partner.policy=reject")
                .withConfiguration(AutoConfigurations.of(
                        RateLimitMetricsAutoConfiguration.class, RateLimitsEndpointAutoConfiguration.class))
                .withBean(MeterRegistry.class, () -> meters)
                .run(context -> {
                    context.getBeansOfType(MeterBinder.class).values().forEach(binder -> binder.bindTo(meters));
                    status.set(429);
                    fields.put("Retry-After", "10");
                    fields.put("RateLimit", "\"p\";r=0;t=10");
                    assertThat(catchThrowable(() -> Kind.REST_CLIENT.get(context, url)))
                            .isNotNull();
                    assertRefused(context, Kind.REST_CLIENT, url, "clients.partner");
                    assertThat(meters.get("rate.limit.client.calls")
                                    .tags("client", "partner", "outcome", "refused_here")
                                    .functionCounter()
                                    .count())
                            .isEqualTo(1);
                    assertThat(meters.get("rate.limit.client.paused").gauge().value())
                            .isEqualTo(1);
                    assertThat(context.getBean(RateLimitsEndpoint.class).limits())
                            .extractingByKey("clients")
                            .asString()
                            .contains("partner", "pausedFor=10.0", "refusedThere=1", "quota=p", "remaining=0");
                });
    }

    @Test
    void theAnnotationLimitsMethodsOfTheInterface() {
        runner().run(context -> {
            Partner partner = context.getBean(Partner.class);
            assertThat(partner.limited()).isEqualTo("answer");
            assertThatThrownBy(partner::limited)
                    .isInstanceOfSatisfying(
                            RateLimitExceededException.class,
                            refusal -> assertThat(refusal.limit()).isEqualTo("annotated"));
            assertThat(seen).hasSize(1);
        });
    }

    @Test
    void aMistakeNamesPropertyValueAndRemedy() {
        assertFails("rate-limit.clients.partner.limits has partnr", "rate-limit.clients.partner.limits=partnr");
        assertFails(
                "rate-limit.clients.partner.key has the unknown word clientIp",
                "rate-limit.clients.partner.key=clientIp");
        assertFails("rate-limit.clients.partner.key is not a SpEL expression", "rate-limit.clients.partner.key=host +");
        assertFails(
                "rate-limit.clients.partner.max-pause is -1s, but must be", "rate-limit.clients.partner.max-pause=-1s");
        assertFails("rate-limit.clients.partner.hosts has \"http://a\"", "rate-limit.clients.partner.hosts=http://a");
        assertFails(
                "rate-limit.clients.partner.hosts has \"…@a\"", "rate-limit.clients.partner.hosts=https://me:secret@a");
        assertFails("rate-limit.clients.two.hosts is missing", "rate-limit.clients.two.policy=wait");
        assertFails("which client 'partner' also has", "rate-limit.clients.two.hosts=LOCALHOST");
    }

    /** A file names the client my-partner, and a variable without its dash names a second one, bound to the same hosts. */
    @Test
    void aVariableWithoutTheDashesOfAClientIsToldFromTwoClientsOfOneHost() {
        String variables = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;
        runner("rate-limit.clients.my-partner.hosts=a.example")
                .withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .replace(
                                variables,
                                new SystemEnvironmentPropertySource(
                                        variables, Map.of("RATELIMIT_CLIENTS_MYPARTNER_MAXWAIT", "7s"))))
                .run(context -> {
                    FailureAnalysis analysis = Contexts.analyse(context.getStartupFailure());
                    assertThat(analysis.getDescription())
                            .contains("has a.example, which client 'my", "Spring Boot ignores the dashes");
                    assertThat(analysis.getAction())
                            .isEqualTo("Use the name 'my-partner' only. In environment variables, write each dash as _,"
                                    + " as in RATE_LIMIT_CLIENTS_MY_PARTNER_MAX_WAIT. [RL-113]");
                });
    }

    /** Clients are created before the beans that use them, so they see no annotation of those. */
    @Test
    void aLimitThatOnlyAnAnnotationDefinesHasToBeRepeatedForAClient() {
        runner("rate-limit.clients.partner.limits=annotated")
                .run(
                        context -> assertThat(Contexts.analyse(context.getStartupFailure())
                                        .getAction())
                                .isEqualTo(
                                        "Set rate-limit.limits.annotated.rate, or correct the name; routes and clients use limits of"
                                                + " properties, so repeat the values of a limit that an annotation defines. [RL-113]"));
    }

    private void assertFails(String message, String... properties) {
        runner(properties)
                .run(context ->
                        assertThat(context.getStartupFailure()).rootCause().hasMessageContaining(message));
    }
}
