package io.ratelimited.core.internals.memory.block;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Blocks of keys in memory, and the steps of {@link BlockRule} at their ends. */
class BlockRuleTest {

    private static final Duration BLOCK = Duration.ofSeconds(10);

    private final ManualTicker ticker = new ManualTicker();

    private static Limit limit() {
        return Limit.of("block", Algorithm.TOKEN_BUCKET)
                .rate("1/s")
                .block(BLOCK)
                .blockMax(Duration.ofSeconds(40))
                .build();
    }

    private static void offend(RateLimiter limiter, Object key) {
        assertThat(limiter.tryAcquire(key, 1)).isTrue();
        assertThat(limiter.tryAcquire(key, 1)).isFalse();
    }

    /** B1, B2 and B3. */
    @Test
    void aBlockIsNeverShorterThanStatedAndEndsWithinTheMicrosecond() {
        BlockRule rule = new BlockRule(10, 2, 40);
        for (long now : new long[] {0, 1, 999, 1_000, 1_001, 123_456_789}) {
            long word = rule.offend(BlockRule.NONE, now);
            assertThat(BlockRule.left(word, now)).isBetween(10_000L, 10_999L);
            assertThat(rule.offend(word, now + 9_999)).isEqualTo(word);
            assertThat(BlockRule.left(word, now + 11_000)).isZero();
            assertThat(BlockRule.level(rule.offend(word, now + 11_000))).isEqualTo(2);
        }
    }

    @Test
    void aFactorJustAboveOneGrowsAndThousandsOfOffencesStayAtTheMaximum() {
        assertThat(new BlockRule(1, 1.01, 40).length(5)).isEqualTo(5);
        BlockRule rule = new BlockRule(10, 1_000, 40);
        long word = BlockRule.NONE;
        long now = 0;
        for (int i = 0; i < 3_000; i++) {
            word = rule.offend(word, now);
            now += BlockRule.left(word, now);
        }
        assertThat(BlockRule.level(word)).isEqualTo(1_000);
        assertThat(rule.length(BlockRule.level(word))).isEqualTo(40);
    }

    /** B4. */
    @Test
    void theLaterOfTwoWordsHasTheHigherLevelOfBoth() {
        BlockRule rule = new BlockRule(10, 2, 40);
        long second = rule.offend(rule.offend(BlockRule.NONE, 0), 10_000);
        long first = rule.offend(BlockRule.NONE, 50_000);
        for (long later : new long[] {BlockRule.later(second, first), BlockRule.later(first, second)}) {
            assertThat(BlockRule.left(later, 50_000)).isEqualTo(10_000);
            assertThat(BlockRule.level(later)).isEqualTo(2);
        }
    }

    @Test
    void amongManyThreadsOneBeginsTheBlock() throws Exception {
        Queue<BlockedKey> begun = new ConcurrentLinkedQueue<>();
        RateLimiter limiter = new InMemoryRateLimiter(limit(), ticker, 100);
        limiter.onBlock(begun::add);
        long admitted = Threads.sum(
                8,
                thread -> LongStream.range(0, 500)
                        .filter(i -> limiter.tryAcquire("a", 1))
                        .count());
        assertThat(admitted).isEqualTo(1);
        assertThat(begun).containsExactly(new BlockedKey("a", BLOCK, 1));
    }

    /** An observer that uses the limits again would wait for itself for ever. */
    @Test
    void anObserverMayUseTheLimitsOfTheCall() {
        RateLimiter one = new InMemoryRateLimiter(limit(), ticker, 100);
        RateLimiter other = new InMemoryRateLimiter(limit(), ticker, 100);
        one.onBlock(begun -> {
            one.reset("a");
            assertThat(AllOf.reserve(List.of(Claim.of(one, "a", 1, 0), Claim.of(other, "b", 1, 0)))
                            .isRefused())
                    .isFalse();
        });
        assertThat(one.tryAcquire("a", 1)).isTrue();
        assertThat(AllOf.reserve(List.of(Claim.of(one, "a", 1, 0), Claim.of(other, "a", 1, 0)))
                        .isRefused())
                .isTrue();
        assertThat(other.tryAcquire("b", 1)).isFalse();
    }

    @Test
    void aCallThatOnlyTooManyWaitingCallersRefuseIsNoOffence() {
        RateLimiter limiter =
                new InMemoryRateLimiter(limit().toBuilder().maxWaiting(0).build(), ticker, 100);
        assertThat(limiter.tryAcquire("a", 1)).isTrue();
        long wait = Duration.ofSeconds(1).toNanos();
        assertThat(limiter.reserve("a", 1, wait).isRefused()).isTrue();
        assertThat(limiter.peek("a", 1, 0).blocked()).isFalse();
        assertThat(limiter.reserve("a", 1, 0).decision().blocked()).isTrue();
    }

    @Test
    void aFloodOfKeysThatGoPaysNothingForBlocks() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit(), ticker, 1_000);
        IntStream.range(0, 500)
                .forEach(i -> assertThat(limiter.tryAcquire("k" + i, 1)).isTrue());
        assertThat(limiter.blockedKeys()).isEmpty();
        offend(limiter, "offender");
        assertThat(limiter.blockedKeys()).hasSize(1);
    }
}
