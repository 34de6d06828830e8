package io.ratelimited.spring.internals.web.reactive;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.WebSession;
import org.springframework.web.server.session.HeaderWebSessionIdResolver;
import org.springframework.web.server.session.WebSessionIdResolver;
import reactor.core.publisher.Mono;

/** The key {@code session} of clients that name their session by a header. */
@Tag("slow")
class HeaderSessionsTest {

    @Test
    void eachSessionHasItsOwnLimitAndNoneIsCreated() {
        try (RunningServer server = RunningServer.Kind.REACTOR_NETTY.start(List.of(App.class))) {
            for (int i = 0; i < 2; i++) {
                String session =
                        server.get("/start").headers().firstValue("SESSION").orElseThrow();
                assertThat(server.get("/limited", "SESSION", session).statusCode())
                        .isEqualTo(200);
                assertThat(server.get("/limited", "SESSION", session).statusCode())
                        .isEqualTo(429);
            }
            assertThat(server.get("/limited").headers().firstValue("SESSION")).isEmpty();
            assertThat(server.get("/limited", "SESSION", "made-up").statusCode())
                    .as("shares the limit of those without a session")
                    .isEqualTo(429);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        WebSessionIdResolver webSessionIdResolver() {
            return new HeaderWebSessionIdResolver();
        }
    }

    @RestController
    static class Api {

        @GetMapping("/start")
        Mono<String> start(WebSession session) {
            session.start();
            return Mono.just("started");
        }

        @GetMapping("/limited")
        @RateLimited(name = "limited", rate = "1/h", key = "session")
        Mono<String> limited() {
            return Mono.just("limited");
        }
    }
}
