package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The primary dies under load: in Sentinel, and in Cluster. Its short form is {@link FrozenPrimaryTest}. */
@Tag("proof")
@Tag("once")
class FailoverTest {

    private static final Duration PATIENCE = Duration.ofMinutes(2);
    /** The timeout and 20 ms. */
    private static final long LONGEST_WAIT_MILLIS = 50 + 20;

    private static final Duration RECOVERY = Duration.ofSeconds(2);
    private static final int KEYS = 32;

    private static final Limit LIMIT = Limit.of("failover", Algorithm.TOKEN_BUCKET)
            .rate("1000/s")
            .burst(100)
            .build();

    /** Until Redis has decided about every key. A late reply on a busy machine concerns one key, and its own next call. */
    private static void awaitRedis(RateLimiter limiter, String what) {
        for (int i = 0; i < KEYS; i++) {
            String key = "key-" + i;
            until(() -> isDecidedByRedis(limiter, key), what, PATIENCE);
        }
    }

    private static boolean isDecidedByRedis(RateLimiter limiter, String key) {
        Source source = limiter.reserve(key, 1, 0).decision().source();
        return source == Source.REDIS || source == Source.DENY_CACHE;
    }

    private static boolean isPrimary(RedisProcess server) {
        try {
            return server.ask(commands -> commands.info("replication")).contains("role:master");
        } catch (RedisException ex) {
            // Sentinel closes the connections of a server that it promotes.
            return false;
        }
    }

    /** @param isBack whether clients are told of a new primary */
    private static void survives(
            String what, RedisBackend backend, RedisProcess one, RedisProcess two, Predicate<RedisProcess> isBack) {
        RateLimiter limiter = backend.limiter(LIMIT, RedisLimitOptions.DEFAULTS);
        awaitRedis(limiter, "start");
        try (Load load = new Load(limiter, 8, caller -> "key-" + caller)) {
            until(() -> load.decisions(Source.REDIS) > 1000, "load", PATIENCE);
            // A starved machine may have changed their roles already.
            RedisProcess primary = isPrimary(one) ? one : two;
            RedisProcess replica = primary == one ? two : one;
            load.begin();
            primary.kill();
            until(() -> load.decisions(Source.FALLBACK) > 100, "fallback", PATIENCE);
            until(() -> isPrimary(replica) && isBack.test(replica), "promotion", PATIENCE);
            long promoted = System.nanoTime();
            awaitRedis(limiter, "recovery");
            long recovered = System.nanoTime() - promoted;
            long stolen = load.stolenSince(promoted);
            System.out.printf(
                    "FAILOVER %s: decided by Redis again %d ms after the promotion, of which the machine took %d ms; %d decided locally%n",
                    what, recovered / 1_000_000, stolen / 1_000_000, load.decisions(Source.FALLBACK));
            assertThat(recovered - stolen).isLessThan(RECOVERY.toNanos());
            load.assertNobodyWaitedLongerThan(LONGEST_WAIT_MILLIS, what);
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
            // One is enough: how several agree is not our concern, and takes its time on a busy machine.
            RedisProcess sentinel = RedisProcess.sentinel(primary.port(), 1);
            opened.add(sentinel);
            until(() -> sentinel.infoSentinel().contains("slaves=1"), "sentinel knows the replica", PATIENCE);
            RedisURI uri = RedisURI.builder()
                    .withSentinelMasterId("primary")
                    .withSentinel("127.0.0.1", sentinel.port())
                    .build();
            RedisBackend backend = RedisBackend.of(
                    RedisServers.settings(ClientOptions.create(), uri), RedisBackendOptions.DEFAULTS.expectedNodes(1));
            opened.add(backend);
            survives(
                    "sentinel",
                    backend,
                    primary,
                    replica,
                    server -> sentinel.infoSentinel().contains(":" + server.port() + ","));
        } finally {
            for (int i = opened.size() - 1; i >= 0; i--) {
                opened.get(i).close();
            }
        }
    }

    @Test
    void theClusterPromotesAReplica() {
        try (RedisCluster cluster = RedisCluster.start(Duration.ofSeconds(2))) {
            try (RedisBackend backend =
                    RedisBackend.of(cluster.settings(), RedisBackendOptions.DEFAULTS.expectedNodes(1))) {
                survives("cluster", backend, cluster.primary(0), cluster.replicaOf(0), FailoverTest::isPrimary);
            }
        }
    }
}
