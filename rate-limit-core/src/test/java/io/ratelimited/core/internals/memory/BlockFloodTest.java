package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** More violating keys than are remembered, against keys that call for the first time: under 5 a minute, blocked for a while. */
@Tag("slow")
class BlockFloodTest {

    private static final int STRANGERS = 5_000;

    private final ManualTicker ticker = new ManualTicker();
    private final List<BlockedKey> begun = new CopyOnWriteArrayList<>();

    /** The most keys that are remembered. */
    int maximum() {
        return 5_000;
    }

    /** Violating keys, and how long they take to come. */
    record Flood(double times, Duration lasting, Duration block, boolean charged) {}

    static List<Flood> floods() {
        return List.of(
                new Flood(1.5, Duration.ofSeconds(10), Duration.ofMinutes(10), false),
                new Flood(2, Duration.ofSeconds(10), Duration.ofMinutes(10), false),
                new Flood(2, Duration.ofMinutes(30), Duration.ofHours(1), false),
                new Flood(2, Duration.ofSeconds(10), Duration.ofMinutes(10), true));
    }

    private RateLimiter limiter(Flood flood) {
        return limiter(flood, maximum());
    }

    private RateLimiter limiter(Flood flood, int maximum) {
        RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("flood", Algorithm.TOKEN_BUCKET)
                        .rate("5/m")
                        .block(flood.block)
                        .blockMax(Duration.ofDays(1))
                        .charged(flood.charged)
                        .build(),
                ticker,
                maximum);
        limiter.onBlock(begun::add);
        return limiter;
    }

    private static void violate(RateLimiter limiter, Object key, boolean charged) {
        for (int call = 0; call < 6; call++) {
            Reservation reservation = limiter.reserve(key, 1, 0);
            if (charged) {
                reservation.settle(1);
            }
        }
    }

    private void flood(RateLimiter limiter, Flood flood) {
        flood(limiter, flood, maximum());
    }

    private void flood(RateLimiter limiter, Flood flood, int maximum) {
        int keys = (int) (flood.times * maximum);
        for (int key = 0; key < keys; key++) {
            violate(limiter, "bad" + key, flood.charged);
            ticker.advance(flood.lasting.dividedBy(keys));
        }
        Threads.until(() -> limiter.keys() <= maximum);
    }

    /** Strangers, each of which calls once, that are rejected after a flood, in percent. */
    double rejected(Flood flood, int maximum) {
        RateLimiter limiter = limiter(flood, maximum);
        flood(limiter, flood, maximum);
        long rejected = IntStream.range(0, STRANGERS)
                .filter(stranger -> !limiter.tryAcquire("stranger" + stranger, 1))
                .count();
        return 100.0 * rejected / STRANGERS;
    }

    @ParameterizedTest
    @MethodSource("floods")
    void aFloodOfViolatingKeysUpToTwiceTheMostKeysRejectsAtMostOnePercentOfOthers(Flood flood) {
        assertThat(rejected(flood, maximum())).isLessThanOrEqualTo(1);
        assertThat(begun).noneMatch(block -> block.key().toString().contains("stranger"));
    }

    @ParameterizedTest
    @MethodSource("floods")
    void aFloodEndsNoBlockAndForgivesNone(Flood flood) {
        RateLimiter limiter = limiter(flood);
        violate(limiter, "victim", flood.charged);
        ticker.advance(flood.block);
        violate(limiter, "victim", flood.charged);
        flood(limiter, new Flood(flood.times, Duration.ofSeconds(1), flood.block, flood.charged));
        assertThat(limiter.peek("victim", 1, 0).blocked()).isTrue();
        assertThat(limiter.peek("victim", 1, 0).retryAfter())
                .isGreaterThan(flood.block.multipliedBy(2).minusMinutes(1));
        assertThat(IntStream.range(0, (int) (flood.times * maximum())))
                .allMatch(key -> limiter.peek("bad" + key, 1, 0).blocked());
    }

    /** What evicted keys have used is shared, so it may reject others, who have done nothing. */
    @Test
    void aRejectionByWhatOtherKeysHaveLeftIsNoViolation() {
        Limit limit = Limit.of("flood", Algorithm.TOKEN_BUCKET)
                .rate("5/h")
                .block(Duration.ofMinutes(10))
                .build();
        RateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 1);
        limiter.onBlock(begun::add);
        for (int key = 0; key < 100_000; key++) {
            limiter.tryAcquire("used" + key, 5);
        }
        int rejected = 0;
        for (int stranger = 0; stranger < 100; stranger++) {
            for (int call = 0; call < 3; call++) {
                rejected += limiter.tryAcquire("stranger" + stranger, 1) ? 0 : 1;
            }
        }
        assertThat(rejected).isPositive();
        assertThat(begun).isEmpty();
    }

    @Test
    void aKeyThatWasEvictedWithItsBudgetUsedUpViolatesWhenItComesAgain() {
        Flood flood = new Flood(1.5, Duration.ofSeconds(1), Duration.ofMinutes(10), false);
        RateLimiter limiter = limiter(flood);
        int keys = (int) (1.2 * maximum());
        for (int key = 0; key < keys; key++) {
            limiter.tryAcquire("used" + key, 5);
        }
        Threads.until(() -> limiter.keys() <= maximum());
        // The others share cells by now, and might have used nothing.
        assertThat(IntStream.range(0, keys)
                        .filter(key ->
                                limiter.reserve("used" + key, 1, 0).decision().blocked()))
                .hasSizeGreaterThan(keys * 9 / 10);
    }

    @Test
    void aResetForgivesAKeyThatWasEvicted() {
        Flood flood = new Flood(1.5, Duration.ofSeconds(1), Duration.ofMinutes(10), false);
        RateLimiter limiter = limiter(flood);
        violate(limiter, "victim", false);
        flood(limiter, flood);
        limiter.reset("victim");
        flood(limiter, flood);
        assertThat(limiter.tryAcquire("victim", 5)).isTrue();
    }

    /** It has no state that a reset could replace. */
    @Test
    void whatAnEvictedKeyReservedBeforeItsResetIsNoViolation() {
        RateLimiter limiter = limiter(new Flood(1, Duration.ZERO, Duration.ofMinutes(10), true), 4);
        Reservation before = limiter.reserve("victim", 5, 0);
        Threads.until(() -> {
            IntStream.range(0, 100).forEach(key -> limiter.tryAcquire("used" + key, 1));
            return limiter.knownKeys().noneMatch("victim"::equals);
        });
        ticker.advance(Duration.ofMillis(1));
        limiter.reset("victim");
        Reservation after = limiter.reserve("victim", 5, 0);
        before.settle(5);
        assertThat(begun).isEmpty();
        after.settle(5);
        assertThat(begun).hasSize(1);
    }
}
