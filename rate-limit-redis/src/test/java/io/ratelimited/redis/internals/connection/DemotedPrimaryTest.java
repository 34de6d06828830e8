package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.LogLines;
import io.ratelimited.redis.internals.connection.ScriptedServers.Link;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A server that answers, and says that it takes no writes. A replica is not the primary of now: its address or Sentinel may name
 * another one.
 */
class DemotedPrimaryTest {

    /** Until those that are away have been looked at. */
    private static final Duration LOOK = Duration.ofMillis(200);

    private static final String OOM = "OOM command not allowed when used memory > 'maxmemory'. script: b2ca";

    @RegisterExtension
    final LogLines log = new LogLines();

    private final ManualTicker clock = new ManualTicker();
    private final ScriptedServers servers = new ScriptedServers("one:1");

    /** As Redis 7.0 says it in a script, Redis 6.2 there, and both of them before the script. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "READONLY You can't write against a read only replica. script: b2ca, on @user_script:1.",
                "ERR Error running script (call to f_b2ca): @user_script:1: @user_script: 1: -READONLY You can't write",
                "ERR READONLY You can't write against a read only replica. script: b2ca, on @user_script:1.",
                "NOREPLICAS Not enough good replicas to write. script: b2ca, on @user_script:1.",
                "ERR Error running script (call to f_b2ca): @user_script:1: @user_script: 1: -NOREPLICAS Not enough",
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
            })
    void isConnectedAnewWhereItIsNotThePrimaryOfNow(String error) {
        assertThat(connectionsAfter(error)).isEqualTo(2);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                OOM,
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
                "ERR Script attempted to execute a write command while the cluster is down and readonly script: b2ca"
            })
    void isAskedOnTheConnectionThatThereIsWhereAnotherWouldNotHelp(String error) {
        assertThat(connectionsAfter(error)).isEqualTo(1);
    }

    /** Some writes pass as keys expire. */
    @Test
    void aServerThatIsFullNowAndThenDoesNotFloodTheLog() {
        try (GuardedConnection connection = servers.connect(clock)) {
            Link link = servers.link(0);
            for (int i = 0; i < 100; i++) {
                ask(connection);
                link.fail(OOM);
                clock.advance(LOOK);
                link.probes.remove().complete(List.of(1L));
                assertThat(connection.isUp()).isTrue();
            }
        }
        assertThat(log.all()).hasSizeLessThanOrEqualTo(10);
    }

    private static void ask(GuardedConnection connection) {
        connection.eval(Script.HEARTBEAT, new String[] {"one:1/a"}, new ScriptArguments());
    }

    /** Made until it decides again, on the connection that was made last. */
    private int connectionsAfter(String error) {
        try (GuardedConnection connection = servers.connect(clock)) {
            Link first = servers.link(0);
            // Rejections only read, and succeed.
            ask(connection);
            first.answer();
            ask(connection);
            first.fail(error);
            assertThat(connection.isDown("one:1/a")).isTrue();
            assertThat(connection.isUp()).isFalse();
            clock.advance(LOOK);
            int made = servers.connections();
            servers.link(made - 1).probes.remove().complete(List.of(1L));
            assertThat(connection.isUp()).isTrue();
            return made;
        }
    }
}
