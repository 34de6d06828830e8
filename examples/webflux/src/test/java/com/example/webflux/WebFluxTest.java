package com.example.webflux;

import io.ratelimited.spring.test.AutoConfigureRateLimits;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.http.MediaType;
import org.springframework.test.web.reactive.server.WebTestClient;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
@AutoConfigureRateLimits
class WebFluxTest {

    @LocalServerPort
    int port;

    WebTestClient client;

    @BeforeEach
    void connect() {
        client =
                WebTestClient.bindToServer().baseUrl("http://localhost:" + port).build();
    }

    @Test
    void theSixthCallOfAMethodIsRejected() {
        for (int call = 1; call <= 5; call++) {
            client.get()
                    .uri("/quotes/ACME")
                    .exchange()
                    .expectStatus()
                    .isOk()
                    .expectBody(String.class)
                    .isEqualTo("ACME 42.00");
        }
        client.get()
                .uri("/quotes/ACME")
                .exchange()
                .expectStatus()
                .isEqualTo(429)
                .expectHeader()
                .contentType(MediaType.APPLICATION_PROBLEM_JSON)
                .expectHeader()
                .exists("Retry-After");
    }

    @Test
    void theThirdRequestToAPathIsRejected() {
        for (int call = 1; call <= 2; call++) {
            client.get().uri("/history/ACME").exchange().expectStatus().isOk();
        }
        client.get().uri("/history/OTHER").exchange().expectStatus().isEqualTo(429);
    }
}
