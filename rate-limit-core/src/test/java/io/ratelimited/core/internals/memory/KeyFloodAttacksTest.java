package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.memory.block.SaltedHash;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Invented keys, more than are remembered, against keys that nobody has seen yet: 5 permits an hour, and each invented key
 * calls once, or spends all that it can have at once.
 */
@Tag("slow")
class KeyFloodAttacksTest {

    private static final int STRANGERS = 10_000;

    /** The most keys that are remembered. */
    int maximum() {
        return 10_000;
    }

    /** How many times as many keys come. */
    List<Double> floods() {
        return List.of(1.5, 3.0);
    }

    static Stream<Algorithm> algorithms() {
        return Algorithm.all().stream().filter(algorithm -> !algorithm.countsCallsInFlight());
    }

    /** Those under which a key has 5 permits at once. Under the others the first call spends all. */
    static Stream<Algorithm> counting() {
        return algorithms().filter(KeyFloodAttacksTest::counts);
    }

    private static boolean counts(Algorithm algorithm) {
        return switch (algorithm) {
            case TOKEN_BUCKET, GCRA, FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG -> true;
            case SMOOTH_BURSTY, WARM_UP, LEAKY_BUCKET, CONCURRENCY, ADAPTIVE, DEFAULT -> false;
        };
    }

    private static Limit limit(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("flood", algorithm).rate("5/h");
        return (algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofHours(1)) : limit).build();
    }

    /** At 3 times as many keys as are remembered, at most 1 % of strangers are refused. */
    @ParameterizedTest
    @MethodSource("counting")
    void keysThatCallOnceDoNotAddUpToALockOut(Algorithm algorithm) {
        for (double times : floods()) {
            if (times <= 3) {
                assertThat(refusedAfter(algorithm, maximum(), times, 1))
                        .as("strangers refused after %s times the most keys".formatted(times))
                        .isLessThanOrEqualTo(STRANGERS / 100);
            }
        }
    }

    /** At twice as many exhausted keys as are remembered, at most 1 % of strangers are rejected; at 3 times, 10 %. */
    @ParameterizedTest
    @MethodSource("algorithms")
    void exhaustedKeysRejectFewOthersUpToThreeTimesTheMostKeys(Algorithm algorithm) {
        for (double times : floods()) {
            if (times <= 3) {
                assertThat(refusedAfter(algorithm, maximum(), times, 5))
                        .as("strangers rejected after %s times the most keys".formatted(times))
                        .isLessThanOrEqualTo(times <= 2 ? STRANGERS / 100 : STRANGERS / 10);
            }
        }
    }

    /** Also one whose state has become that of other keys. The others keep what they have used. */
    @Test
    void aResetForgivesAKeyThatWasEvicted() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit(Algorithm.TOKEN_BUCKET), new ManualTicker(), 100);
        for (int key = 0; key < 40_000; key++) {
            assertThat(limiter.tryAcquire("k" + key, 5) || key > 0).isTrue();
        }
        for (int number = 0; number < 50; number++) {
            String key = "k" + number;
            // It may be evicted again before it calls.
            assertThat(IntStream.range(0, 50).anyMatch(time -> {
                        limiter.reset(key);
                        return limiter.tryAcquire(key, 5);
                    }))
                    .as(key)
                    .isTrue();
        }
        assertThat(limiter.tryAcquire("k" + 50, 1)).isFalse();
    }

    /** Nobody gains by a flood, nor by a flood within which each key comes again. */
    @ParameterizedTest
    @MethodSource("counting")
    void aKeyThatIsEvictedAgainAndAgainGetsItsLimitAndNoMore(Algorithm algorithm) {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit(algorithm), new ManualTicker(), 100);
        int[] granted = new int[1_000];
        for (int round = 0; round < 20; round++) {
            for (int key = 0; key < granted.length; key++) {
                granted[key] += limiter.tryAcquire("key" + key, 1) ? 1 : 0;
            }
        }
        assertThat(IntStream.of(granted).max()).hasValue(5);
        assertThat(IntStream.of(granted).sum()).isGreaterThanOrEqualTo(5 * granted.length * 99 / 100);
    }

    /** Strangers of {@value #STRANGERS} that are refused after a flood that takes ten minutes. */
    int refusedAfter(Algorithm algorithm, int maximum, double times, int calls) {
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit(algorithm), ticker, maximum);
        int flood = (int) (maximum * times);
        for (int key = 0; key < flood; key++) {
            for (int call = 0; call < calls; call++) {
                limiter.tryAcquire("invented" + key, 1);
            }
            ticker.advanceNanos(Duration.ofMinutes(10).toNanos() / flood);
        }
        Threads.until(() -> limiter.keys() <= maximum);
        int refused = 0;
        for (int stranger = 0; stranger < STRANGERS; stranger++) {
            refused += limiter.peek("stranger" + stranger, 1, 0).admitted() ? 0 : 1;
        }
        return refused;
    }

    /** Texts of one {@code hashCode} are easily made; they do not share their places. */
    @Test
    void textsOfOneHashCodeDoNotShareTheirPlaces() {
        SaltedHash hash = new SaltedHash();
        Set<Long> hashes = new HashSet<>();
        for (int i = 0; i < 1 << 12; i++) {
            StringBuilder text = new StringBuilder();
            for (int bit = 0; bit < 12; bit++) {
                text.append((i >> bit & 1) == 0 ? "Aa" : "BB");
            }
            assertThat(text.toString().hashCode()).isEqualTo("Aa".repeat(12).hashCode());
            hashes.add(hash.of(text.toString()) >>> 20);
        }
        assertThat(hashes).hasSize(1 << 12);
        assertThat(new SaltedHash().of("key")).isNotEqualTo(hash.of("key"));
        assertThat(hash.of("key")).isEqualTo(hash.of("key"));
        assertThat(hash.of("key\0")).isNotEqualTo(hash.of("key"));
    }
}
