package com.example.graphql;

import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.http.MediaType;
import org.springframework.test.web.servlet.client.RestTestClient;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
class GraphQlTest {

    @LocalServerPort
    int port;

    @Test
    void theThirdQueryGetsAnErrorThatNamesTheLimit() {
        query("{ quote(symbol: \"ACME\") }")
                .expectBody()
                .jsonPath("$.data.quote")
                .isEqualTo("ACME 42.00")
                .jsonPath("$.errors")
                .doesNotExist();
        query("{ quote(symbol: \"ACME\") }")
                .expectBody()
                .jsonPath("$.data.quote")
                .isEqualTo("ACME 42.00");
        query("{ quote(symbol: \"ACME\") }")
                .expectBody()
                .jsonPath("$.data.quote")
                .isEmpty()
                .jsonPath("$.errors[0].extensions.classification")
                .isEqualTo("RATE_LIMITED")
                .jsonPath("$.errors[0].extensions.limit")
                .isEqualTo("quotes")
                .jsonPath("$.errors[0].extensions.retryAfter")
                .isNumber();
    }

    private RestTestClient.ResponseSpec query(String query) {
        return RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .build()
                .post()
                .uri("/graphql")
                .contentType(MediaType.APPLICATION_JSON)
                .accept(MediaType.APPLICATION_JSON)
                .body("{\"query\": \"" + query.replace("\"", "\\\"") + "\"}")
                .exchange()
                .expectStatus()
                .isOk();
    }
}
