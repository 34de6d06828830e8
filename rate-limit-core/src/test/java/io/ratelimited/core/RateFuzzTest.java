package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Texts of rates, as people write them in properties and send them to the endpoint. */
@Tag("fuzz")
class RateFuzzTest {

    @Timeout(10)
    @FuzzTest
    void aRateIsInItsRangeAndReadFromTheTextThatItPrints(byte[] input) {
        String text = new String(input, StandardCharsets.UTF_8);
        Rate rate;
        try {
            rate = Rate.parse(text);
        } catch (InvalidLimitException ex) {
            assertThat(ex.getMessage()).contains(text);
            return;
        }
        assertThat(Rate.parse(rate.toString())).isEqualTo(rate);
        assertThat(rate.permits()).isNotNegative();
        assertThat(rate.period()).isBetween(Duration.ofNanos(1), Duration.ofDays(3_650));
    }
}
