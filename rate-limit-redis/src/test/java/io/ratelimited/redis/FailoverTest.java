package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The primary dies under load: in Sentinel, and in Cluster. */
class FailoverTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final long LONGEST_WAIT_MILLIS = 50 + 20 + 400;
    private static final int KEYS = 32;

    private static final Limit LIMIT = Limit.of("failover", Algorithm.TOKEN_BUCKET)
            .rate("1000/s")
            .burst(100)
            .build();

    private static boolean isDecidedByRedis(RateLimiter limiter) {
        for (int i = 0; i < KEYS; i++) {
            Source source = limiter.reserve("key-" + i, 1, 0).decision().source();
            if (source != Source.REDIS && source != Source.DENY_CACHE) {
                return false;
            }
        }
        return true;
    }

    private static boolean isPrimary(RedisProcess server) {
        try {
            return server.ask(commands -> commands.info("replication")).contains("role:master");
        } catch (RedisException ex) {
            // Sentinel closes the connections of a server that it promotes.
            return false;
        }
    }

    private static void survives(String what, RedisBackend backend, RedisProcess primary, RedisProcess replica) {
        RateLimiter limiter = backend.limiter(LIMIT, RedisLimitOptions.DEFAULTS);
        until(() -> isDecidedByRedis(limiter), "start", PATIENCE);
        try (Load load = new Load(limiter, 8, caller -> "key-" + caller)) {
            until(() -> load.decisions(Source.REDIS) > 1000, "load", PATIENCE);
            load.longestMillis();
            primary.kill();
            long begin = System.nanoTime();
            until(() -> load.decisions(Source.FALLBACK) > 100, "fallback", PATIENCE);
            until(() -> isPrimary(replica), "promotion", PATIENCE);
            long promoted = (System.nanoTime() - begin) / 1_000_000;
            until(() -> isDecidedByRedis(limiter), "recovery", PATIENCE);
            long outage = (System.nanoTime() - begin) / 1_000_000;
            long longest = load.longestMillis();
            System.out.printf(
                    "FAILOVER %s: promoted %d ms after kill -9, decided by Redis again at %d ms, longest wait %d ms, %d decided locally%n",
                    what, promoted, outage, longest, load.decisions(Source.FALLBACK));
            assertThat(longest).isLessThan(LONGEST_WAIT_MILLIS);
            assertThat(load.failures()).isZero();
        }
        until(() -> backend.health().state() == RedisHealth.State.UP, "all parts up", PATIENCE);
    }

    @Test
    void sentinelPromotesAReplica() throws Exception {
        List<AutoCloseable> opened = new ArrayList<>();
        try {
            RedisProcess primary = RedisProcess.start();
            opened.add(primary);
            RedisProcess replica = RedisProcess.start("--replicaof", "127.0.0.1", Integer.toString(primary.port()));
            opened.add(replica);
            until(
                    () -> replica.ask(commands -> commands.info("replication")).contains("master_link_status:up"),
                    "replica",
                    PATIENCE);
            RedisURI.Builder uri = RedisURI.builder().withSentinelMasterId("primary");
            for (int i = 0; i < 3; i++) {
                RedisProcess sentinel = RedisProcess.sentinel(primary.port(), 2);
                opened.add(sentinel);
                uri.withSentinel("127.0.0.1", sentinel.port());
                until(() -> sentinel.infoSentinel().contains("slaves=1"), "sentinel knows the replica", PATIENCE);
            }
            RedisProcess last = (RedisProcess) opened.get(opened.size() - 1);
            until(() -> last.infoSentinel().contains("sentinels=3"), "sentinels know each other", PATIENCE);
            RedisClient client = RedisClient.create(uri.build());
            opened.add(() -> client.shutdown(Duration.ZERO, Duration.ofSeconds(1)));
            RedisBackend backend = RedisBackend.of(client, RedisBackendOptions.DEFAULTS.expectedNodes(1));
            opened.add(backend);
            survives("sentinel", backend, primary, replica);
        } finally {
            for (int i = opened.size() - 1; i >= 0; i--) {
                opened.get(i).close();
            }
        }
    }

    @Test
    void theClusterPromotesAReplica() {
        try (RedisCluster cluster = RedisCluster.start()) {
            RedisClusterClient client = cluster.client();
            try (RedisBackend backend = RedisBackend.of(client, RedisBackendOptions.DEFAULTS.expectedNodes(1))) {
                survives("cluster", backend, cluster.primary(0), cluster.replicaOf(0));
            } finally {
                client.shutdown(Duration.ZERO, Duration.ofSeconds(1));
            }
        }
    }
}
