package io.ratelimited.core.memory.block;

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
import java.time.Instant;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The memory of blocks, and the steps of {@link BlockRule} at their ends. */
class KeyBlocksTest {

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

    /** B4, and the sketch: blocks of evicted keys go on, with their levels. */
    @Test
    void aFloodOfOffendersEndsNoBlockAndForgivesNone() {
        KeyBlocks blocks = new KeyBlocks(limit(), ticker, () -> 100);
        blocks.offend("victim");
        ticker.advance(BLOCK);
        assertThat(blocks.offend("victim")).isEqualTo(new BlockedKey("victim", BLOCK.multipliedBy(2), 2));
        for (int i = 0; i < 2_000; i++) {
            blocks.offend("flood" + i);
        }
        List<String> offenders =
                IntStream.range(0, 2_000).mapToObj(i -> "flood" + i).toList();
        assertThat(offenders).allMatch(key -> blocks.left(key) >= BLOCK.toNanos());
        assertThat(blocks.left("victim")).isGreaterThanOrEqualTo(2 * BLOCK.toNanos());
        ticker.advance(BLOCK.multipliedBy(2));
        blocks.offend("victim");
        assertThat(blocks.left("victim")).isEqualTo(4 * BLOCK.toNanos());
    }

    @Test
    void aKeyThatWasEvictedIsForgivenToo() {
        KeyBlocks blocks = new KeyBlocks(limit(), ticker, () -> 100);
        for (int i = 0; i < 1_000; i++) {
            blocks.offend("flood" + i);
        }
        for (int i = 0; i < 1_000; i++) {
            blocks.forget("flood" + i);
            assertThat(blocks.left("flood" + i)).isZero();
        }
    }

    @Test
    void keysThatHaveNotOffendedAreBlockedByAFloodOnlyWhereAllTheirWordsAreShared() {
        KeyBlocks blocks = new KeyBlocks(limit(), ticker, () -> 100);
        for (int i = 0; i < 500; i++) {
            blocks.offend("flood" + i);
        }
        // Each of three rows has 2,730 words, of which 500 are raised at the most: 0.6 % of all keys share three of
        // them.
        assertThat(IntStream.range(0, 10_000).filter(i -> blocks.left("good" + i) > 0))
                .hasSizeLessThan(300);
    }

    @Test
    void whatIsForgivenIsForgotten() {
        EvictedBlocks evicted = new EvictedBlocks(100);
        BlockRule rule = new BlockRule(10, 2, 40);
        long word = rule.offend(BlockRule.NONE, 0);
        evicted.add("a", word);
        assertThat(evicted.of("a")).isEqualTo(word);
        evicted.forget(each -> rule.untilForgiven(each, 49_999) == 0);
        assertThat(evicted.of("a")).isEqualTo(word);
        evicted.forget(each -> rule.untilForgiven(each, 50_000) == 0);
        assertThat(evicted.of("a")).isEqualTo(BlockRule.NONE);
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

    @ParameterizedTest
    @ValueSource(longs = {Long.MAX_VALUE - 5_000_000_000L, Long.MIN_VALUE, -5_000_000_000L})
    void blocksSurviveTheWrapOfTheClock(long base) {
        ManualTicker wrapping = new ManualTicker(base, Instant.EPOCH);
        KeyBlocks blocks = new KeyBlocks(limit(), wrapping, () -> 100);
        blocks.offend("a");
        wrapping.advance(BLOCK.minusNanos(1));
        assertThat(blocks.left("a")).isEqualTo(1);
        wrapping.advance(Duration.ofNanos(1));
        assertThat(blocks.left("a")).isZero();
    }

    @Test
    void aBlockLearntFromElsewhereReplacesWhatWasKnown() {
        KeyBlocks blocks = new KeyBlocks(limit(), ticker, () -> 100);
        blocks.learn("a", 5_000_000_000L, 3);
        assertThat(blocks.all()).containsExactly(new BlockedKey("a", Duration.ofSeconds(5), 3));
        blocks.learn("a", 1_000_000_000L, 2);
        assertThat(blocks.all()).containsExactly(new BlockedKey("a", Duration.ofSeconds(1), 2));
        blocks.learn("a", 5_000_000_000L, 3);
        ticker.advance(Duration.ofSeconds(5));
        assertThat(blocks.offend("a")).isEqualTo(new BlockedKey("a", Duration.ofSeconds(40), 4));
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
