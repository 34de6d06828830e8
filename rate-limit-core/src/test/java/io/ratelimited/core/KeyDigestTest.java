package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.util.List;
import org.junit.jupiter.api.Test;

class KeyDigestTest {

    @Test
    void aKeyOfUpTo256CharactersIsItself() {
        String key = "k".repeat(256);
        assertThat(KeyDigest.shorten(key)).isSameAs(key);
        assertThat(KeyDigest.shorten(42L)).isEqualTo(42L);
        List<String> parts = List.of("k".repeat(300));
        assertThat(KeyDigest.shorten(parts)).isSameAs(parts);
    }

    @Test
    void aLongerKeyIsItsSha256() {
        assertThat(KeyDigest.shorten("a".repeat(257)))
                .isEqualTo("sha256:e8d95cc2b4bc198c54b40bd214df958afb65f5e73d2c2eafe0593cf5c635c1f0");
        assertThat((String) KeyDigest.shorten("é".repeat(1_000_000)))
                .hasSize(71)
                .startsWith("sha256:");
        assertThat(KeyDigest.shorten("a".repeat(257))).isNotEqualTo(KeyDigest.shorten("a".repeat(258)));
    }

    @Test
    void longKeysHaveBudgetsOfTheirOwn() {
        RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("long", Algorithm.TOKEN_BUCKET).rate("1/s").build(), new ManualTicker(), 10);
        assertThat(limiter.tryAcquire("x".repeat(5_000) + 1, 1)).isTrue();
        assertThat(limiter.tryAcquire("x".repeat(5_000) + 1, 1)).isFalse();
        assertThat(limiter.tryAcquire("x".repeat(5_000) + 2, 1)).isTrue();
    }
}
