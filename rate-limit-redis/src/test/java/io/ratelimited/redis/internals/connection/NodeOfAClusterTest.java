package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A single address that is a node of a cluster, as the only address of a managed one. */
class NodeOfAClusterTest {

    /** Until those that are away have been looked at. */
    private static final Duration LOOK = Duration.ofMillis(200);

    private static final String MOVED = "MOVED 15953 10.0.0.7:6379";

    private final ManualTicker clock = new ManualTicker();
    private final ScriptedServers servers = new ScriptedServers("one:1");
    private final GuardedConnection connection;

    NodeOfAClusterTest() {
        servers.cluster = false;
        connection = servers.connect(clock);
        for (int i = 0; i < 5; i++) {
            connection.eval(Script.HEARTBEAT, new String[] {"one:1/a"}, new ScriptArguments());
            servers.link(0).fail(MOVED);
        }
    }

    @AfterEach
    void close() {
        connection.close();
    }

    @Test
    void isReportedWithTheRemedy() {
        assertThat(connection.lastError()).contains("node of a cluster").contains(MOVED);
    }

    @Test
    void doesNotDecideBecauseItRedirectsItsProbe() {
        assertThat(connection.isDown()).isTrue();
        clock.advance(LOOK);
        servers.link(0).probes.remove().completeExceptionally(new IllegalStateException(MOVED));
        assertThat(connection.isDown()).isTrue();
        assertThat(connection.lastError()).contains("node of a cluster");
    }
}
