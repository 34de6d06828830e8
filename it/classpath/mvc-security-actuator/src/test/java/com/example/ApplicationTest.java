package com.example;

import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theClassPathLacksThese() {
        assertFalse(Started.has("reactor.core.publisher.Mono"));
    }

    @Test
    void theSecondLoginIsRejected() {
        try (Started application = new Started(Application.class)) {
            assertNotEquals(429, application.post("/login", "application/x-www-form-urlencoded", "username=user&password=guess"));
            assertEquals(429, application.post("/login", "application/x-www-form-urlencoded", "username=user&password=guess"));
        }
    }
}
