package io.ratelimited.redis.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisServers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What a connection of Lettuce counts as under way, and what a client of ours does with the options of the application. */
class LettuceConnectionTest {

    private static final Duration PATIENCE = Duration.ofSeconds(20);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static LettuceLink connect() {
        return REDIS.closeLater((LettuceLink)
                REDIS.connector().connect("").toCompletableFuture().join());
    }

    private static CompletableFuture<List<Object>> probe(LettuceLink link, String... keys) {
        return link.eval(Script.PROBE, keys, new ScriptArguments().add(""), false)
                .toCompletableFuture();
    }

    @Test
    void nothingIsUnderWayAfterwardsWhateverBecameOfIt() {
        LettuceLink link = connect();
        REDIS.server().ask(commands -> commands.scriptFlush());
        List<CompletableFuture<List<Object>>> calls = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            CompletableFuture<List<Object>> call = probe(link, "rl:{" + i + "}:~probe");
            if (i % 3 == 0) {
                call.cancel(false);
            }
            calls.add(call);
            link.delete("rl:{" + i + "}");
        }
        CompletableFuture<List<Object>> broken = link.eval(
                        Script.HEARTBEAT, new String[] {"rl:{nodes}"}, new ScriptArguments(), false)
                .toCompletableFuture();
        RedisProcess.until(
                () -> broken.isDone() && calls.stream().allMatch(CompletableFuture::isDone), "answered", PATIENCE);
        RedisProcess.until(() -> link.pending() == 0, "nothing is pending", PATIENCE);
        assertThat(broken).isCompletedExceptionally();
    }

    @Test
    void nothingIsUnderWayWhenTheConnectionHasBroken() {
        LettuceLink link = connect();
        REDIS.server().freeze();
        List<CompletableFuture<List<Object>>> calls = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            calls.add(probe(link, "rl:{" + i + "}:~probe"));
        }
        calls.get(1).cancel(false);
        link.close();
        REDIS.server().thaw();
        RedisProcess.until(() -> calls.stream().allMatch(CompletableFuture::isDone), "failed", PATIENCE);
        RedisProcess.until(() -> link.pending() == 0, "nothing is pending", PATIENCE);
    }

    /** A search of the client's own, at a time of its own, would compete with ours. */
    @Test
    @SuppressWarnings("deprecation") // Clients of applications still set it.
    void aClientOfOursDoesNotLookForPrimariesByItself() {
        ClusterClientOptions given = ClusterClientOptions.builder()
                .topologyRefreshOptions(ClusterTopologyRefreshOptions.builder()
                        .enablePeriodicRefresh(Duration.ofSeconds(1))
                        .enableAllAdaptiveRefreshTriggers()
                        .build())
                .build();
        RedisURI node = RedisURI.create("127.0.0.1", REDIS.server().port());
        try (LettuceConnector connector = RedisServers.connector(RedisServers.settings(given, node))) {
            ClusterTopologyRefreshOptions used = connector.refreshOptions();
            assertThat(used.isPeriodicRefreshEnabled()).isFalse();
            assertThat(used.getAdaptiveRefreshTriggers()).isEmpty();
        }
    }
}
