package com.example.apikeys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.test.AutoConfigureRateLimits;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.web.servlet.client.RestTestClient;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
@AutoConfigureRateLimits
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

    @Test
    void eachCustomerHasALimit(@Autowired Orders orders) {
        for (int call = 1; call <= 10; call++) {
            orders.ofACustomer(new Orders.Order("cleo", 1));
        }
        assertThatThrownBy(() -> orders.ofACustomer(new Orders.Order("cleo", 1)))
                .isInstanceOf(RateLimitExceededException.class);
        orders.ofACustomer(new Orders.Order("dan", 1));
    }

    @Test
    void aTenantHasTheNumbersOfItsContract(@Autowired Invoices invoices, @Autowired RateLimits limits) {
        invoices.create("acme-1");
        invoices.create("other");
        assertThat(limits.peek("invoices", "acme-1").remaining()).isEqualTo(999);
        assertThat(limits.peek("invoices", "other").remaining()).isEqualTo(59);
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
