package com.example;

import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theClassPathLacksThese() {
        assertFalse(Started.has("org.springframework.web.servlet.DispatcherServlet"));
        assertFalse(Started.has("reactor.core.publisher.Mono"));
    }

    @Test
    void theSecondCallOfAServiceIsRejected() {
        try (Started application = new Started(Application.class)) {
            assertEquals(200, application.get("/quote"));
            assertEquals(429, application.get("/quote"));
            String rejected = application.body("/quote");
            assertTrue(rejected.contains("\"status\":429"), rejected);
        }
    }

    @Test
    void theSecondRequestOfARouteIsRejected() {
        try (Started application = new Started(Application.class)) {
            assertEquals(200, application.get("/routed/a"));
            assertEquals(429, application.get("/routed/b"));
        }
    }
}
