package io.ratelimited.spring.autoconfigure.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.internals.client.FollowingConnector;
import io.ratelimited.spring.internals.client.FollowingRequestFactory;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntSupplier;
import java.util.function.ToIntFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.HttpClientSettings;
import org.springframework.boot.http.client.HttpRedirects;
import org.springframework.boot.http.client.JdkClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.autoconfigure.ClientHttpRequestFactoryBuilderCustomizer;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.reactive.ClientHttpConnectorBuilderCustomizer;
import org.springframework.boot.http.client.autoconfigure.reactive.ReactiveHttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.service.HttpServiceClientPropertiesAutoConfiguration;
import org.springframework.boot.http.client.reactive.ReactorClientHttpConnectorBuilder;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestTemplateAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.service.HttpServiceClientAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webclient.autoconfigure.WebClientAutoConfiguration;
import org.springframework.boot.webclient.autoconfigure.service.ReactiveHttpServiceClientAutoConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.ReactorResourceFactory;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;
import org.springframework.web.client.RestClientResponseException;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.client.support.RestClientHttpServiceGroupConfigurer;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClientRequestException;
import org.springframework.web.reactive.function.client.WebClientResponseException;
import org.springframework.web.reactive.function.client.support.WebClientHttpServiceGroupConfigurer;
import org.springframework.web.service.annotation.GetExchange;
import org.springframework.web.service.annotation.PostExchange;
import org.springframework.web.service.registry.HttpServiceGroup;
import org.springframework.web.service.registry.ImportHttpServices;

