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
    void whatAResourceCallsIsRejectedBy429UnlessTheApplicationMapsIt() {
        try (Started application = new Started(Application.class)) {
            assertEquals(200, application.get("/jersey/quote"));
            assertEquals(429, application.get("/jersey/quote"));
            String rejected = application.body("/jersey/quote");
            assertTrue(rejected.contains("\"status\":429"), rejected);
            assertTrue(rejected.contains("quota-exceeded"), rejected);
            assertEquals(429, application.get("/jersey/wrapped"));
            assertEquals(410, application.get("/jersey/answered"));
            assertEquals(400, application.get("/jersey/many?permits=-5"));
            assertEquals(500, application.get("/jersey/broken"));
            assertEquals(200, application.get("/jersey/stage"));
            for (String later : new String[] {"/jersey/stage", "/jersey/resumed"}) {
                assertEquals(429, application.get(later), later);
                assertTrue(application.body(later).contains("quota-exceeded"), later);
            }
            assertEquals(418, application.get("/mapped/stage"));
            assertEquals(418, application.get("/mapped/quote"));
            assertEquals(418, application.get("/mapped/wrapped"));
            assertEquals(418, application.get("/mapped/many?permits=-5"));
            assertEquals(200, application.get("/jersey/routed/free"));
            assertEquals(200, application.get("/jersey/routed/free"));
            assertEquals(200, application.get("/jersey/routed/a"));
            assertEquals(429, application.get("/jersey/routed/b"));
        }
    }
}
