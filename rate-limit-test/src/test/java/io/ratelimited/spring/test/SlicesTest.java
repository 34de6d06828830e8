package io.ratelimited.spring.test;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThat;
import static io.ratelimited.spring.test.RateLimitAssertions.assertThatCall;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.springframework.test.web.client.match.MockRestRequestMatchers.anything;
import static org.springframework.test.web.client.response.MockRestResponseCreators.withSuccess;

import io.ratelimited.core.testing.ManualTicker;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.webflux.test.autoconfigure.WebFluxTest;
import org.springframework.boot.webmvc.test.autoconfigure.WebMvcTest;
import org.springframework.boot.webtestclient.autoconfigure.AutoConfigureWebTestClient;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.http.MediaType;
import org.springframework.test.context.ContextConfiguration;
import org.springframework.test.context.TestPropertySource;
import org.springframework.test.web.client.MockRestServiceServer;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.MvcResult;
import org.springframework.test.web.servlet.assertj.MockMvcTester;
import org.springframework.test.web.servlet.assertj.MvcTestResult;
import org.springframework.test.web.servlet.client.MockMvcWebTestClient;
import org.springframework.test.web.servlet.client.RestTestClient;
import org.springframework.test.web.servlet.request.MockMvcRequestBuilders;
import org.springframework.web.client.RestClient;

/** Slices have limits by the annotation, with nothing to import: on handler methods, on routes and on what clients send. */
class SlicesTest {

    private static final Duration TWELVE_SECONDS = Duration.ofSeconds(12);

    @SpringBootConfiguration
    @EnableAutoConfiguration
    @Import(Shop.Quotes.class)
    static class Web {}

    @Nested
    @WebMvcTest(Shop.Quotes.class)
    @Import(Web.class)
    @AutoConfigureRateLimits
    @TestPropertySource(
            properties = {
                "rate-limit.backend=redis",
                "rate-limit.limits.route.rate=1/h",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=route"
            })
    class OfServlets {

        @Autowired
        MockMvcTester mvc;

        @Autowired
        MockMvc mock;

        @Autowired
        ManualTicker ticker;

        @RepeatedTest(2)
        void theSixthRequestIsRefused() throws Exception {
            for (int left = 4; left >= 0; left--) {
                assertThat(mvc.get().uri("/quotes"))
                        .isNotRateLimited()
                        .remaining(left)
                        .hasStatusOk();
            }
            assertThat(mvc.get().uri("/quotes").exchange())
                    .isRateLimited()
                    .by("quotes")
                    .retryAfter(TWELVE_SECONDS)
                    .hasContentType("application/problem+json")
                    .bodyJson()
                    .extractingPath("$.status")
                    .isEqualTo(429);
            assertThat(mock.perform(MockMvcRequestBuilders.get("/quotes")).andReturn())
                    .isRateLimited()
                    .by("quotes")
                    .remaining(0);
            assertThat(mvc.get().uri("/quotes").accept(MediaType.TEXT_HTML))
                    .isRateLimited()
                    .by("quotes")
                    .retryAfter(TWELVE_SECONDS);
            RestTestClient rest = RestTestClient.bindTo(mock).build();
            assertThat(rest.get().uri("/quotes").exchange()).isRateLimited().by("quotes");
            assertThat(rest.get().uri("/quotes").exchange().expectBody().returnResult())
                    .isRateLimited()
                    .by("quotes");
            ticker.advance(TWELVE_SECONDS);
            assertThat(rest.get().uri("/quotes").exchange()).isNotRateLimited();
        }

        /** Else each {@code isNotRateLimited} would pass: its status is 200 until there is another. */
        @ParameterizedTest
        @ValueSource(strings = {"/mono", "/future"})
        void noAssertionHoldsForAResponseThatIsStillToCome(String path) throws Exception {
            MvcResult admitted = mock.perform(MockMvcRequestBuilders.get(path)).andReturn();
            MvcResult rejected = mock.perform(MockMvcRequestBuilders.get(path)).andReturn();
            MvcTestResult rejectedToo = mvc.get().uri(path).asyncExchange();
            for (MvcResult pending : List.of(admitted, rejected)) {
                fails(() -> assertThat(pending).as(path).isNotRateLimited());
                fails(() -> assertThat(pending).as(path).isRateLimited());
                fails(() -> assertThat(pending).as(path).noRetryAfter());
            }
            fails(() -> assertThat(rejectedToo).as(path).isNotRateLimited());
            fails(() -> assertThat(rejectedToo).as(path).isRateLimited());

            assertThat(mock.perform(MockMvcRequestBuilders.asyncDispatch(admitted))
                            .andReturn())
                    .isNotRateLimited();
            assertThat(mock.perform(MockMvcRequestBuilders.asyncDispatch(rejected))
                            .andReturn())
                    .isRateLimited()
                    .by(path.substring(1));
            assertThat(rejected).isRateLimited().retryAfter(Duration.ofHours(1));
            assertThat(mvc.get().uri(path)).isRateLimited().by(path.substring(1));
            WebTestClient web = MockMvcWebTestClient.bindTo(mock).build();
            assertThat(web.get().uri(path).exchange()).isRateLimited().by(path.substring(1));
            // Nothing tells that this response is still to come; the page says so.
            RestTestClient rest = RestTestClient.bindTo(mock).build();
            assertThat(rest.get().uri(path).exchange()).isNotRateLimited();
        }

