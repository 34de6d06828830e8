package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Blocks are turned off and on again, and a node that starts later does not hear of it in time. In virtual time. */
@Tag("once")
@Tag("slow")
class LiftedBlocksTest {

    private static final Limit LIMIT = Limit.of("logins", Algorithm.TOKEN_BUCKET)
            .rate("1/s")
            .block(Duration.ofHours(1))
            .build();

    private final DirectServer server = new DirectServer();
    private final RedisBackend one = server.node("one");
    private final RedisBackend later = server.node("later");

    @BeforeEach
    void lift() {
        RateLimiter limiter = one.limiter(LIMIT, RedisLimitOptions.DEFAULTS);
        limiter.tryAcquire("k", 1);
        assertThat(limiter.reserve("k", 1, 0).decision().blocked()).isTrue();
        limiter.update(LIMIT.toBuilder().withoutBlocks().build());
        limiter.update(LIMIT);
        server.ticker.advance(Duration.ofMinutes(1));
    }

    @AfterEach
    void close() {
        server.release();
        one.close();
        later.close();
    }

    /** Starts to use the limit while Redis is silent, for longer than the timeout. */
    private RateLimiter startInVain() {
        server.hold();
        RateLimiter limiter = later.limiter(LIMIT, RedisLimitOptions.DEFAULTS);
        server.ticker.advance(Duration.ofMillis(60));
        return limiter;
    }

    private static void isAdmittedByRedis(RateLimiter limiter) {
        Decision decision = limiter.reserve("k", 1, 0).decision();
        assertThat(decision.source()).isEqualTo(Source.REDIS);
        assertThat(decision.admitted()).isTrue();
    }

    @Test
    void theNodeAsksAgainWhenTheReplyIsLate() {
        RateLimiter limiter = startInVain();
        server.release();
        isAdmittedByRedis(limiter);
    }

    @Test
    void theNodeAsksAgainWhenTheReplyIsLost() {
        RateLimiter limiter = startInVain();
        server.lose();
        server.release();
        server.ticker.advance(Duration.ofSeconds(1));
        isAdmittedByRedis(limiter);
    }
}
