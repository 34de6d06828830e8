package com.example;

import static org.assertj.core.api.Assertions.assertThat;

import com.example.it.Running;
import org.junit.jupiter.api.Test;

class ReadmeTest {

    @Test
    void theSixthCallAtOnceIsRefused() {
        try (Running own = new Running(Own.class, "--spring.config.name=none")) {
            assertThat(own.sixCalls("/quotes/ACME")).containsExactly(200, 200, 200, 200, 200, 429);
        }
    }

    @Test
    void theFileChangesTheLimitWithoutABuild() {
        try (Running own = new Running(Own.class)) {
            assertThat(own.sixCalls("/quotes/ACME")).containsOnly(200).hasSize(6);
        }
    }
}
