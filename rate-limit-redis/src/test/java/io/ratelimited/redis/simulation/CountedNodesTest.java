package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The number of nodes among which a limit is divided, where it is counted. In one thread, on a time that the test moves. */
@Tag("once")
class CountedNodesTest {

    private static final Duration COUNTING = Duration.ofSeconds(3);

    private final DirectServer server = new DirectServer();
    private final List<RedisBackend> nodes = new ArrayList<>();
    private int outages;

    private RateLimiter begin(int number) {
        for (int i = 0; i < number; i++) {
            nodes.add(server.node("node" + nodes.size(), 0));
        }
        Limit limit = Limit.of("shared", Algorithm.FIXED_WINDOW).rate("60/d").build();
        return nodes.get(0).limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    @AfterEach
    void close() {
        server.release();
        nodes.forEach(RedisBackend::close);
    }

    private void outage(RateLimiter limiter) {
        server.hold();
        limiter.reserveAsync("late", 1, 0);
        server.ticker.advance(Node.TIMEOUT.multipliedBy(3));
        assertThat(nodes.get(0).health().state()).isEqualTo(RedisHealth.State.DOWN);
    }

    /** The share of a node, in an outage that ends with the look at it. */
    private int share(RateLimiter limiter) {
        outage(limiter);
        int admitted = 0;
        String key = "k" + outages++;
        while (admitted <= 60) {
            CompletableFuture<Reservation> asked =
                    limiter.reserveAsync(key, 1, 0).toCompletableFuture();
            assertThat(asked.join().decision().source()).isEqualTo(Source.FALLBACK);
            if (asked.join().isRefused()) {
                break;
            }
            admitted++;
        }
        server.release();
        return admitted;
    }

    /** The others are slower: they have not reported yet. */
    @ParameterizedTest
    @ValueSource(ints = {50, 250, 1_200, 2_400})
    void aServerThatHasRestartedEmptyCountsNoFewerNodesUntilAllHaveHadTimeToReport(int millis) {
        RateLimiter limiter = begin(6);
        server.ticker.advance(COUNTING.plusSeconds(1));
        outage(limiter);
        nodes.subList(1, 6).forEach(RedisBackend::close);
        server.store().clear();
        server.release();
        server.ticker.advance(Duration.ofMillis(millis));
        assertThat(share(limiter)).isEqualTo(10);
        // The time of an outage does not count: nobody can report.
        server.ticker.advance(Duration.ofMillis(millis));
        assertThat(share(limiter)).isEqualTo(10);
        server.ticker.advance(COUNTING.plusSeconds(1));
        assertThat(share(limiter)).isEqualTo(60);
    }

    @Test
    void aNodeThatHasLeftIsCountedForThreeSeconds() {
        RateLimiter limiter = begin(2);
        server.ticker.advance(COUNTING);
        assertThat(share(limiter)).isEqualTo(30);
        server.ticker.advance(Duration.ofSeconds(1));
        nodes.get(1).close();
        server.ticker.advance(COUNTING.minusMillis(500));
        assertThat(nodes.get(0).health().nodes()).isOne();
        assertThat(share(limiter)).isEqualTo(30);
        server.ticker.advance(COUNTING.plusSeconds(1));
        assertThat(share(limiter)).isEqualTo(60);
    }

    @Test
    void aNodeThatHasBegunAssumesFourForThreeSecondsAndMoreIfItCountsMore() {
        RateLimiter limiter = begin(1);
        server.ticker.advance(COUNTING.minusMillis(500));
        assertThat(nodes.get(0).health().nodes()).isOne();
        assertThat(share(limiter)).isEqualTo(15);
        server.ticker.advance(COUNTING.minusMillis(1));
        begin(4);
        server.ticker.advance(Duration.ofSeconds(1));
        assertThat(share(limiter)).isEqualTo(12);
    }
}
