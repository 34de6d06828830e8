package io.ratelimited.redis.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisServers;
import io.ratelimited.redis.connection.LettuceConnector;
import io.ratelimited.redis.connection.RedisLink;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Commands that are issued while the thread of the connection is busy. */
class LettuceLinkTest {

    private static final Pattern READS = Pattern.compile("total_reads_processed:(\\d+)");

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private RedisLink link;

    @BeforeEach
    void connect() {
        link = REDIS.closeLater(LettuceConnector.like(REDIS.client())
                .connect("")
                .toCompletableFuture()
                .join());
    }

    @Test
    void areSentTogetherInTheirOrder() {
        CountDownLatch release = occupy();
        long before = reads();
        List<CompletableFuture<List<Object>>> sent = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            sent.add(register("node-" + i));
        }
        release.countDown();
        for (int i = 0; i < 50; i++) {
            assertThat(sent.get(i).join()).startsWith(i + 1L);
        }
        assertThat(reads() - before).isLessThan(25);
    }

    @Test
    void neverRunWhenGivenUpUnsent() {
        CountDownLatch release = occupy();
        register("first");
        CompletableFuture<List<Object>> given = register("given up");
        CompletableFuture<List<Object>> last = register("last");
        given.cancel(false);
        release.countDown();
        assertThat(last.join()).startsWith(2L);
        assertThat(register("another").join()).startsWith(3L);
    }

    @Test
    void areToldTheErrorOfAScriptThatTheServerDidNotKnow() {
        REDIS.server().ask(commands -> commands.scriptFlush());
        CompletableFuture<List<Object>> given = link.eval(
                        Script.HEARTBEAT, new String[] {"rl:{nodes}"}, new ScriptArguments().add("no time"), false)
                .toCompletableFuture();
        // Unlike a future that is never completed.
        assertThat(given).failsWithin(Duration.ofSeconds(20)).withThrowableOfType(ExecutionException.class);
    }

    /** Each node that is registered, and how many there are by then. */
    private CompletableFuture<List<Object>> register(String node) {
        return link.eval(
                        Script.HEARTBEAT,
                        new String[] {"rl:{nodes}"},
                        new ScriptArguments().add("").add(node).add(3_600_000_000L),
                        false)
                .toCompletableFuture();
    }

    /** Keeps the thread of the connection busy until the latch is released. */
    private CountDownLatch occupy() {
        Thread test = Thread.currentThread();
        CountDownLatch busy = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        while (busy.getCount() > 0) {
            CompletableFuture<List<Object>> probe = link.eval(
                            Script.PROBE, new String[] {"rl:{probe}"}, new ScriptArguments().add(""), false)
                    .toCompletableFuture();
            // Runs here if the reply is there already: then once more.
            CompletableFuture<Void> told = probe.thenAccept(reply -> {
                if (Thread.currentThread() != test) {
                    busy.countDown();
                    await(release);
                }
            });
            RedisProcess.until(() -> told.isDone() || busy.getCount() == 0, "answered", Duration.ofSeconds(20));
        }
        return release;
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private static long reads() {
        Matcher reads = READS.matcher(REDIS.server().<String>ask(commands -> commands.info("stats")));
        return reads.find() ? Long.parseLong(reads.group(1)) : 0;
    }
}
