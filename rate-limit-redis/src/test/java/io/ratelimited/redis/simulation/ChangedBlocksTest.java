package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Limits with blocks that change. In virtual time. */
@Tag("once")
@Tag("slow")
class ChangedBlocksTest {

    private static final Limit LIMIT = Limit.of("logins", Algorithm.TOKEN_BUCKET)
            .rate("2/d")
            .block(Duration.ofHours(24))
            .charged(true)
            .build();

    private final DirectServer server = new DirectServer();
    private final RedisBackend backend = server.node("node");
    private final RateLimiter limiter = backend.limiter(LIMIT, RedisLimitOptions.DEFAULTS.onFailure(OnFailure.LOCAL));

    @AfterEach
    void close() {
        server.release();
        backend.close();
    }

    /** Makes calls of a key that cost a permit each, while Redis is silent. */
    private void chargeInAnOutage(String key, int calls) {
        server.hold();
        for (int call = 0; call < calls; call++) {
            CompletableFuture<Reservation> asked =
                    limiter.reserveAsync(key, 1, 0).toCompletableFuture();
            server.ticker.advance(Node.TIMEOUT);
            assertThat(asked.join().decision().source()).isEqualTo(Source.FALLBACK);
            asked.join().settle(1);
            asked.join().release();
        }
        server.release();
        server.ticker.advance(Duration.ofSeconds(10));
    }

    /** Where calls are counted anew, blocks end; back under the old numbers they have ended, too. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG", "GCRA"})
    void aChangeOfThePeriodAndBackDoesToBlocksWhatItDoesInMemory(Algorithm algorithm) {
        Limit rarely = Limit.of("guesses", algorithm)
                .rate("2/d")
                .block(Duration.ofHours(24))
                .build();
        Limit often = rarely.toBuilder().rate("2/m").build();
        RedisBackend otherNode = server.node("other");
        RateLimiter memory = new InMemoryRateLimiter(rarely, server.ticker, 100);
        List<RateLimiter> limiters = List.of(
                memory,
                backend.limiter(rarely, RedisLimitOptions.DEFAULTS),
                otherNode.limiter(rarely, RedisLimitOptions.DEFAULTS));
        for (RateLimiter each : limiters) {
            while (each.tryAcquire("k", 1)) {
                assertThat(each.peek("k", 1, 0).blocked()).isFalse();
            }
            assertThat(each.peek("k", 1, 0).blocked()).isTrue();
        }
        for (Limit next : List.of(often, rarely)) {
            server.ticker.advance(Duration.ofMinutes(2));
            limiters.forEach(each -> each.update(next));
            assertThat(limiters)
                    .as(next.toString())
                    .extracting(each -> each.peek("k", 1, 0).blocked())
                    .containsOnly(memory.peek("k", 1, 0).blocked());
        }
        RedisBackend laterNode = server.node("later");
        assertThat(laterNode
                        .limiter(rarely, RedisLimitOptions.DEFAULTS)
                        .peek("k", 1, 0)
                        .blocked())
                .isEqualTo(memory.peek("k", 1, 0).blocked());
        otherNode.close();
        laterNode.close();
    }

    /** Redis knows the block of a key longer than the longest block: for a node that starts, it must have ended that long, too. */
    @ParameterizedTest
    @ValueSource(strings = {"blocks are disabled", "the longest block becomes shorter before", "the period changes"})
    void aBlockThatAChangeHasEndedCountsNowhereHoweverLateANodeStarts(String change) {
        Limit hourly = Limit.of("guesses", Algorithm.FIXED_WINDOW)
                .rate("1/m")
                .block(Duration.ofHours(1))
                .blockFactor(2)
                .blockMax(Duration.ofHours(4))
                .build();
        RateLimiter changed = backend.limiter(hourly, RedisLimitOptions.DEFAULTS);
        assertThat(blockedFor(changed)).isEqualTo(Duration.ofHours(1));
        server.ticker.advance(Duration.ofHours(1));
        assertThat(blockedFor(changed)).isEqualTo(Duration.ofHours(2));
        Limit before = change.contains("shorter")
                ? hourly.toBuilder().blockMax(Duration.ofHours(1)).build()
                : hourly;
        changed.update(before);
        changed.update(
                change.contains("period")
                        ? before.toBuilder().rate("1/s").build()
                        : before.toBuilder().withoutBlocks().build());
        changed.update(hourly);
        server.ticker.advance(Duration.ofHours(5));
        RedisBackend laterNode = server.node("later");
        assertThat(blockedFor(laterNode.limiter(hourly, RedisLimitOptions.DEFAULTS)))
                .isEqualTo(Duration.ofHours(1));
        laterNode.close();
    }

    private static Duration blockedFor(RateLimiter limiter) {
        while (limiter.tryAcquire("k", 1)) {
            assertThat(limiter.peek("k", 1, 0).blocked()).isFalse();
        }
        return limiter.reserve("k", 1, 0).decision().retryAfter();
    }

    @Test
    void aBlockThatBeginsHereHasTheLengthThatTheLimitHasNow() {
        chargeInAnOutage("early", 1);
        limiter.update(LIMIT.toBuilder().block(Duration.ofMinutes(1)).build());
        chargeInAnOutage("late", 2);
        assertThat(limiter.blockedKeys()).containsExactly(new BlockedKey("late", Duration.ofSeconds(50), 1));
        limiter.reserve("late", 1, 0);
        assertThat(limiter.blockedKeys())
                .as("what Redis has")
                .containsExactly(new BlockedKey("late", Duration.ofSeconds(50), 1));
    }
}
