package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.cluster.SlotHash;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisServers;
import io.ratelimited.redis.internals.connection.LettuceConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Commands that are issued while the thread of the connection is busy. */
@Tag("slow")
class LettuceLinkTest {

    private static final Pattern EVALSHA = Pattern.compile("cmdstat_evalsha:calls=(\\d+)");

    private static final Pattern READS = Pattern.compile("total_reads_processed:(\\d+)");

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private RedisLink link;

    @BeforeEach
    void connect() {
        link = REDIS.closeLater(
                REDIS.connector().connect("").toCompletableFuture().join());
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
        link.takeBack(given);
        release.countDown();
        assertThat(last.join()).startsWith(2L);
        assertThat(register("another").join()).startsWith(3L);
    }

    @Test
    void askTheSameAboutSeveralKeysInOneCommand() {
        ScriptArguments take = take("3/h", 2);
        long before = scripts();
        CountDownLatch release = occupy();
        List<CompletableFuture<List<Object>>> sent = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            sent.add(ask("rl:{" + i % 150 + "}:shared", take));
        }
        release.countDown();
        for (int i = 0; i < 200; i++) {
            assertThat(admitted(sent.get(i))).as("call " + i).isEqualTo(i < 150 ? 2 : 1);
        }
        assertThat(scripts() - before)
                .as("four commands, and as many as it took to occupy the thread")
                .isLessThan(100);
    }

    /** Few are sent at once; of many that find the server idle it gets half first. */
    @Test
    void areHalvedForAnIdleServer() {
        // The server knows the script from now on.
        ask("rl:{1}:known", take("3/h", 1)).join();
        assertThat(commandsFor(7)).isEqualTo(1);
        assertThat(commandsFor(8)).isEqualTo(2);
        assertThat(commandsFor(60)).isEqualTo(2);
    }

    /** Commands that the server gets for calls of so many keys that are issued together: each has a time of its own. */
    private long commandsFor(int keys) {
        ScriptArguments take = take("3/h", 2);
        CountDownLatch release = occupy();
        List<CompletableFuture<List<Object>>> sent = new ArrayList<>();
        for (int i = 0; i < keys; i++) {
            sent.add(ask("rl:{" + i + "}:of-" + keys, take));
        }
        release.countDown();
        assertThat(sent).allSatisfy(one -> assertThat(admitted(one)).isEqualTo(2));
        return sent.stream().map(one -> one.join().get(0)).distinct().count();
    }

    /** A key that holds no bucket, and one of another limit. */
    @Test
    void askAgainAboutAKeyThatNeedsACommandOfItsOwn() {
        REDIS.server().ask(commands -> commands.hset("rl:{1}:again", "no", "bucket"));
        ask("rl:{2}:again", take("9/h", 4)).join();
        ScriptArguments take = take("3/h", 2);
        CountDownLatch release = occupy();
        List<CompletableFuture<List<Object>>> sent = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            sent.add(ask("rl:{" + i + "}:again", take));
        }
        release.countDown();
        assertThat(admitted(sent.get(0))).isEqualTo(2);
        assertThat(admitted(sent.get(1))).isEqualTo(2);
        assertThat(admitted(sent.get(2)))
                .as("5 of 9 permits are left, which is 1 of 3")
                .isEqualTo(1);
        assertThat(admitted(sent.get(3))).isEqualTo(2);
    }

    /** Behind one address there may be several servers; what is asked about keys of different slots does not run there. */
    @Test
    void askAboutEachKeyAloneWhereTheServerSeparatesSlots() {
        RedisProcess node = REDIS.closeLater(RedisProcess.start("--cluster-enabled", "yes"));
        node.ask(commands ->
                commands.clusterAddSlots(IntStream.range(0, SlotHash.SLOT_COUNT).toArray()));
        RedisProcess.until(
                () -> node.ask(commands -> commands.clusterInfo()).contains("cluster_state:ok"),
                "the node decides",
                Duration.ofSeconds(20));
        LettuceConnector connector = RedisServers.connector(RedisServers.settings(node.port()));
        link = REDIS.closeLater(connector.connect("").toCompletableFuture().join());
        ScriptArguments take = take("3/h", 1);
        for (int round = 0; round < 2; round++) {
            CountDownLatch release = occupy();
            List<CompletableFuture<List<Object>>> sent = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                sent.add(ask("rl:{" + i + "}:slots", take));
            }
            release.countDown();
            assertThat(sent)
                    .allSatisfy(one -> assertThat(admitted(one.orTimeout(20, TimeUnit.SECONDS)))
                            .isEqualTo(1));
        }
        assertThat(admitted(ask("rl:{1}:slots", take("3/h", 3))))
                .as("one of three was left")
                .isEqualTo(1);
    }

    @Test
    void askOnceAboutEachKeyWhenTheServerDoesNotKnowTheScript() {
        ScriptArguments take = take("3/h", 1);
        ask("rl:{1}:known", take).join();
        REDIS.server().ask(commands -> commands.scriptFlush());
        CountDownLatch release = occupy();
        List<CompletableFuture<List<Object>>> sent = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            sent.add(ask("rl:{" + i + "}:unknown", take));
        }
        release.countDown();
        assertThat(sent).allSatisfy(one -> assertThat(admitted(one)).isEqualTo(1));
        assertThat(admitted(ask("rl:{1}:unknown", take("3/h", 3))))
                .as("two of three were left")
                .isEqualTo(2);
    }

    /** A call that had to be sent again would run after later ones for its key, such as an end of a call after an outage. */
    @Test
    void passNoOtherOnANewConnectionToAServerThatDoesNotKnowTheScript() {
        REDIS.server().ask(commands -> commands.scriptFlush());
        REDIS.server().ask(commands -> commands.configResetstat());
        ScriptArguments take = take("3/h", 1);
        CountDownLatch release = occupy();
        List<CompletableFuture<List<Object>>> sent = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            sent.add(ask("rl:{" + i + "}:new", take));
        }
        sent.add(register("node"));
        release.countDown();
        assertThat(sent).allSatisfy(one -> assertThat(one.join()).isNotEmpty());
        assertThat(REDIS.server()
                        .<String>ask(commands -> commands.info("errorstats"))
                        .lines())
                .as("of the probe that has kept the thread busy")
                .contains("errorstat_NOSCRIPT:count=1");
    }

    @Test
    void shareNoCommandAcrossOneThatMayConcernTheSameKey() {
        ScriptArguments take = take("3/h", 3);
        CountDownLatch release = occupy();
        CompletableFuture<List<Object>> spent = ask("rl:{1}:order", take);
        CompletableFuture<Long> deleted = link.delete("rl:{1}:order").toCompletableFuture();
        CompletableFuture<List<Object>> again = ask("rl:{1}:order", take);
        release.countDown();
        assertThat(admitted(spent)).isEqualTo(3);
        assertThat(deleted.join()).isEqualTo(1);
        assertThat(admitted(again)).isEqualTo(3);
    }

    @Test
    void takeNothingForACallThatWasGivenUpUnsentAmongOthers() {
        ScriptArguments take = take("3/h", 1);
        CountDownLatch release = occupy();
        CompletableFuture<List<Object>> given = ask("rl:{1}:given", take);
        CompletableFuture<List<Object>> wanted = ask("rl:{2}:given", take);
        CompletableFuture<List<Object>> alsoWanted = ask("rl:{3}:given", take);
        link.takeBack(given);
        release.countDown();
        assertThat(admitted(wanted)).isEqualTo(1);
        assertThat(admitted(alsoWanted)).isEqualTo(1);
        assertThat(REDIS.server().<Long>ask(commands -> commands.exists("rl:{1}:given")))
                .isZero();
    }

    @Test
    void failWithTheErrorOfTheCommandThatTheyShare() {
        ScriptArguments broken =
                new ScriptArguments().add("").add("take v").add("no parameters").add("no calls");
        assertThat(askTogether(broken.mergeable()))
                .allSatisfy(reason -> assertThat(reason).contains("too short"));
    }

    /** A key that cannot be stored is left to a command of its own, which fails with the reason. */
    @Test
    void leaveKeysThatCannotBeStored() {
        ScriptArguments take = take("3/h", 1);
        String[] keys = {"rl:{1}:full", "rl:{2}:full"};
        REDIS.server().ask(commands -> commands.configSet("maxmemory", "1"));
        try {
            assertThat(link.eval(Script.DECIDE, keys, take, false)
                            .toCompletableFuture()
                            .join())
                    .isEqualTo(List.of(-1L, -1L));
            assertThat(ask(keys[0], take))
                    .failsWithin(Duration.ofSeconds(20))
                    .withThrowableOfType(ExecutionException.class)
                    .withMessageContaining("OOM");
        } finally {
            REDIS.server().ask(commands -> commands.configSet("maxmemory", "0"));
        }
    }

    /** The failures of two calls that share a command. */
    private List<String> askTogether(ScriptArguments args) {
        CountDownLatch release = occupy();
        List<CompletableFuture<List<Object>>> sent = List.of(ask("rl:{1}:fails", args), ask("rl:{2}:fails", args));
        release.countDown();
        return sent.stream()
                .map(one -> one.handle((reply, failure) -> failure == null ? "" : String.valueOf(failure.getMessage()))
                        .orTimeout(20, TimeUnit.SECONDS)
                        .join())
                .toList();
    }

    /** How many calls a reply admits; see {@code virtual_time.lua}. */
    private static long admitted(CompletableFuture<List<Object>> reply) {
        return (Long) reply.join().get(4);
    }

    private CompletableFuture<List<Object>> ask(String key, ScriptArguments args) {
        return link.eval(Script.DECIDE, new String[] {key}, args, false).toCompletableFuture();
    }

    /** So many calls for one permit each. */
    private static ScriptArguments take(String rate, int calls) {
        Limit limit = Limit.of("limit", Algorithm.TOKEN_BUCKET).rate(rate).build();
        // A backend would send commands of its own to the server, which some of these tests count.
        LimiterContext context = ScriptParametersTest.context(UnaryOperator.identity());
        return new ScriptParameters(limit, context.ticker(), context.nodes())
                .arguments("take", "", Collections.nCopies(calls, new PermitRequest(1, 0)));
    }

    /** Scripts that were run. */
    private static long scripts() {
        Matcher calls = EVALSHA.matcher(REDIS.server().<String>ask(commands -> commands.info("commandstats")));
        return calls.find() ? Long.parseLong(calls.group(1)) : 0;
    }

    @Test
    void areToldTheErrorOfAScriptThatTheServerDidNotKnow() {
        register("known").join();
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
                        new String[] {"rl:{nodes}", "rl:{nodes}:changes"},
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
