package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.ScriptedServers.Link;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Which threads read replies. */
class ReadersTest {

    private final ScriptedServers servers = new ScriptedServers("one:1");
    private final GuardedConnection connection = servers.connect(new ManualTicker());
    private final Link one = servers.link(0);
    private final List<Boolean> mayRun = new ArrayList<>();

    @AfterEach
    void close() {
        connection.close();
    }

    private CompletableFuture<List<Object>> ask() {
        return connection.eval(Script.HEARTBEAT, new String[] {"one:1/a"}, new ScriptArguments());
    }

    private void look() {
        mayRun.add(connection.mayRunCallersHere());
    }

    /** A caller may send a command whose reply is there before it is asked for. */
    @Test
    void aReplyWithinAReplyDoesNotEndTheOuterOne() {
        ask().thenRun(() -> {
            ask().thenRun(this::look);
            one.answer();
            look();
        });
        look();
        one.answer();
        look();
        assertThat(mayRun).containsExactly(false, true, true, false);
    }

    @Test
    void noCallerRunsOnThreadsThatReadOnceOneHasWaitedThereForItself() {
        ask().thenRun(() -> assertThatThrownBy(() -> connection.await(new CompletableFuture<>()))
                .isInstanceOf(ExecutionException.class)
                .hasMessageContaining("on the thread that reads the replies"));
        one.answer();
        ask().thenRun(this::look);
        one.answer();
        assertThat(mayRun).containsExactly(false);
    }
}
