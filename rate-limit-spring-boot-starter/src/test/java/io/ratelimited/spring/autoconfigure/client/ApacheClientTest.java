package io.ratelimited.spring.autoconfigure.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.internals.client.FollowingRequestFactory;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.reactive.ReactiveHttpClientAutoConfiguration;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestClientBuilderConfigurer;
import org.springframework.boot.restclient.autoconfigure.RestTemplateAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestTemplateBuilderConfigurer;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.webclient.autoconfigure.WebClientAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.web.client.HttpClientErrorException.TooManyRequests;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClientResponseException;

/** Apache HttpClient 5, which Spring Boot prefers and which repeats calls by itself. */
@Tag("slow")
class ApacheClientTest {

    private final AtomicInteger calls = new AtomicInteger();
    private HttpServer partner;
    private String url;

    @BeforeEach
    void start() throws IOException {
        partner = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        partner.createContext("/", exchange -> {
            calls.incrementAndGet();
            exchange.getResponseHeaders().add("Retry-After", "1");
            exchange.sendResponseHeaders(429, -1);
            exchange.close();
        });
        partner.start();
        url = "http://localhost:" + partner.getAddress().getPort();
    }

    @AfterEach
    void stop() {
        partner.stop(0);
    }

    private ApplicationContextRunner limited(String host) {
        return Contexts.runner(new ManualTicker())
                .withConfiguration(AutoConfigurations.of(
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        RestClientAutoConfiguration.class,
                        RestTemplateAutoConfiguration.class,
                        ClientRateLimitAutoConfiguration.class))
                .withPropertyValues(
                        "rate-limit.clients.partner.hosts=" + host, "rate-limit.clients.partner.policy=reject");
    }

    @Test
    void aCallThatTheOtherSideRefusesIsSentOnceAndTheClientPauses() {
        limited("localhost").run(context -> {
            RestClient client = context.getBean(RestClient.Builder.class).build();
            assertThatThrownBy(() -> client.get().uri(url).retrieve().toBodilessEntity())
                    .isInstanceOf(TooManyRequests.class);
            RestTemplate template = context.getBean(RestTemplateBuilder.class).build();
            assertThatThrownBy(() -> template.getForObject(url, String.class))
                    .isInstanceOf(RateLimitExceededException.class);
            assertThat(calls).hasValue(1);
            assertThat(context.getBean(RestTemplateBuilder.class).buildRequestFactory())
                    .isInstanceOfSatisfying(
                            FollowingRequestFactory.class,
                            factory -> assertThat(factory.getDelegate())
                                    .isInstanceOf(HttpComponentsClientHttpRequestFactory.class));
        });
    }

    @Test
    void aWebClientOnItSendsACallOnce() {
        limited("localhost")
                .withConfiguration(AutoConfigurations.of(
                        ReactiveHttpClientAutoConfiguration.class, WebClientAutoConfiguration.class))
                .withPropertyValues("spring.http.clients.reactive.connector=http-components")
                .run(context -> {
                    WebClient client = context.getBean(WebClient.Builder.class).build();
                    assertThatThrownBy(() -> client.get()
                                    .uri(url)
                                    .retrieve()
                                    .toBodilessEntity()
                                    .block())
                            .isInstanceOf(WebClientResponseException.TooManyRequests.class);
                    assertThat(calls).hasValue(1);
                });
    }

    /** Nothing shows whether a builder has a request factory, so it gets none. */
    @Test
    void aBuilderOfTheApplicationRepeatsACallUnlessSpringBootConfiguresIt() {
        for (boolean configured : List.of(false, true)) {
            calls.set(0);
            limited("localhost")
                    .withUserConfiguration(configured ? Configured.class : Plain.class)
                    .run(context -> {
                        RestClient client =
                                context.getBean(RestClient.Builder.class).build();
                        assertThatThrownBy(
                                        () -> client.get().uri(url).retrieve().toBodilessEntity())
                                .isInstanceOf(TooManyRequests.class);
                        assertThat(calls).hasValue(configured ? 1 : 2);
                    });
            calls.set(0);
            limited("localhost")
                    .withUserConfiguration(configured ? Configured.class : Plain.class)
                    .run(context -> {
                        RestTemplate template =
                                context.getBean(RestTemplateBuilder.class).build();
                        assertThatThrownBy(() -> template.getForObject(url, String.class))
                                .isInstanceOf(TooManyRequests.class);
                        assertThat(calls).hasValue(configured ? 1 : 2);
                    });
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Plain {

        @Bean
        RestClient.Builder builder() {
            return RestClient.builder();
        }

        @Bean
        RestTemplateBuilder templates() {
            return new RestTemplateBuilder();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Configured {

        @Bean
        RestClient.Builder builder(RestClientBuilderConfigurer configurer) {
            return configurer.configure(RestClient.builder());
        }

        @Bean
        RestTemplateBuilder templates(RestTemplateBuilderConfigurer configurer) {
            return configurer.configure(new RestTemplateBuilder());
        }
    }

    @Test
    void aHostThatIsNotLimitedIsCalledAsWithoutThisLibrary() {
        limited("other.example").run(context -> {
            RestClient client = context.getBean(RestClient.Builder.class).build();
            assertThatThrownBy(() -> client.get().uri(url).retrieve().toBodilessEntity())
                    .isInstanceOf(TooManyRequests.class);
            assertThat(calls).hasValue(2);
        });
    }
}
