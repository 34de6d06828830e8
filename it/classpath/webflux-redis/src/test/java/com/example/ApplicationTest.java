package com.example;

import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theClassPathLacksThese() {
        assertFalse(Started.has("jakarta.servlet.Filter"));
        assertFalse(Started.has("org.springframework.security.core.Authentication"));
    }

    @Test
    void theSecondRequestIsRejected() {
        try (Started application = new Started(Application.class)) {
            assertEquals(200, application.get("/quote"));
            assertEquals(429, application.get("/quote"));
        }
    }
}
