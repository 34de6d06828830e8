package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.LogLines;
import io.ratelimited.redis.internals.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.internals.connection.ScriptedServers.Link;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A single address that is a node of a cluster, as the only address of a managed one. */
class NodeOfAClusterTest {

    /** Until those that are away have been looked at. */
    private static final Duration LOOK = Duration.ofMillis(200);

    private static final String MOVED = "MOVED 15953 10.0.0.7:6379";

    @RegisterExtension
    final LogLines log = new LogLines();

    private final ManualTicker clock = new ManualTicker();
    private final ScriptedServers servers = new ScriptedServers("one:1");
    private final GuardedConnection connection;
    private final Link one;

    NodeOfAClusterTest() {
        servers.cluster = false;
        connection = servers.connect(clock);
        one = servers.link(0);
    }

    @AfterEach
    void close() {
        connection.close();
    }

    private void ask(String error) {
        connection.eval(Script.DECIDE, new String[] {"one:1/a"}, new ScriptArguments());
        one.fail(error);
    }

    /** Keys of other nodes are never decided there, however many of its own are in between. */
    @ParameterizedTest
    @ValueSource(strings = {MOVED, "ASK 15953 10.0.0.7:6379"})
    void theFirstRedirectionIsAnOutageWithTheRemedy(String redirection) {
        ask(redirection);
        assertThat(connection.isDown("one:1/b")).isTrue();
        assertThat(connection.isUp()).isFalse();
        assertThat(connection.lastError()).contains("node of a cluster").contains(redirection);
        assertThat(log.all()).hasSize(1);
        assertThat(log.all().get(0))
                .contains("name two of its nodes, or one twice")
                .contains("[RL-301]");
    }

    @Test
    void doesNotDecideBecauseItRedirectsItsProbe() {
        ask(MOVED);
        clock.advance(LOOK);
        one.probes.remove().completeExceptionally(new IllegalStateException(MOVED));
        assertThat(connection.isDown()).isTrue();
        assertThat(connection.lastError()).contains("node of a cluster");
    }

    /** It has not run: it is sent as soon as the server has the key. */
    @ParameterizedTest
    @EnumSource
    void whatIsRedirectedIsKeptUntilTheServerDecides(DeliveryKind kind) {
        connection.deliver(kind, List.of("one:1/a"), ScriptArguments::new, reply -> {});
        one.fail(MOVED);
        for (int look = 0; look < 200; look++) {
            clock.advance(LOOK);
            one.probes.remove().completeExceptionally(new IllegalStateException(MOVED));
        }
        assertThat(one.keys).containsExactly("one:1/a");
        clock.advance(LOOK);
        one.probes.remove().complete(List.of(1L));
        assertThat(one.keys).containsExactly("one:1/a", "one:1/a");
        one.answer();
        clock.advance(LOOK);
        assertThat(one.asked).isEmpty();
    }
}
