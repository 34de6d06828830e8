package com.example;

import static org.assertj.core.api.Assertions.assertThat;

import com.example.it.Running;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

@ExtendWith(OutputCaptureExtension.class)
class ReadmeTest {

    @Test
    void theSixthCallAtOnceIsRefusedAndNothingIsWarnedOf(CapturedOutput output) {
        try (Running own = new Running(Own.class, "--spring.config.name=none")) {
            assertThat(own.sixCalls("/quotes/ACME")).containsExactly(200, 200, 200, 200, 200, 429);
        }
        assertThat(output).contains("quotes").doesNotContain("WARN");
    }

    @Test
    void theFileChangesTheLimitWithoutABuild() {
        try (Running own = new Running(Own.class)) {
            assertThat(own.sixCalls("/quotes/ACME")).containsOnly(200).hasSize(6);
        }
    }
}
