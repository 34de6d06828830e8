package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.RedisServers;
import io.ratelimited.redis.internals.limiter.KnownBlocks.Known;
import io.ratelimited.redis.internals.script.ScriptBlocks.State;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Replies about one key that a node takes over in another order than Redis has sent them. */
class OlderRepliesTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static final State BLOCKED = new State(Duration.ofMinutes(10).toNanos(), 1);
    /** Redis knows of no block, and has never known of one. */
    private static final State UNKNOWN = new State(0, 0, 0, false, 0, 0);

    private final ManualTicker time = RedisServers.ticker();
    private final RedisRateLimiter limiter = (RedisRateLimiter) REDIS.backend(time)
            .limiter(
                    Limit.of("late", Algorithm.TOKEN_BUCKET)
                            .rate("1/h")
                            .block(Duration.ofMinutes(10))
                            .build(),
                    RedisLimitOptions.DEFAULTS);

    @Test
    void aReplyToAQuestionFromBeforeABlockDoesNotSayThatRedisHasLostIt() {
        Known asked = limiter.blocks.beforeAsking("k", limiter.parameters());
        limiter.blocks.learn("k", limiter.parameters(), BLOCKED, asked);
        Known block = limiter.blocks.beforeAsking("k", limiter.parameters());
        limiter.blocks.learn("k", limiter.parameters(), UNKNOWN, asked);
        assertThat(block).isNotNull();
        assertThat(limiter.blocks.beforeAsking("k", limiter.parameters())).isSameAs(block);
    }

    /** Even if Redis has been told of the block again before anybody looks at the reply. */
    @Test
    void theReplyOfARedisThatHasLostABlockHasTheBlock() {
        assertThat(limiter.blocks.learn("k", limiter.parameters(), BLOCKED, null))
                .isNull();
        assertThat(limiter.blocks.learn(
                        "k", limiter.parameters(), UNKNOWN, limiter.blocks.beforeAsking("k", limiter.parameters())))
                .isEqualTo(BLOCKED);
    }

    @Test
    void aReplyToALaterQuestionSaysThatRedisHasLostTheBlockWhichHolds() {
        limiter.blocks.learn("k", limiter.parameters(), BLOCKED, null);
        limiter.blocks.learn(
                "k", limiter.parameters(), UNKNOWN, limiter.blocks.beforeAsking("k", limiter.parameters()));
        assertThat(limiter.peek("k", 1, 0).blocked()).isTrue();
    }

    /** This node takes a block to have begun when it has learned of it; the key was forgiven a moment before. */
    @Test
    void aForgivenessEndsABlockWhoseReplyWasOnItsWay() {
        Duration moment = Duration.ofMillis(40);
        time.advance(moment);
        limiter.blocks.learn("k", limiter.parameters(), BLOCKED, null);
        Known block = limiter.blocks.beforeAsking("k", limiter.parameters());
        State forgiven = new State(-moment.toNanos() / 2, 0, 0, true, moment.toNanos() / 2, 0);
        assertThat(limiter.blocks.learn("k", limiter.parameters(), forgiven, block))
                .isNull();
        assertThat(limiter.peek("k", 1, 0).blocked()).isFalse();
    }

    /** Redis is told of the block by a node that has not heard of the forgiveness. */
    @Test
    void aForgivenBlockDoesNotComeBackByTheNodeThatHasLearnedOfItLate() {
        limiter.reset("k");
        time.advance(Duration.ofMillis(40));
        limiter.blocks.learn("k", limiter.parameters(), BLOCKED, null);
        limiter.blocks.learn(
                "k", limiter.parameters(), UNKNOWN, limiter.blocks.beforeAsking("k", limiter.parameters()));
        Threads.until(() -> !limiter.peek("k", 1, 0).blocked());
    }
}
