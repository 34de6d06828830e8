package io.ratelimited.redis;

import io.ratelimited.core.BlockContract;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;

/** The contract of blocks on a cluster, where the servers of several limits differ. */
@Tag("proof")
class RedisClusterBlockContractTest extends BlockContract {

    private static RedisCluster cluster;
    private RedisBackend backend;

    @BeforeAll
    static void start() {
        cluster = RedisCluster.start(Duration.ofSeconds(30));
    }

    @AfterAll
    static void stop() {
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
                    RedisServers.connector(cluster.settings()),
                    RedisBackendOptions.DEFAULTS.ticker(ticker).timeout(Duration.ofSeconds(20)),
                    time -> ticker.epochNanos() / 1000 + RedisServers.OUTLIVES);
        }
        return backend.limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    /** The timelines themselves are those of {@link RedisBlockContractTest}. */
    @Override
    protected int timelines() {
        return 10;
    }
}
