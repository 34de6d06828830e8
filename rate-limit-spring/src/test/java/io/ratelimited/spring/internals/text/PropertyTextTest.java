package io.ratelimited.spring.internals.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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

    /** A pattern that looks for a comma behind each of them would take hours. */
    @Test
    @Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
    void aMillionBlanksAreReadOnce() {
        String text = "a" + " ".repeat(1_000_000) + "b";
        assertThat(PropertyText.read(text, List.class)).isEqualTo(List.of(text));
        assertThat(PropertyText.read(text + "=1", Map.class)).isEqualTo(Map.of(text, "1"));
    }
}
