package com.example;

import static org.assertj.core.api.Assertions.assertThat;

import com.example.it.Running;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class HourTest {

    @Test
    void theRefusedCallIsInTheFirstQuery() {
        try (Running own = new Running(Own.class, "--management.endpoints.web.exposure.include=prometheus")) {
            assertThat(own.sixCalls("/quotes/ACME")).containsExactly(200, 200, 200, 200, 200, 429);
            assertThat(own.get("/actuator/prometheus"))
                    .containsPattern("(?m)^rate_limit_decisions_total\\{.*limit=\"quotes\".*outcome=\"rejected\".*\\} 1\\.0$");
        }
    }

    /** Writes the document for `.ci/run`, which lints it. */
    @Test
    void thereIsADocument() throws IOException {
        try (Running own = new Running(Own.class)) {
            String document = own.get("/v3/api-docs");
            assertThat(document).contains("/quotes/{symbol}", "429");
            Files.writeString(Path.of("target/openapi.json"), document);
        }
    }
}
