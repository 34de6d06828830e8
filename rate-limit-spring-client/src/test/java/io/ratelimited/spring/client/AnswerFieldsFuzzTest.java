package io.ratelimited.spring.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.ratelimited.spring.fields.Answer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Headers of responses, in all dialects. */
@Tag("fuzz")
class AnswerFieldsFuzzTest {

    private static final long YEAR = Duration.ofDays(367).toNanos();

    @Timeout(10)
    @FuzzTest
    void aServerCannotSayMoreThanItCanMean(byte[] input) {
        String text = new String(input, StandardCharsets.UTF_8);
        Map<String, List<String>> fields = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        text.lines().forEach(line -> {
            String[] field = line.split(":", 2);
            fields.computeIfAbsent(field[0], name -> new ArrayList<>()).add(field.length == 1 ? "" : field[1]);
        });
        Answer answer = AnswerFields.read(429, fields::get, 1_800_000_000_000L);
        assertThat(answer.retryAfterNanos()).isBetween(0L, YEAR);
        answer.quotas().forEach(quota -> {
            assertThat(quota.remaining()).isNotNegative();
            assertThat(quota.resetNanos()).isBetween(1L, YEAR);
            assertThat(quota.windowNanos()).isBetween(Answer.Quota.UNKNOWN, YEAR);
        });
        assertThat(AnswerFields.read(429, fields::get, 1_800_000_000_000L)).isEqualTo(answer);
    }

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
