package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Redis pauses again and again for a little more than the timeout, and never under a call. In virtual time. */
@Tag("once")
class BackgroundCommandsTest {

    private static final Duration PAUSE = Node.TIMEOUT.plusMillis(11);

    private final DirectServer server = new DirectServer();
    private final RedisBackend node = server.node("node");

    @AfterEach
    void close() {
        server.release();
        node.close();
    }

    /** Heartbeats, the pauses of other nodes, settlements, and calls that end or still run. */
    @Test
    void noCallIsDecidedWithoutRedisBecauseACommandIsLateThatNoCallerWaitsFor() {
        RateLimiter quota = node.limiter(
                Limit.of("quota", Algorithm.TOKEN_BUCKET)
                        .rate("1000/s")
                        .charged(true)
                        .build(),
                RedisLimitOptions.DEFAULTS);
        RateLimiter flights = node.limiter(
                Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(100).build(), RedisLimitOptions.DEFAULTS);
        node.pauses().follow((name, lasting) -> {});
        flights.reserve("runs", 1, 0);
        for (int pause = 0; pause < 500; pause++) {
            Reservation call = quota.reserve("k", 2, 0);
            Reservation flight = flights.reserve("k", 1, 0);
            server.hold();
            call.settle(pause % 4);
            flight.release();
            server.ticker.advance(PAUSE);
            CompletableFuture<Reservation> next = quota.reserveAsync("k", 1, 0).toCompletableFuture();
            assertThat(next).as("pause %d", pause).isNotDone();
            server.release();
            assertThat(next.join().decision().source()).isEqualTo(Source.REDIS);
        }
        assertThat(node.health().timeouts()).isGreaterThan(500);
    }
}
