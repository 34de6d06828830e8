package com.example;

import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.RateLimitExceededException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theClassPathLacksThese() {
        assertFalse(Started.has("jakarta.servlet.Filter"));
        assertFalse(Started.has("reactor.core.publisher.Mono"));
    }

    @Test
    void theSecondCallDoesNotTouchTheNetwork() throws IOException {
        AtomicInteger calls = new AtomicInteger();
        HttpServer partner = HttpServer.create(new InetSocketAddress("localhost", 0), 0);
        partner.createContext("/", exchange -> {
            calls.incrementAndGet();
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        partner.start();
        try (Started application = new Started(Application.class)) {
            Application.Partner client = application.bean(Application.Partner.class);
            String address = "http://localhost:" + partner.getAddress().getPort() + "/";
            client.call(address);
            assertThrows(RateLimitExceededException.class, () -> client.call(address));
            assertEquals(1, calls.get());
        } finally {
            partner.stop(0);
        }
    }
}
