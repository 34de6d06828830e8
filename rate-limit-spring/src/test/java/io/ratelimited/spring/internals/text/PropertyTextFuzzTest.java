package io.ratelimited.spring.internals.text;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.ratelimited.core.Algorithm;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.ZoneId;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Durations and other values of properties, as people write them there and send them to the endpoint. */
@Tag("fuzz")
class PropertyTextFuzzTest {

    private static final List<Class<?>> TYPES = List.of(
            Duration.class,
            Map.class,
            List.class,
            Integer.class,
            Long.class,
            Double.class,
            Algorithm.class,
            ZoneId.class);

    @Timeout(10)
    @FuzzTest
    void aValueIsReadFromTheTextThatItPrints(byte[] input) {
        String text = new String(input, StandardCharsets.UTF_8);
        for (Class<?> type : TYPES) {
            Object value;
            try {
                value = PropertyText.read(text, type);
            } catch (IllegalArgumentException ex) {
                assertThat(ex.getMessage()).isNotBlank();
                continue;
            }
            assertThat(PropertyText.read(PropertyText.text(value), type)).isEqualTo(value);
        }
    }
}
