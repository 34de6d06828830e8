package org.springframework.samples.vets;

import static org.assertj.core.api.Assertions.assertThat;

import com.example.it.Running;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** An application whose package begins with org.springframework. */
@ExtendWith(OutputCaptureExtension.class)
class VetsTest {

    @Test
    void itsLimitIsKnownAtTheStartAndExact(CapturedOutput log) {
        try (Running vets = new Running(Vets.class)) {
            assertThat(log).contains("Rate limit vets: token-bucket, rate 5/h, burst 5, policy reject, key clientIp");
            assertThat(vets.sixCalls("/vets")).containsExactly(200, 200, 200, 200, 200, 429);
        }
    }

    @Test
    void soIsThatOfAProperty(CapturedOutput log) {
        try (Running vets = new Running(Vets.class, "--rate-limit.limits.vets.rate=3/h")) {
            assertThat(log).contains("Rate limit vets: token-bucket, rate 3/h, burst 3, policy reject, key clientIp");
            assertThat(vets.sixCalls("/vets")).containsExactly(200, 200, 200, 429, 429, 429);
        }
    }
}
