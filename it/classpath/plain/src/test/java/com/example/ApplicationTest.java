package com.example;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theClassPathLacksThese() {
        for (String type : List.of(
                "org.springframework.boot.SpringApplication",
                "org.springframework.http.HttpHeaders",
                "reactor.core.publisher.Mono",
                "org.slf4j.Logger")) {
            assertThrows(ClassNotFoundException.class, () -> Class.forName(type), type);
        }
    }

    /** Each annotated and named limit rejects once, and the process ends: no thread of ours holds it. */
    @Test
    void callsAreRejectedAndTheApplicationEnds() throws Exception {
        Process application = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        "com.example.Application")
                .redirectErrorStream(true)
                .start();
        try {
            assertTrue(application.waitFor(2, TimeUnit.MINUTES), "has not ended");
            List<String> lines = new String(application.getInputStream().readAllBytes()).lines()
                    .filter(line -> line.matches("done|rejected|mails .*"))
                    .toList();
            assertEquals(List.of("done", "done", "rejected", "mails true false"), lines);
            assertEquals(0, application.exitValue());
        } finally {
            application.destroyForcibly();
        }
    }
}
