package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.redis.RedisServers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A call behind ASKING, to a server that does not take that command: it is of no cluster, or the user has no permission. */
class AskingTest {

    private static final Duration PATIENCE = Duration.ofSeconds(20);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static CompletableFuture<List<Object>> ask(String time, boolean asking) {
        RedisLink link = REDIS.closeLater(
                REDIS.connector().connect("").toCompletableFuture().join());
        return link.eval(Script.PROBE, new String[] {"rl:{1}:moves"}, new ScriptArguments().add(time), asking)
                .toCompletableFuture();
    }

    /** In a cluster, the call is only redirected again. */
    @Test
    void failsWithTheErrorOfThatCommand() {
        assertThat(ask("no time", false))
                .failsWithin(PATIENCE)
                .withThrowableOfType(ExecutionException.class)
                .withMessageContaining("user_script");
        assertThat(ask("no time", true))
                .failsWithin(PATIENCE)
                .withThrowableOfType(ExecutionException.class)
                .withMessageContaining("cluster support disabled");
    }

    @Test
    void succeedsIfItRunsAllTheSame() {
        assertThat(ask("", true)).succeedsWithin(PATIENCE);
    }
}
