package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Changes as Redis has them, perhaps written by another version or by anyone who can write there. */
@Tag("fuzz")
class ChangeTextFuzzTest {

    private static final Map<LimitProperty, Object> CONFIGURED = LimitProperty.read(Map.of("tiers.gold.rate", "9/s"));

    @Timeout(10)
    @FuzzTest
    void aChangeIsReadFromTheTextThatItPrints(byte[] input) {
        Map<LimitProperty, Object> changes;
        try {
            changes = ChangeText.read(new String(input, StandardCharsets.UTF_8), CONFIGURED);
        } catch (IllegalArgumentException ex) {
            assertThat(ex.getMessage()).isNotBlank();
            return;
        }
        Map<LimitProperty, Object> own = new EnumMap<>(changes);
        Map<String, Map<LimitProperty, Object>> tiers = new TreeMap<>(LimitProperty.tiers(changes));
        if (own.remove(LimitProperty.TIERS) != null && !tiers.equals(LimitProperty.tiers(CONFIGURED))) {
            own.put(LimitProperty.TIERS, tiers);
        }
        if (!own.isEmpty()) {
            assertThat(ChangeText.read(ChangeText.of(own, CONFIGURED), CONFIGURED))
                    .isEqualTo(own);
        }
    }
}
