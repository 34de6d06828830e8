package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.SimulatedBackend;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A cluster that serves the slots which it has: no primary has that of one key. In virtual time. */
@Tag("once")
@Tag("slow")
class SlotWithoutPrimaryTest {

    private final DirectServer server = new DirectServer();
    private final Cluster cluster = new Cluster();
    private final RedisBackend node = SimulatedBackend.of(
            cluster,
            RedisBackendOptions.DEFAULTS
                    .ticker(server.ticker)
                    .timeout(Node.TIMEOUT)
                    .expectedNodes(2),
            new Threads(server.ticker, Runnable::run, Runnable::run),
            Runnable::run,
            Runnable::run,
            "node");

    private final class Cluster implements RedisConnector {

        private boolean lacksSlot;

        @Override
        public CompletionStage<Set<String>> discover() {
            return server.discover();
        }

        @Override
        public @Nullable String address(String key) {
            return lacksSlot && key.contains(CanonicalKey.digest("k")) ? null : "server";
        }

        @Override
        public CompletionStage<RedisLink> connect(String address) {
            return server.connect(address);
        }

        @Override
        public boolean isCluster() {
            return true;
        }

        @Override
        public void close() {}
    }

    @AfterEach
    void close() {
        node.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 20})
    void itsBucketIsRefilledAtTheRateOfTheNode(int seconds) {
        RateLimiter limiter = node.limiter(
                Limit.of("search", Algorithm.TOKEN_BUCKET)
                        .rate("60/m")
                        .burst(10)
                        .build(),
                RedisLimitOptions.DEFAULTS);
        server.ticker.advance(Duration.ofSeconds(5));
        cluster.lacksSlot = true;
        int admitted = 0;
        for (int call = 0; call < 40; call++) {
            Reservation one = limiter.reserve("k", 1, 0);
            assertThat(one.decision().source()).isEqualTo(Source.FALLBACK);
            admitted += one.isRefused() ? 0 : 1;
            server.ticker.advance(Duration.ofSeconds(seconds));
        }
        // The share of the burst, and one in two seconds.
        assertThat(admitted).isEqualTo(seconds == 1 ? 5 + 39 / 2 : 40);
        assertThat(node.health().state()).isEqualTo(RedisHealth.State.DEGRADED);
        assertThat(limiter.reserve("other", 1, 0).decision().source()).isEqualTo(Source.REDIS);
        cluster.lacksSlot = false;
        server.ticker.advance(Duration.ofSeconds(1));
        assertThat(node.health().state()).isEqualTo(RedisHealth.State.UP);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.REDIS);
    }
}
