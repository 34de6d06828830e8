package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.ScriptedServers.Link;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A server, or a proxy before it, that accepts every connection and closes it when it is asked. */
class BreakingConnectionsTest {

    /** Until those that are away have been looked at. */
    private static final Duration LOOK = Duration.ofMillis(200);

    private final ManualTicker clock = new ManualTicker();
    private final ScriptedServers servers = new ScriptedServers("one:1");
    private final GuardedConnection connection = servers.connect(clock);

    @AfterEach
    void close() {
        connection.close();
    }

    private Link ask() {
        connection.eval(Script.HEARTBEAT, new String[] {"one:1/a"}, new ScriptArguments());
        return servers.link(servers.connections() - 1);
    }

    private void breakOff(int times) {
        for (int i = 0; i < times; i++) {
            ask().breakOff();
        }
    }

    @Test
    void areAnOutage() {
        breakOff(5);
        assertThat(connection.isDown("one:1/a")).isTrue();
        assertThat(connection.lastError()).contains("breaks");
    }

    @Test
    void areNotReplacedWithoutEnd() {
        breakOff(5);
        int connections = servers.connections();
        breakOff(20);
        assertThat(servers.connections()).isEqualTo(connections);
        clock.advance(LOOK);
        assertThat(servers.connections()).isEqualTo(connections + 1);
    }

    @Test
    void areBackWithTheFirstThatAnswersItsProbe() {
        breakOff(5);
        clock.advance(LOOK);
        Link next = servers.link(servers.connections() - 1);
        assertThat(next.probes).hasSize(1);
        next.probes.remove().complete(List.of(1L));
        assertThat(connection.isUp()).isTrue();
        ask().answer();
    }

    @Test
    void areNoOutageWhileTheyAnswerInBetween() {
        for (int i = 0; i < 20; i++) {
            for (int call = 0; call < 3; call++) {
                ask().answer();
            }
            breakOff(1);
        }
        assertThat(connection.isUp()).isTrue();
    }

    @Test
    void areAnOutageOnceHalfOfTheLastTwentyCallsHaveBrokenOne() {
        for (int i = 0; i < 9; i++) {
            breakOff(1);
            ask().answer();
        }
        assertThat(connection.isUp()).isTrue();
        breakOff(1);
        assertThat(connection.isDown("one:1/a")).isTrue();
    }

    /** By the timeout of a server or of what stands between: a primary of a cluster may have no calls for long. */
    @Test
    void areNoOutageWhereIdleOnesAreClosed() {
        for (int i = 1; i <= 20; i++) {
            clock.advance(Duration.ofSeconds(1));
            int connections = servers.connections();
            servers.link(connections - 1).breakOff();
            assertThat(connection.isUp()).as("after " + i).isTrue();
            assertThat(servers.connections()).isEqualTo(connections + 1);
        }
        ask().answer();
    }

    /** As Sentinel names it: the address of both is the same. */
    @Test
    void mayLeadToAnotherServerWhoseEvictionsAreItsOwn() {
        evicted(10);
        ask().breakOff();
        evicted(500);
        assertThat(connection.health().problems()).isEmpty();
        evicted(501);
        assertThat(connection.health().problems()).singleElement().asString().contains("evicted 1 keys");
    }

    /** What the server of the last connection replies to a look. */
    private void evicted(long keys) {
        Link link = servers.link(servers.connections() - 1);
        CompletableFuture<Void> look = connection.lookForEvictions();
        link.asked.removeLast().complete(List.of("allkeys-lru", keys));
        assertThat(look).isCompleted();
    }

    /** Something on the way understands no scripts and closes the connection instead, however seldom somebody asks. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void areAnOutageWhereEachCallBreaksOne(boolean callsFailFirst) {
        for (int i = 0; i < 5; i++) {
            clock.advance(Duration.ofSeconds(1));
            Link asked = ask();
            if (!callsFailFirst) {
                asked.breakOff();
            }
            asked.asked.forEach(call -> call.completeExceptionally(new RedisException("Connection disconnected")));
            asked.breakOff();
        }
        assertThat(connection.isDown("one:1/a")).isTrue();
    }
}
