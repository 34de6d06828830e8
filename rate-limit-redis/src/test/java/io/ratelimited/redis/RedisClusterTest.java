package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.cluster.SlotHash;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What is particular to a cluster, and every script on it; {@link RedisClusterContractTest} holds it to the whole contract. */
@Tag("once")
@Tag("slow")
class RedisClusterTest {

    private static RedisCluster cluster;

    @BeforeAll
    static void start() {
        cluster = RedisCluster.start(Duration.ofSeconds(30));
    }

    @AfterAll
    static void stop() {
        cluster.close();
    }

    @BeforeEach
    void flush() {
        cluster.flush();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void everyAlgorithmAdmitsWhatItsLimitAllowsOnEveryNode(Algorithm algorithm) {
        Limit.Builder limit = Limit.of(algorithm.name(), algorithm);
        int calls = 5;
        switch (algorithm) {
            case CONCURRENCY -> limit.maxConcurrent(5);
            case WARM_UP -> limit.rate("5/h").warmup(Duration.ofHours(1));
            default -> limit.rate("5/h");
        }
        if (algorithm == Algorithm.SMOOTH_BURSTY
                || algorithm == Algorithm.WARM_UP
                || algorithm == Algorithm.LEAKY_BUCKET) {
            calls = 1;
        }
        try (RedisBackend backend = backend()) {
            RateLimiter limiter = backend.limiter(limit.build(), RedisLimitOptions.DEFAULTS);
            for (String key : new String[] {"a", "b", "c", "d"}) {
                until(() -> limiter.peek(key, 1, 0).source() == Source.REDIS, "connected", Duration.ofMinutes(1));
                for (int call = 0; call < 10; call++) {
                    assertThat(limiter.reserve(key, 1, 0).isRefused()).isEqualTo(call >= calls);
                }
            }
        }
    }

    /** New callers have no key on either server, others one on each: no server runs a script on both keys then. */
    @Test
    void severalLimitsOfACallerAreDecidedByRedisWhileTheirSlotMoves() {
        try (RedisBackend backend = backend()) {
            RateLimiter many = limiter(backend, "many", 5);
            RateLimiter few = limiter(backend, "few", 3);
            until(() -> many.peek("seen", 1, 0).source() == Source.REDIS, "connected", Duration.ofMinutes(1));
            many.tryAcquire("seen", 1);
            move("seen");
            move("new");
            for (int call = 1; call <= 4; call++) {
                Reservation both = both(many, few, "new");
                assertThat(both.decision().source()).isEqualTo(Source.REDIS);
                assertThat(both.isRefused()).isEqualTo(call > 3);
            }
            assertThat(many.peek("new", 1, 0).remaining()).isEqualTo(2);
            Reservation later = AllOf.reserveAsync(List.of(Claim.of(many, "seen", 1, 0), Claim.of(few, "seen", 1, 0)))
                    .toCompletableFuture()
                    .join();
            assertThat(later.decision().source()).isEqualTo(Source.REDIS);
            later.cancel();
            until(() -> few.peek("seen", 1, 0).remaining() == 3, "given back", Duration.ofMinutes(1));
            assertThat(many.peek("seen", 1, 0).remaining()).isEqualTo(4);
        }
    }

    /** A caller who has never offended has a budget on one server, and no block on either. */
    @Test
    void aLimitWithBlocksIsDecidedByRedisWhileASlotMoves() {
        try (RedisBackend backend = backend();
                RedisBackend other = backend()) {
            Limit limit = Limit.of("many", Algorithm.TOKEN_BUCKET)
                    .rate("5/d")
                    .block(Duration.ofMinutes(10))
                    .build();
            RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
            RateLimiter elsewhere = other.limiter(limit, RedisLimitOptions.DEFAULTS);
            until(() -> limiter.peek("seen", 1, 0).source() == Source.REDIS, "connected", Duration.ofMinutes(1));
            until(() -> elsewhere.peek("seen", 1, 0).source() == Source.REDIS, "connected", Duration.ofMinutes(1));
            limiter.tryAcquire("seen", 1);
            for (String caller : List.of("seen", "new")) {
                int slot = move(caller);
                int left = caller.equals("seen") ? 4 : 5;
                for (int call = 1; call <= left; call++) {
                    Reservation next = limiter.reserve(caller, 1, 0);
                    assertThat(next.decision().source()).isEqualTo(Source.REDIS);
                    assertThat(next.isRefused()).isFalse();
                }
                assertThat(limiter.reserve(caller, 1, 0).decision().blocked()).isTrue();
                assertThat(limiter.peek(caller, 1, 0).blocked()).isTrue();
                stay(slot);
                until(() -> elsewhere.peek(caller, 1, 0).blocked(), "known to all", Duration.ofMinutes(1));
            }
        }
    }

    private static RateLimiter limiter(RedisBackend backend, String name, int permits) {
        return backend.limiter(
                Limit.of(name, Algorithm.TOKEN_BUCKET).rate(permits + "/d").build(), RedisLimitOptions.DEFAULTS);
    }

    private static Reservation both(RateLimiter one, RateLimiter other, String key) {
        return AllOf.reserve(List.of(Claim.of(one, key, 1, 0), Claim.of(other, key, 1, 0)));
    }

    /** From now on the slot of a caller is on its way to another primary, and stays so. */
    private static int move(String caller) {
        int slot = SlotHash.getSlot(new KeyNames("rl").ofLimit("many", "").of(caller));
        int from = slot / (SlotHash.SLOT_COUNT / 3 + 1);
        RedisProcess source = cluster.primary(from);
        RedisProcess target = cluster.primary((from + 1) % 3);
        String sourceId = source.ask(commands -> commands.clusterMyId());
        String targetId = target.ask(commands -> commands.clusterMyId());
        target.ask(commands -> commands.clusterSetSlotImporting(slot, sourceId));
        source.ask(commands -> commands.clusterSetSlotMigrating(slot, targetId));
        return slot;
    }

    /** The slot does not move any more. */
    private static void stay(int slot) {
        for (int i = 0; i < 3; i++) {
            cluster.primary(i).ask(commands -> commands.clusterSetSlotStable(slot));
        }
    }

    @AfterEach
    void endMoves() {
        for (int i = 0; i < 3; i++) {
            cluster.primary(i).ask(commands -> {
                List<String> open = commands.clusterNodes()
                        .lines()
                        .filter(line -> line.contains("myself"))
                        .flatMap(line -> Arrays.stream(line.split(" ", -1)))
                        .filter(word -> word.startsWith("["))
                        .toList();
                open.forEach(slot -> commands.clusterSetSlotStable(
                        Integer.parseInt(slot.substring(1).split("-", -1)[0])));
                return open;
            });
        }
    }

    /** Whoever cancels and then asks again must find what was given back. */
    @Test
    void commandsKeepTheOrderOfTheirCallerWhileOthersSend() throws Exception {
        AtomicBoolean ended = new AtomicBoolean();
        try (RedisBackend nodes = backend()) {
            GuardedConnection link = nodes.context().connection();
            Thread other = new Thread(() -> {
                while (!ended.get()) {
                    List<CompletableFuture<List<Object>>> probes = new ArrayList<>();
                    for (int i = 0; i < 50; i++) {
                        probes.add(link.eval(
                                Script.PROBE, new String[] {"rl:{nodes}:probe"}, new ScriptArguments().add("")));
                    }
                    CompletableFuture.allOf(probes.toArray(CompletableFuture<?>[]::new))
                            .join();
                }
            });
            other.start();
            List<CompletableFuture<List<Object>>> sent = new ArrayList<>();
            for (int i = 0; i < 6_000; i++) {
                sent.add(register(link, "node-" + i));
                if (i == 0) {
                    // From now on the script is known, and no command is sent a second time with its text.
                    sent.get(0).join();
                }
            }
            CompletableFuture.allOf(sent.toArray(CompletableFuture<?>[]::new)).join();
            ended.set(true);
            other.join();
            for (int i = 0; i < sent.size(); i++) {
                assertThat(sent.get(i).join()).startsWith(i + 1L);
            }
        }
    }

    /** The thread that reads the replies sends for whoever waited for one. */
    @Test
    void commandsKeepTheOrderOfTheirCallerWhenAReplyBringsOne() throws Exception {
        try (RedisBackend nodes = backend()) {
            GuardedConnection link = nodes.context().connection();
            register(link, "known").join();
            Thread test = Thread.currentThread();
            CountDownLatch reading = new CountDownLatch(1);
            CountDownLatch written = new CountDownLatch(1);
            CompletableFuture<List<Object>> second = new CompletableFuture<>();
            while (reading.getCount() > 0) {
                CompletableFuture<Void> told = register(link, "known").thenAccept(reply -> {
                    // Runs in this thread if the reply is there already: then once more.
                    if (Thread.currentThread() != test) {
                        reading.countDown();
                        await(written);
                        register(link, "second").thenAccept(second::complete);
                    }
                });
                until(() -> told.isDone() || reading.getCount() == 0, "answered", Duration.ofSeconds(20));
            }
            CompletableFuture<List<Object>> first = register(link, "first");
            written.countDown();
            assertThat(first.join()).startsWith(2L);
            assertThat(second.join()).startsWith(3L);
        }
    }

    private static CompletableFuture<List<Object>> register(GuardedConnection link, String node) {
        return link.eval(
                Script.HEARTBEAT,
                new String[] {"rl:{nodes}", "rl:{nodes}:changes"},
                new ScriptArguments().add("").add(node).add(3_600_000_000L));
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private static RedisBackend backend() {
        return RedisBackend.of(cluster.settings(), RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(20)));
    }
}
