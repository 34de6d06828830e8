package io.ratelimited.spring.internals.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

class PropertyTextTest {

    @Test
    void blanksAroundElementsAndEntriesAreNoPartOfThem() {
        assertThat(PropertyText.read(" a , b,, ", List.class)).isEqualTo(List.of("a", "b"));
        assertThat(PropertyText.read(" a = 5% ,b=1", Map.class)).isEqualTo(Map.of("a", "5%", "b", "1"));
        assertThatThrownBy(() -> PropertyText.read("a=1, b ", Map.class))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("'b' is not an entry such as batch=5%");
    }

    @Test
    void aMeasuredTimeIsRoundedUpToTheMillisecond() {
        assertThat(PropertyText.rounded(Duration.ofNanos(113_398_091))).isEqualTo("0.114s");
        assertThat(PropertyText.rounded(Duration.ofNanos(1))).isEqualTo("0.001s");
        assertThat(PropertyText.rounded(Duration.ofMillis(19_720))).isEqualTo("19.72s");
        assertThat(PropertyText.rounded(Duration.ZERO)).isEqualTo("0s");
    }

    /** A pattern that looks for a comma behind each of them would take hours. */
    @Test
    @Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
    void aMillionBlanksAreReadOnce() {
        String text = "a" + " ".repeat(1_000_000) + "b";
        assertThat(PropertyText.read(text, List.class)).isEqualTo(List.of(text));
        assertThat(PropertyText.read(text + "=1", Map.class)).isEqualTo(Map.of(text, "1"));
    }
}
