package io.ratelimited.redis;

import io.lettuce.core.cluster.RedisClusterClient;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiterContract;
import io.ratelimited.redis.connection.LettuceConnector;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;

/** The whole contract on a cluster. */
@Tag("proof")
class RedisClusterContractTest extends RateLimiterContract {

    private static RedisCluster cluster;
    private static RedisClusterClient client;
    private RedisBackend backend;

    @BeforeAll
    static void start() {
        cluster = RedisCluster.start(Duration.ofSeconds(30));
        client = cluster.client();
    }

    @AfterAll
    static void stop() {
        client.shutdown(Duration.ZERO, Duration.ofSeconds(1));
        cluster.close();
    }

    @BeforeEach
    void flush() {
        cluster.flush();
    }

    @AfterEach
    void close() {
        if (backend != null) {
            backend.close();
        }
    }

    @Override
    protected RateLimiter limiter(Limit limit) {
        if (backend == null) {
            backend = RedisBackend.of(
                    LettuceConnector.like(client),
                    RedisBackendOptions.DEFAULTS.ticker(ticker).timeout(Duration.ofSeconds(20)),
                    time -> ticker.epochNanos() / 1000 + RedisServers.OUTLIVES);
        }
        return backend.limiter(limit, RedisLimitOptions.DEFAULTS);
    }
}
