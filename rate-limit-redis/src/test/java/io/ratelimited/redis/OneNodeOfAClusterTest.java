package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.cluster.SlotHash;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.internals.connection.KeyNames;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A single address that is one of several nodes of a cluster, so that it redirects the keys of the others. */
@Tag("slow")
class OneNodeOfAClusterTest {

    private static final Duration MINUTE = Duration.ofMinutes(1);

    private static RedisCluster cluster;
    private static int node;

    @RegisterExtension
    final LogLines log = new LogLines();

    private final RedisBackend backend = RedisBackend.of(
            RedisServers.settings(cluster.primary(node).port()),
            RedisBackendOptions.DEFAULTS.expectedNodes(1).timeout(Duration.ofSeconds(20)));
    private final RateLimiter limiter = backend.limiter(
            Limit.of("charged", Algorithm.TOKEN_BUCKET)
                    .rate("10/3650d")
                    .charged(true)
                    .build(),
            RedisLimitOptions.DEFAULTS);

    @BeforeAll
    static void start() {
        cluster = RedisCluster.start(MINUTE);
        // Its own commands succeed there.
        node = owner(new KeyNames("rl").internal("nodes"));
    }

    @AfterAll
    static void stop() {
        cluster.close();
    }

    @AfterEach
    void close() {
        backend.close();
        cluster.flush();
    }

    private static int owner(String name) {
        return SlotHash.getSlot(name) / (SlotHash.SLOT_COUNT / 3 + 1);
    }

    private static String key(boolean ofTheNode) {
        return IntStream.range(0, 1_000)
                .mapToObj(Integer::toString)
                .filter(key -> (owner(new KeyNames("rl").ofLimit("charged", "").of(key)) == node) == ofTheNode)
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aChargeOfARedirectedKeyCounts() {
        Reservation known = limiter.reserve(key(true), 1, 0);
        assertThat(known.decision().source()).isEqualTo(Source.REDIS);
        known.settle(1);
        Reservation redirected = limiter.reserve(key(false), 1, 0);
        assertThat(redirected.decision().source()).isEqualTo(Source.FALLBACK);
        redirected.settle(11);
        assertThat(limiter.reserve(key(false), 1, 0).isRefused()).isTrue();
    }

    @Test
    void theFirstRedirectionIsReportedWithTheRemedy() {
        assertThat(limiter.reserve(key(true), 1, 0).decision().source()).isEqualTo(Source.REDIS);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.UP);
        limiter.tryAcquire(key(false), 1);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.DOWN);
        RedisProcess.until(
                () -> log.all().stream()
                        .anyMatch(line -> line.contains("[RL-301]")
                                && line.contains("MOVED ")
                                && line.contains("name two of its nodes, or one twice")),
                "the log has the remedy",
                MINUTE);
    }
}
