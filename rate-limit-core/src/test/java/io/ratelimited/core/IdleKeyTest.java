package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What a key has used is neither forgotten nor told as forgotten, however long the key and the limiter were idle. */
class IdleKeyTest {

    private final ManualTicker ticker = new ManualTicker();
    private final RateLimiter limiter = new InMemoryRateLimiter(
            Limit.of("idle", Algorithm.TOKEN_BUCKET).rate("10/s").burst(10).build(), ticker, 100);

    @Test
    void theFirstCallAfterARestIsCountedAndTold() {
        for (int round = 0; round < 5; round++) {
            Reservation reservation = limiter.reserve("key", 4, 0);
            assertThat(reservation.decision().remaining()).isEqualTo(6);
            assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(6);
            assertThat(limiter.tryAcquire("key", 6)).isTrue();
            assertThat(limiter.tryAcquire("key", 1)).isFalse();
            ticker.advance(Duration.ofHours(1));
        }
    }

    @Test
    void debtOutlivesTheTimeAfterWhichAnIdleKeyIsDropped() {
        assertThat(limiter.tryAcquire("key", 10)).isTrue();
        for (int call = 0; call < 10; call++) {
            assertThat(limiter.reserve("key", 10, Long.MAX_VALUE).isRefused()).isFalse();
        }
        ticker.advance(Duration.ofSeconds(5));
        assertThat(limiter.tryAcquire("other", 1)).isTrue();
        assertThat(limiter.peek("key", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(5_100));
        assertThat(limiter.tryAcquire("key", 1)).isFalse();
    }
}
