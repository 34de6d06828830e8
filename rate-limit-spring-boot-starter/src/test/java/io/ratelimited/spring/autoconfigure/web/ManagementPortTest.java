package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.webflux.autoconfigure.WebFluxRegistrations;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.HandlerResult;
import org.springframework.web.reactive.result.method.annotation.RequestMappingHandlerAdapter;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** A management port of its own has handler adapters of its own, which call its endpoints. */
class ManagementPortTest {

    @Test
    void endpointIsCalledByTheAdaptersOfItsPort() throws Exception {
        try (RunningServer server = Kind.REACTOR_NETTY.start(
                List.of(App.class),
                "management.server.port=0",
                "management.endpoints.web.exposure.include=ratelimits")) {
            AtomicInteger calls = server.context.getBean(App.class).calls;
            assertThat(server.get("/limited").statusCode()).isEqualTo(200);
            assertThat(calls).hasValue(1);

            String port = server.context.getEnvironment().getProperty("local.management.port");
            HttpResponse<String> answer = HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(URI.create("http://localhost:" + port + "/actuator/ratelimits"))
                                    .build(),
                            BodyHandlers.ofString());

            assertThat(answer.statusCode()).isEqualTo(200);
            assertThat(answer.body()).contains("\"limited\"");
            assertThat(calls).hasValue(1);
        }
    }

    /** On WebFlux, the server of that port has the filters of the application. */
    @ParameterizedTest
    @EnumSource(names = {"REACTOR_NETTY", "TOMCAT"})
    void routesCountNothingOnAPortOfItsOwn(Kind kind) throws Exception {
        try (RunningServer server = kind.start(
                List.of(Routed.class),
                "management.server.port=0",
                "rate-limit.limits.all.rate=1/h",
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].limits=all")) {
            URI health = URI.create("http://localhost:"
                    + server.context.getEnvironment().getProperty("local.management.port") + "/actuator/health");
            for (int i = 0; i < 3; i++) {
                HttpResponse<String> answer = HttpClient.newHttpClient()
                        .send(HttpRequest.newBuilder(health).build(), BodyHandlers.ofString());
                assertThat(answer.statusCode()).isEqualTo(200);
                assertThat(answer.headers().firstValue("RateLimit")).isEmpty();
            }
            assertThat(server.get("/limited").statusCode()).isEqualTo(200);
            assertThat(server.get("/limited").statusCode()).isEqualTo(429);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class Routed {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {

        final AtomicInteger calls = new AtomicInteger();

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        WebFluxRegistrations registrations() {
            return new WebFluxRegistrations() {
                @Override
                public RequestMappingHandlerAdapter getRequestMappingHandlerAdapter() {
                    return new RequestMappingHandlerAdapter() {
                        @Override
                        public Mono<HandlerResult> handle(ServerWebExchange exchange, Object handler) {
                            calls.incrementAndGet();
                            return super.handle(exchange, handler);
                        }
                    };
                }
            };
        }
    }

    @RestController
    static class Api {

        @GetMapping("/limited")
        @RateLimited(name = "limited", rate = "10/s")
        String limited() {
            return "called";
        }
    }
}