        /** Its status is final. */
        @Test
        void aStreamThatHasBegunIsAResponse() throws Exception {
            assertThat(mock.perform(MockMvcRequestBuilders.get("/events")).andReturn())
                    .isNotRateLimited();
            assertThat(mvc.get().uri("/events").asyncExchange()).isRateLimited().by("events");
        }

        private static void fails(ThrowingCallable assertion) {
            assertThatThrownBy(assertion)
                    .isInstanceOf(AssertionError.class)
                    .hasMessageContainingAll("[/", "is still to come", "MockMvcTester", "asyncDispatch(result)");
        }

        @RepeatedTest(2)
        void routesAreLimited() {
            assertThat(mvc.get().uri("/routed")).isNotRateLimited();
            assertThat(mvc.get().uri("/routed")).isRateLimited().by("route").retryAfter(Duration.ofHours(1));
        }
    }

    /** The properties of all pages, as an application has that copied every recipe. */
    static class OfTheGuide implements ApplicationContextInitializer<ConfigurableApplicationContext> {

        private static final Pattern YAML = Pattern.compile("(?ms)^```yaml\\n(.*?)^```$");

        @Override
        public void initialize(ConfigurableApplicationContext context) {
            try (Stream<Path> pages = Files.list(Path.of("../docs"))) {
                for (Path page : Stream.concat(pages, Stream.of(Path.of("../README.md")))
                        .filter(file -> file.toString().endsWith(".md"))
                        // It shows mistakes.
                        .filter(file -> !file.endsWith("errors.md"))
                        .sorted()
                        .toList()) {
                    List<MatchResult> blocks =
                            YAML.matcher(Files.readString(page)).results().toList();
                    for (int i = 0; i < blocks.size(); i++) {
                        String name = page + " " + i;
                        byte[] text = blocks.get(i).group(1).getBytes(StandardCharsets.UTF_8);
                        new YamlPropertySourceLoader()
                                .load(name, new ByteArrayResource(text))
                                .forEach(context.getEnvironment().getPropertySources()::addLast);
                    }
                }
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
    }

    @Nested
    @WebMvcTest(Shop.Quotes.class)
    @Import(Web.class)
    @AutoConfigureRateLimits
    @ContextConfiguration(initializers = OfTheGuide.class)
    class WithThePropertiesOfTheGuide {

        @Autowired
        MockMvcTester mvc;

        @Test
        void theSliceStarts() {
            assertThat(mvc.get().uri("/quotes")).isNotRateLimited();
        }
    }

    @Nested
    @WebFluxTest(Shop.Quotes.class)
    @Import(Web.class)
    @AutoConfigureRateLimits
    @AutoConfigureWebTestClient
    @TestPropertySource(
            properties = {
                "rate-limit.http.status=503",
                "rate-limit.http.headers=legacy",
                "rate-limit.limits.route.rate=1/h",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=route"
            })
    class Reactive {

        @Autowired
        WebTestClient client;

        @Autowired
        ManualTicker ticker;

        @RepeatedTest(2)
        void theSixthRequestIsRefused() {
            for (int left = 4; left >= 0; left--) {
                assertThat(client.get().uri("/quotes").exchange())
                        .isNotRateLimited()
                        .remaining(left);
            }
            assertThat(client.get().uri("/quotes").exchange())
                    .isRateLimited(503)
                    .by("quotes")
                    .retryAfter(TWELVE_SECONDS);
            assertThat(client.get().uri("/quotes").exchange().expectBody().returnResult())
                    .isRateLimited(503)
                    .by("quotes");
        }

        @RepeatedTest(2)
        void aRequestThatWaitsMovesTheTime() {
            for (int i = 0; i < 3; i++) {
                assertThat(client.get().uri("/slow").exchange()).isNotRateLimited();
            }
            org.assertj.core.api.Assertions.assertThat(ticker.elapsed()).isEqualTo(Duration.ofHours(2));
        }

        @RepeatedTest(2)
        void routesAreLimited() {
            assertThat(client.get().uri("/routed").exchange()).isNotRateLimited();
            assertThat(client.get().uri("/routed").exchange())
                    .isRateLimited(503)
                    .by("route")
                    .retryAfter(Duration.ofHours(1));
        }
    }

    /** The auto-configurations of {@code @RestClientTest}: those of the clients, and none of the starter's. */
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(RestClientAutoConfiguration.class)
    static class Clients {}

    @Nested
    @SpringBootTest(
            classes = Clients.class,
            webEnvironment = SpringBootTest.WebEnvironment.NONE,
            properties = {
                "rate-limit.clients.partner.hosts=partner.example",
                "rate-limit.clients.partner.limits=partner",
                "rate-limit.clients.partner.policy=reject",
                "rate-limit.limits.partner.rate=1/h"
            })
    @AutoConfigureRateLimits
    class OfClients {

        @Autowired
        RestClient.Builder builder;

        @RepeatedTest(2)
        void theSecondRequestIsNotSent() {
            MockRestServiceServer.bindTo(builder).build().expect(anything()).andRespond(withSuccess());
            RestClient client = builder.build();
            assertThatCall(() -> send(client)).isNotRateLimited();
            assertThatCall(() -> send(client)).isRateLimited().by("partner");
        }

        private static void send(RestClient client) {
            client.get().uri("https://partner.example/orders").retrieve().toBodilessEntity();
        }
    }
}
