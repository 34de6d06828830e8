package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Structured fields of responses. */
@Tag("fuzz")
class StructuredItemsFuzzTest {

    @Timeout(10)
    @FuzzTest
    void aListIsReadFromTheTextThatItPrints(byte[] input) {
        Map<String, Map<String, Object>> members = StructuredItems.parse(new String(input, StandardCharsets.UTF_8));
        String printed = members.entrySet().stream()
                .map(member -> quoted(member.getKey()) + parameters(member.getValue()))
                .collect(Collectors.joining(", "));
        if (printed.length() <= 16_384) {
            assertThat(StructuredItems.parse(printed)).isEqualTo(members);
        }
    }

    private static String parameters(Map<String, Object> parameters) {
        return parameters.entrySet().stream()
                .map(parameter -> ";" + parameter.getKey() + value(parameter.getValue()))
                .collect(Collectors.joining());
    }

    private static String value(Object value) {
        return value instanceof Long ? "=" + value : value instanceof String text ? "=" + quoted(text) : "";
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
