package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.cluster.SlotHash;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * One address whose server takes no command for keys of several slots, as a proxy in front of a cluster, or a single node that
 * has all slots.
 */
@Tag("slow")
class SlotsOfOneServerTest {

    private static final Pattern REFUSED = Pattern.compile("errorstat_CROSSSLOT:count=(\\d+)");
    private static final Pattern READS = Pattern.compile("cmdstat_get:calls=(\\d+)");

    private static RedisProcess server;

    private final RedisBackend backend = RedisBackend.of(
            RedisServers.settings(server.port()),
            RedisBackendOptions.DEFAULTS.expectedNodes(1).timeout(Duration.ofSeconds(20)));
    private final RateLimiter ip = limiter("ip", 5);
    private final RateLimiter tenant = limiter("tenant", 1_000);

    @BeforeAll
    static void start() {
        server = RedisProcess.start("--cluster-enabled", "yes");
        server.ask(commands ->
                commands.clusterAddSlots(IntStream.range(0, SlotHash.SLOT_COUNT).toArray()));
        until(
                () -> server.ask(commands -> commands.clusterInfo()).contains("cluster_state:ok"),
                "the server decides",
                Duration.ofMinutes(1));
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @AfterEach
    void close() {
        backend.close();
        server.ask(commands -> commands.flushall());
        server.ask(commands -> commands.configResetstat());
    }

    private RateLimiter limiter(String name, int permits) {
        // Admits everything as soon as Redis does not decide.
        return backend.limiter(
                Limit.of(name, Algorithm.TOKEN_BUCKET).rate(permits + "/h").build(),
                RedisLimitOptions.DEFAULTS.onFailure(OnFailure.ALLOW));
    }

    private List<Claim> call() {
        return List.of(Claim.of(ip, "192.0.2.7", 1, 0), Claim.of(tenant, "acme", 1, 0));
    }

    @Test
    void redisDecidesCallsUnderLimitsWithDifferentKeys() {
        for (int call = 1; call <= 20; call++) {
            Reservation both = AllOf.reserve(call());
            assertThat(both.isRefused()).as("call " + call).isEqualTo(call > 5);
            assertThat(both.decision().source()).isIn(Source.REDIS, Source.DENY_CACHE);
        }
        assertThat(tenant.peek("acme", 1, 0).remaining()).isEqualTo(995);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.UP);
        assertThat(backend.health().errors()).isZero();
        assertThat(count(REFUSED, "errorstats")).as("the first is remembered").isEqualTo(1);
    }

    @Test
    void redisDecidesThemWithoutAThread() {
        for (int call = 1; call <= 20; call++) {
            Reservation both = AllOf.reserveAsync(call()).toCompletableFuture().join();
            assertThat(both.isRefused()).as("call " + call).isEqualTo(call > 5);
        }
        assertThat(backend.health().errors()).isZero();
    }

    /** A script reads each key once. */
    @Test
    void limitsWithTheSameKeyAreStillDecidedByOneScript() {
        assertThat(AllOf.reserve(call()).isRefused()).isFalse();
        List<Claim> same = List.of(Claim.of(ip, "acme", 1, 0), Claim.of(tenant, "acme", 1, 0));
        long before = count(READS, "commandstats");
        for (int call = 1; call <= 5; call++) {
            assertThat(AllOf.reserve(same).isRefused()).isFalse();
        }
        assertThat(count(READS, "commandstats") - before).isEqualTo(5 * 2);
        assertThat(tenant.peek("acme", 1, 0).remaining()).isEqualTo(994);
    }

    private static long count(Pattern pattern, String section) {
        Matcher found = pattern.matcher(server.<String>ask(commands -> commands.info(section)));
        return found.find() ? Long.parseLong(found.group(1)) : 0;
    }
}
