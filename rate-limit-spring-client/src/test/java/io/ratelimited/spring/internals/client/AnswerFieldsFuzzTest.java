package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.ratelimited.spring.fields.ResponseLimits;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
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
        ResponseLimits answer = ResponseHeaders.read(429, fields::get, 1_800_000_000_000L);
        assertThat(answer.retryAfterNanos()).isBetween(0L, YEAR);
        answer.quotas().forEach(quota -> {
            assertThat(quota.remaining()).isNotNegative();
            assertThat(quota.resetNanos()).isBetween(1L, YEAR);
            assertThat(quota.windowNanos()).isBetween(ResponseLimits.Quota.UNKNOWN, YEAR);
        });
        assertThat(ResponseHeaders.read(429, fields::get, 1_800_000_000_000L)).isEqualTo(answer);
    }
}
