package com.example.outgoing;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.test.web.servlet.client.RestTestClient;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
class OutgoingTest {

    static final AtomicInteger received = new AtomicInteger();
    static HttpServer partner;

    @LocalServerPort
    int port;

    @DynamicPropertySource
    static void partner(DynamicPropertyRegistry properties) throws IOException {
        partner = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        partner.createContext("/prices", exchange -> {
            received.incrementAndGet();
            byte[] body = "42.00".getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        partner.start();
        properties.add(
                "partner.url", () -> "http://localhost:" + partner.getAddress().getPort());
    }

    @AfterAll
    static void stop() {
        partner.stop(0);
    }

    @Test
    void theThirdCallDoesNotReachThePartnerAndOurCallerGetsA429Response() {
        RestTestClient client = RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .build();
        for (int call = 1; call <= 2; call++) {
            client.get()
                    .uri("/prices/ACME")
                    .exchange()
                    .expectStatus()
                    .isOk()
                    .expectBody(String.class)
                    .isEqualTo("42.00");
        }
        client.get().uri("/prices/ACME").exchange().expectStatus().isEqualTo(429);
        assertThat(received).hasValue(2);
    }
}
