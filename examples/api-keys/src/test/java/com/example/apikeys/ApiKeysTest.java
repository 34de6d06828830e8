package com.example.apikeys;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.web.servlet.client.RestTestClient;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
class ApiKeysTest {

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
    void anOwnerHasTheLimitOfThePlan() {
        for (int call = 1; call <= 5; call++) {
            assertThat(status("key-of-ann")).isEqualTo(200);
        }
        assertThat(status("key-of-ann")).isEqualTo(429);
        for (int call = 1; call <= 6; call++) {
            assertThat(status("key-of-bob")).isEqualTo(200);
        }
    }

    @Test
    void unknownKeysShareTheLimitOfTheirClientIp() {
        for (int call = 1; call <= 3; call++) {
            assertThat(status("invented-" + call)).isEqualTo(200);
        }
        assertThat(status("invented-4")).isEqualTo(429);
    }

    private int status(String apiKey) {
        return client.get()
                .uri("/forecast")
                .header("X-Api-Key", apiKey)
                .exchange()
                .returnResult()
                .getStatus()
                .value();
    }
}
