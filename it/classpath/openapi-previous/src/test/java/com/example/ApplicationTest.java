package com.example;

import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theDocumentShowsTheRejection() {
        try (Started application = new Started(Application.class)) {
            assertEquals(200, application.get("/quote"));
            assertEquals(429, application.get("/quote"));
            String document = application.body("/v3/api-docs");
            assertTrue(document.contains("\"429\""), document);
        }
    }

    @Test
    void theVersionIsThatOfTheApplication() {
        assertTrue(org.springdoc.core.configuration.SpringDocConfiguration.class
                .getProtectionDomain().getCodeSource().getLocation().getPath().contains("3.0.3"));
    }
}