/**
 * One answer holds up the calls that it is about, and no others, against a partner on the loopback interface; what depends on
 * redirects with each client and HTTP library. The partner is localhost; 127.0.0.1 is another host.
 */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class OneAnswerTest {

    private static final int REJECTED = -1;

    /** The clients of Spring, with the HTTP libraries that Spring Boot can give them. */
    private enum Client {
        REST_CLIENT_JDK("imperative.factory=jdk"),
        REST_CLIENT_APACHE("imperative.factory=http-components"),
        REST_CLIENT_JETTY("imperative.factory=jetty"),
        REST_CLIENT_REACTOR("imperative.factory=reactor"),
        REST_CLIENT_SIMPLE("imperative.factory=simple"),
        REST_TEMPLATE_JDK("imperative.factory=jdk"),
        REST_TEMPLATE_APACHE("imperative.factory=http-components"),
        WEB_CLIENT_REACTOR("reactive.connector=reactor"),
        WEB_CLIENT_JDK("reactive.connector=jdk"),
        WEB_CLIENT_JETTY("reactive.connector=jetty"),
        WEB_CLIENT_APACHE("reactive.connector=http-components"),
        GROUP_JDK("imperative.factory=jdk"),
        GROUP_APACHE("imperative.factory=http-components"),
        REACTIVE_GROUP_REACTOR("reactive.connector=reactor"),
        REACTIVE_GROUP_JETTY("reactive.connector=jetty");

        private final String library;

        Client(String library) {
            this.library = "spring.http.clients." + library;
        }

        private static boolean isPost(String path) {
            return path.startsWith("/post");
        }

        /** Makes calls that yield their status, or {@link #REJECTED} if they were not sent. */
        private ToIntFunction<String> calls(ApplicationContext context, String partner) {
            if (name().contains("GROUP")) {
                Partner client = name().startsWith("REACTIVE")
                        ? context.getBean(ReactivePartner.class)
                        : context.getBean(BlockingPartner.class);
                return path -> {
                    URI uri = URI.create(partner + path);
                    try {
                        return (isPost(path) ? client.post(uri, "text") : client.get(uri))
                                .getStatusCode()
                                .value();
                    } catch (RestClientResponseException ex) {
                        return ex.getStatusCode().value();
                    } catch (WebClientResponseException ex) {
                        return ex.getStatusCode().value();
                    } catch (RateLimitExceededException ex) {
                        return REJECTED;
                    }
                };
            }
            if (name().startsWith("WEB_CLIENT")) {
                WebClient client = context.getBean(WebClient.Builder.class).build();
                return path -> (isPost(path)
                                ? client.post().uri(partner + path).bodyValue("text")
                                : client.get().uri(partner + path))
                        .exchangeToMono(response -> response.releaseBody()
                                .thenReturn(response.statusCode().value()))
                        .onErrorReturn(RateLimitExceededException.class, REJECTED)
                        .block();
            }
            if (name().startsWith("REST_TEMPLATE")) {
                RestTemplate template = context.getBean(RestTemplateBuilder.class)
                        .errorHandler(response -> false)
                        .build();
                return path -> status(() -> (isPost(path)
                                ? template.postForEntity(partner + path, "text", String.class)
                                : template.getForEntity(partner + path, String.class))
                        .getStatusCode()
                        .value());
            }
            RestClient client = context.getBean(RestClient.Builder.class).build();
            return path -> status(() -> (isPost(path)
                            ? client.post().uri(partner + path).body("text")
                            : client.get().uri(partner + path))
                    .exchange((request, response) -> response.getStatusCode().value()));
        }

        private static int status(IntSupplier call) {
            try {
                return call.getAsInt();
            } catch (RateLimitExceededException ex) {
                return REJECTED;
            }
        }
    }

    /** An HTTP interface of the application. */
    interface Partner {

        @GetExchange
        ResponseEntity<String> get(URI uri);

        @PostExchange
        ResponseEntity<String> post(URI uri, @RequestBody String text);
    }

    interface BlockingPartner extends Partner {}

    interface ReactivePartner extends Partner {}

    @Configuration(proxyBeanMethods = false)
    @ImportHttpServices(group = "blocking", types = BlockingPartner.class)
    @ImportHttpServices(
            group = "reactive",
            types = ReactivePartner.class,
            clientType = HttpServiceGroup.ClientType.WEB_CLIENT)
    static class Groups {}

    private final ManualTicker ticker = new ManualTicker();
    private final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
    private HttpServer server;
    private String partner;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::answer);
        server.start();
        partner = "http://localhost:" + server.getAddress().getPort();
    }

    @AfterEach
    void stop() {
        server.stop(0);
    }

    private void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        seen.add(exchange.getRequestMethod().equals("GET") ? path + body : "POST " + path + " " + body);
        int status = 200;
        if (path.endsWith("/lost")) {
            exchange.close();
            return;
        }
        switch (path.replaceAll("/\\d+$", "")) {
            case "/download" -> {
                status = seen.stream().filter(path::equals).count() == 1 ? 429 : 302;
                exchange.getResponseHeaders().set("Location", foreign("/other"));
                exchange.getResponseHeaders().set("RateLimit", "\"x\";r=0;t=31536000");
            }
            case "/moved", "/moved-to-pause" -> {
                status = 302;
                exchange.getResponseHeaders().set("Location", foreign(path.replace("moved", "foreign")));
            }
            case "/post" -> {
                status = Integer.parseInt(path.substring(6));
                exchange.getResponseHeaders().set("Location", status == 307 ? "302" : "/other");
            }
            case "/export", "/foreign" -> exchange.getResponseHeaders().set("RateLimit", "\"x\";r=0;t=31536000");
            case "/rejected" -> {
                status = 429;
                exchange.getResponseHeaders().set("RateLimit", "\"x\";r=0;t=31536000");
            }
            case "/foreign-to-pause" -> {
                status = 503;
                exchange.getResponseHeaders().set("Retry-After", "31536000");
            }
            case "/account" -> exchange.getResponseHeaders().set("RateLimit", "\"account\";r=0;t=30");
            case "/pause" -> {
                status = 429;
                exchange.getResponseHeaders().set("Retry-After", "30");
            }
            default -> exchange.getResponseHeaders().set("X-Served", "yes");
        }
        exchange.sendResponseHeaders(status, -1);
        exchange.close();
    }

    private String foreign(String path) {
        return "http://127.0.0.1:" + server.getAddress().getPort() + path;
    }

    private interface Calls {

        void make(ToIntFunction<String> calls);
    }

    private void with(Client client, Calls calls) {
        runner(client).run(context -> calls.make(client.calls(context, partner)));
    }

    private ApplicationContextRunner runner(Client client) {
        return Contexts.runner(ticker)
                .withBean(ReactorResourceFactory.class, Contexts::reactorResources)
                .withConfiguration(AutoConfigurations.of(
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        ReactiveHttpClientAutoConfiguration.class,
                        HttpServiceClientPropertiesAutoConfiguration.class,
                        RestClientAutoConfiguration.class,
                        RestTemplateAutoConfiguration.class,
                        WebClientAutoConfiguration.class,
                        HttpServiceClientAutoConfiguration.class,
                        ReactiveHttpServiceClientAutoConfiguration.class,
                        ClientRateLimitAutoConfiguration.class))
                .withUserConfiguration(Groups.class)
                .withPropertyValues(
                        client.library,
                        "rate-limit.clients.partner.hosts=localhost",
                        "rate-limit.clients.partner.policy=reject");
    }

    /** Authorizes each call of a group with another account, before Spring Boot applies its customizers, whose order is 0. */
    @Configuration(proxyBeanMethods = false)
    static class AuthorizedGroups {

        private final AtomicInteger accounts = new AtomicInteger();

        private String account() {
            return "account " + accounts.incrementAndGet();
        }

        @Bean
        @Order(-1)
        RestClientHttpServiceGroupConfigurer blockingAccounts() {
            return groups ->
                    groups.forEachClient((group, builder) -> builder.requestInterceptor((request, body, execution) -> {
                        request.getHeaders().set("X-Account", account());
                        return execution.execute(request, body);
                    }));
        }

        @Bean
        @Order(-1)
        WebClientHttpServiceGroupConfigurer reactiveAccounts() {
            return groups -> groups.forEachClient((group, builder) -> builder.filter((request, next) -> next.exchange(
                    ClientRequest.from(request).header("X-Account", account()).build())));
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"GROUP_JDK", "REACTIVE_GROUP_JETTY"})
    void headersThatAGroupIsGivenBeforeTheCustomizersAreThereForTheKey(Client client) {
        runner(client)
                .withUserConfiguration(AuthorizedGroups.class)
                .withPropertyValues("rate-limit.clients.partner.key=header('X-Account')")
                .run(context -> {
                    ToIntFunction<String> calls = client.calls(context, partner);
                    for (int i = 0; i < 3; i++) {
                        assertThat(calls.applyAsInt("/export")).isEqualTo(200);
                    }
                });
    }

    @ParameterizedTest
    @EnumSource(names = {"REST_CLIENT_JDK", "REST_TEMPLATE_APACHE", "WEB_CLIENT_REACTOR"})
    void anExhaustedPathHoldsUpItsOwnCallsOnly(Client client) {
        for (String path : new String[] {"/export", "/rejected"}) {
            with(client, calls -> {
                assertThat(calls.applyAsInt(path)).isEqualTo(path.equals("/export") ? 200 : 429);
                for (int i = 0; i < 24; i++) {
                    assertThat(calls.applyAsInt("/other/" + i)).isEqualTo(200);
                    assertThat(calls.applyAsInt("/other")).isEqualTo(200);
                }
                assertThat(calls.applyAsInt(path)).isEqualTo(REJECTED);
                ticker.advance(Duration.ofSeconds(60));
                assertThat(calls.applyAsInt(path)).isNotEqualTo(REJECTED);
                assertThat(calls.applyAsInt("/other")).isEqualTo(200);
                assertThat(calls.applyAsInt(path)).isEqualTo(REJECTED);
            });
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"REST_CLIENT_JDK", "REST_TEMPLATE_APACHE", "WEB_CLIENT_REACTOR"})
    void anExhaustedPartOfThePathsHoldsUpThisPartOnly(Client client) {
        with(client, calls -> {
            assertThat(calls.applyAsInt("/other/1")).isEqualTo(200);
            assertThat(calls.applyAsInt("/export/1")).isEqualTo(200);
            assertThat(calls.applyAsInt("/export/2")).isEqualTo(200);
            for (int i = 3; i < 24; i++) {
                assertThat(calls.applyAsInt("/export/" + i)).isEqualTo(REJECTED);
                assertThat(calls.applyAsInt("/other/" + i)).isEqualTo(200);
            }
        });
    }

    /** The libraries of the JDK may send such a call again, and have no setting for it. */
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.MATCH_NONE, names = ".*_(JDK|SIMPLE)")
    void aCallWhoseConnectionIsLostIsSentOnce(Client client) {
        with(client, calls -> {
            assertThat(calls.applyAsInt("/other")).isEqualTo(200);
            for (String path : List.of("/lost", "/post/lost")) {
                seen.clear();
                assertThatThrownBy(() -> calls.applyAsInt(path))
                        .isInstanceOfAny(RestClientException.class, WebClientRequestException.class);
                assertThat(seen).hasSize(1);
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void aBodyIsSentAgainBehindARedirectThatKeepsTheMethod(Client client) {
        with(client, calls -> {
            assertThat(calls.applyAsInt("/post/307")).isEqualTo(200);
            assertThat(seen).containsExactly("POST /post/307 text", "POST /post/302 text", "/other");
        });
    }

    @ParameterizedTest
    @EnumSource
    void anotherHostBehindARedirectIsNotBelieved(Client client) {
        with(client, calls -> {
            for (int i = 0; i < 5; i++) {
                assertThat(calls.applyAsInt("/moved-to-pause")).isEqualTo(503);
                assertThat(calls.applyAsInt("/moved")).isEqualTo(200);
                assertThat(calls.applyAsInt("/moved/" + i)).isEqualTo(200);
                assertThat(calls.applyAsInt("/other")).isEqualTo(200);
            }
            assertThat(calls.applyAsInt("/pause")).isEqualTo(429);
            assertThat(calls.applyAsInt("/other")).isEqualTo(REJECTED);
            ticker.advance(Duration.ofSeconds(30));
            assertThat(calls.applyAsInt("/moved")).isEqualTo(200);
            assertThat(calls.applyAsInt("/other"))
                    .as("the redirect was no rejection")
                    .isEqualTo(200);
        });
    }

    /** Its fields are not seen, but it is no rejection. */
    @ParameterizedTest
    @EnumSource
    void aRedirectToAnotherHostEndsAQuotaThatIsOver(Client client) {
        with(client, calls -> {
            assertThat(calls.applyAsInt("/download")).isEqualTo(429);
            assertThat(calls.applyAsInt("/download")).isEqualTo(REJECTED);
            ticker.advance(Duration.ofSeconds(60));
            assertThat(calls.applyAsInt("/download")).isEqualTo(200);
            assertThat(calls.applyAsInt("/download")).isEqualTo(200);
        });
    }

    /** A pause is an order to the whole client, whichever path it was told on. */
    @ParameterizedTest
    @EnumSource(names = {"REST_CLIENT_JDK", "REST_TEMPLATE_APACHE", "WEB_CLIENT_REACTOR"})
    void nothingIsSentWhileTheClientPauses(Client client) {
        with(client, calls -> {
            assertThat(calls.applyAsInt("/pause")).isEqualTo(429);
            for (int i = 0; i < 24; i++) {
                assertThat(calls.applyAsInt("/other/" + i)).isEqualTo(REJECTED);
            }
            assertThat(seen).containsExactly("/pause");
            ticker.advance(Duration.ofSeconds(30));
            assertThat(calls.applyAsInt("/other")).isEqualTo(200);
            assertThat(calls.applyAsInt("/other/1")).isEqualTo(200);
        });
    }

    @ParameterizedTest
    @EnumSource(names = {"REST_CLIENT_JDK", "REST_TEMPLATE_APACHE", "WEB_CLIENT_REACTOR"})
    void aQuotaThatSeveralPathsNameHoldsUpThemAll(Client client) {
        with(client, calls -> {
            assertThat(calls.applyAsInt("/account/1")).isEqualTo(200);
            assertThat(calls.applyAsInt("/account/2"))
                    .as("its quota is not known yet")
                    .isEqualTo(200);
            assertThat(calls.applyAsInt("/account/3")).isEqualTo(REJECTED);
            ticker.advance(Duration.ofSeconds(30));
            assertThat(calls.applyAsInt("/account/3")).isEqualTo(200);
        });
    }

    @ParameterizedTest
    @EnumSource(names = {"REST_CLIENT_JDK", "WEB_CLIENT_JDK"})
    void withoutRedirectsNoOtherHostAnswers(Client client, CapturedOutput log) {
        runner(client)
                .withPropertyValues("spring.http.clients.redirects=dont-follow")
                .withUserConfiguration(Customized.class)
                .run(context -> {
                    assertThat(log.toString()).doesNotContain("RL-335");
                    assertThatRedirectsAreNotFollowed(client.calls(context, partner));
                });
    }

    /** Spring Boot gives groups of {@code WebClient} the common connector, whatever their properties are. */
    @Test
    void aGroupThatFollowsNoRedirectsSeesThem() {
        runner(Client.GROUP_JDK)
                .withPropertyValues("spring.http.serviceclient.blocking.redirects=dont-follow")
                .run(context -> assertThatRedirectsAreNotFollowed(Client.GROUP_JDK.calls(context, partner)));
    }

    private void assertThatRedirectsAreNotFollowed(ToIntFunction<String> calls) {
        assertThat(calls.applyAsInt("/moved-to-pause")).isEqualTo(302);
        assertThat(calls.applyAsInt("/other")).isEqualTo(200);
        assertThat(seen).containsExactly("/moved-to-pause", "/other");
    }

    /** A builder does not tell what that is. */
    @ParameterizedTest
    @EnumSource(names = {"REST_CLIENT_JDK", "WEB_CLIENT_REACTOR"})
    void whatTheApplicationHasSetAboutRedirectsHolds(Client client, CapturedOutput log) {
        runner(client).withUserConfiguration(Customized.class).run(context -> {
            assertThatRedirectsAreNotFollowed(client.calls(context, partner));
            assertThat(log.toString().lines().filter(line -> line.contains("[RL-335]")))
                    .satisfiesExactlyInAnyOrder(
                            line -> assertThat(line)
                                    .contains("[partner]", "beans [jdk]", "library of RestClient and RestTemplate"),
                            line -> assertThat(line).contains("[partner]", "beans [reactor]", "library of WebClient"));
        });
    }

    @Configuration
    static class Customized {

        @Bean
        ClientHttpRequestFactoryBuilderCustomizer<JdkClientHttpRequestFactoryBuilder> jdk() {
            return builder -> builder.withHttpClientCustomizer(jdk -> jdk.followRedirects(HttpClient.Redirect.NEVER));
        }

        @Bean
        ClientHttpConnectorBuilderCustomizer<ReactorClientHttpConnectorBuilder> reactor() {
            return builder -> builder.withHttpClientCustomizer(reactor -> reactor.followRedirect(false));
        }
    }

    @Test
    void aFactoryWithSettingsOfItsOwnIsThatOfTheLibraryIfTheyDisableRedirects() {
        HttpClientSettings still = HttpClientSettings.defaults().withRedirects(HttpRedirects.DONT_FOLLOW);
        List<Object> customized = new ArrayList<>();
        runner(Client.REST_CLIENT_JDK).run(context -> {
            FollowedRedirects.Factories factories = context.getBean(FollowedRedirects.Factories.class);
            assertThat(factories.build(still)).isInstanceOf(JdkClientHttpRequestFactory.class);
            assertThat(factories.withCustomizer(customized::add).build()).isInstanceOf(FollowingRequestFactory.class);
            FollowedRedirects.Connectors connectors = context.getBean(FollowedRedirects.Connectors.class);
            assertThat(connectors.build(still)).isInstanceOf(ReactorClientHttpConnector.class);
            assertThat(connectors.withCustomizer(customized::add).build()).isInstanceOf(FollowingConnector.class);
        });
        assertThat(customized)
                .as("what customizers of factories see")
                .satisfiesExactly(
                        factory -> assertThat(factory).isInstanceOf(JdkClientHttpRequestFactory.class),
                        connector -> assertThat(connector).isInstanceOf(ReactorClientHttpConnector.class));
    }
}
