package com.example.migration;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.web.servlet.client.EntityExchangeResult;
import org.springframework.test.web.servlet.client.RestTestClient;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
class MigrationTest {

    @LocalServerPort
    int port;

    RestTestClient client;

    @BeforeEach
    void connect() {
        client = RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .build();
    }

    @Test
    void aUserAndAClientIpEachHaveALimitWithTheHeadersAndTheBodyThatClientsKnow() {
        for (int left = 2; left >= 0; left--) {
            EntityExchangeResult<String> admitted = search(null);
            assertThat(admitted.getStatus().value()).isEqualTo(200);
            assertThat(admitted.getResponseHeaders().getFirst("X-Rate-Limit-Remaining"))
                    .isEqualTo("" + left);
        }
        EntityExchangeResult<String> rejected = search(null);
        assertThat(rejected.getStatus().value()).isEqualTo(429);
        assertThat(rejected.getResponseBody()).isEqualTo("{\"message\":\"Too many requests!\"}");
        assertThat(rejected.getResponseHeaders().getFirst("Retry-After")).isNotNull();
        assertThat(rejected.getResponseHeaders().headerNames()).doesNotContain("RateLimit", "RateLimit-Policy");

        assertThat(search("correct").getStatus().value()).isEqualTo(200);
    }

    @Test
    void whatSpringSecurityRejectsIsNotCounted() {
        for (int attempt = 1; attempt <= 5; attempt++) {
            assertThat(search("incorrect").getStatus().value()).isEqualTo(401);
        }
    }

    private EntityExchangeResult<String> search(String passwordOfAnn) {
        return client.get()
                .uri("/search")
                .headers(headers -> {
                    if (passwordOfAnn != null) {
                        headers.setBasicAuth("ann", passwordOfAnn);
                    }
                })
                .exchange()
                .expectBody(String.class)
                .returnResult();
    }
}
