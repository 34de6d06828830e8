package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.ScriptedServers.Link;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Why a server that is silent does not decide: not because a connection is closed that is of no use any more. */
class LastErrorTest {

    /** Until those that are away have been looked at. */
    private static final Duration LOOK = Duration.ofMillis(200);
    /** Until a connection that nobody has come to use is closed. */
    private static final Duration UNUSED = Duration.ofSeconds(4);

    private final ManualTicker clock = new ManualTicker();
    private final ScriptedServers servers = new ScriptedServers("one:1");
    private final GuardedConnection connection = servers.connect(clock);
    private final Link one = servers.link(0);

    @BeforeEach
    void silence() {
        connection.eval(Script.HEARTBEAT, new String[] {"one:1/a"}, new ScriptArguments());
        clock.advance(ScriptedServers.TIMEOUT);
        clock.advance(LOOK);
        assertThat(servers.connections()).isEqualTo(2);
    }

    @AfterEach
    void close() {
        connection.close();
    }

    private void closed(Link link) {
        assertThat(link.closed).isTrue();
        link.probes.remove().completeExceptionally(new IllegalStateException("Connection closed"));
    }

    @Test
    void staysWhenTheSilentConnectionIsClosedThatAnotherHasReplaced() {
        servers.link(1).probes.remove().complete(List.of(1L));
        assertThat(connection.isUp()).isTrue();
        clock.advance(ScriptedServers.TIMEOUT);
        closed(one);
        assertThat(connection.lastError()).contains("did not respond within");
    }

    @Test
    void staysWhenAnotherConnectionIsClosedThatIsSilentToo() {
        clock.advance(UNUSED);
        closed(servers.link(1));
        assertThat(connection.lastError()).contains("did not respond within");
    }

    @Test
    void staysWhenTheSilentConnectionTakesNoProbe() {
        one.probes.remove().completeExceptionally(Replies.notSent("8192 calls are pending already"));
        assertThat(connection.lastError()).contains("did not respond within");
    }

    /** The client closes all of them, and warns of one that is closed already. */
    @Test
    void aConnectionThatIsProbedIsLeftToTheClientAtTheEnd() {
        connection.close();
        servers.link(1).probes.remove().completeExceptionally(new IllegalStateException("Connection closed"));
        assertThat(servers.link(1).closed).isFalse();
    }

    @Test
    void isWhatAnotherConnectionAnswers() {
        servers.link(1).probes.remove().completeExceptionally(new IllegalStateException("LOADING"));
        assertThat(connection.lastError()).contains("LOADING");
    }
}
