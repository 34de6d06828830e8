package com.example;

import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theClassPathLacksThese() {
        assertFalse(Started.has("jakarta.servlet.Filter"));
        assertFalse(Started.has("io.micrometer.core.instrument.MeterRegistry"));
        assertFalse(Started.has("org.springframework.boot.actuate.endpoint.annotation.Endpoint"));
    }

    @Test
    void theSecondLoginIsRejected() {
        try (Started application = new Started(Application.class)) {
            assertNotEquals(429, application.post("/login", "application/x-www-form-urlencoded", "username=user&password=guess"));
            assertEquals(429, application.post("/login", "application/x-www-form-urlencoded", "username=user&password=guess"));
        }
    }
}
