package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class KeyMemoryTest {

    /** Nobody knows what its callers have by their own numbers. Of charges a key keeps a few instants. */
    @Test
    void anUnlimitedLogTakesAsMuchAsABucket() {
        for (boolean numbers : new boolean[] {false, true}) {
            assertThat(KeyMemory.bytesPerKey(log("unlimited").build(), numbers))
                    .isEqualTo(KeyMemory.bytesPerKey(
                            Limit.of("keys", Algorithm.TOKEN_BUCKET)
                                    .rate("unlimited")
                                    .build(),
                            numbers))
                    .isEqualTo(KeyMemory.bytesPerKey(log("1/h").build(), numbers) - 3 * (64 + 16));
        }
        long few = KeyMemory.bytesPerKey(charged("16/h"), false) - 6 * (64 + 16 * 16);
        assertThat(KeyMemory.bytesPerKey(charged("unlimited"), false)).isEqualTo(few);
    }

    @Test
    void aWindowTakesMoreForEachOfItsSlots() {
        Limit window = Limit.of("keys", Algorithm.SLIDING_WINDOW).rate("5/h").build();
        Limit larger = window.toBuilder().slots(1_000).build();
        assertThat(KeyMemory.bytesPerKey(larger, false))
                .isEqualTo(KeyMemory.bytesPerKey(window, false) + 24L * (1_000 - window.slots()));
        KeyMemory small = new KeyMemory(null, 256 << 20);
        assertThat(small.maximumKeys(larger, false, 1) * KeyMemory.bytesPerKey(larger, false))
                .isLessThanOrEqualTo(256 << 20);
        assertThat(small.maximumKeys(window, false, 1) * KeyMemory.bytesPerKey(window, false))
                .isLessThanOrEqualTo(128 << 20);
    }

    private static Limit charged(String rate) {
        return log(rate).charged(true).block(Duration.ofHours(1)).build();
    }

    private static Limit.Builder log(String rate) {
        return Limit.of("keys", Algorithm.SLIDING_LOG).rate(rate);
    }
}
