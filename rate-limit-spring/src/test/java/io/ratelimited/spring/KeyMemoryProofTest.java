package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.limit.KeyMemory;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The bytes that keys and their blocks take after a flood of five times as many as are remembered. */
@Tag("proof")
class KeyMemoryProofTest {

    private static final int MAXIMUM = 100_000;

    static Stream<Limit> limits() {
        return Stream.of(Algorithm.TOKEN_BUCKET, Algorithm.SLIDING_LOG)
                .flatMap(algorithm -> Stream.of(
                        Limit.of("keys", algorithm)
                                .rate("5/h")
                                .block(Duration.ofHours(1))
                                .build(),
                        Limit.of("keys", algorithm)
                                .rate("5/h")
                                .block(Duration.ofHours(1))
                                .charged(true)
                                .build()));
    }

    @ParameterizedTest
    @MethodSource("limits")
    void keysAndBlocksTakeNoMoreThanTheSizingCounts(Limit limit) {
        long before = used();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, new ManualTicker(), MAXIMUM);
        for (int key = 0; key < 5 * MAXIMUM; key++) {
            String text = "%064d".formatted(key);
            for (int call = 0; call < 6; call++) {
                Reservation reservation = limiter.reserve(text, 1, 0);
                if (limit.isCharged()) {
                    reservation.settle(1);
                }
            }
        }
        Threads.until(() -> limiter.keys() <= MAXIMUM);
        long each = (used() - before) / MAXIMUM;
        assertThat(limiter.keys()).isPositive();
        assertThat(each).isLessThanOrEqualTo(KeyMemory.bytesPerKey(limit));
    }

    private static long used() {
        Runtime runtime = Runtime.getRuntime();
        for (int i = 0; i < 5; i++) {
            runtime.gc();
        }
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
