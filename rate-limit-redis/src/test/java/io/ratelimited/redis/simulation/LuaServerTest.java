package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.RedisServers;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.SentArguments;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.luaj.vm2.LuaString;

/**
 * The server of the simulation replies to every script as a real server does, and keeps the same: what limiters ask is
 * asked of both. Numbers of random schedules, limits that change, clocks that step, other algorithms on the same key.
 */
@Tag("once")
@Tag("slow")
class LuaServerTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** As scripts are that have run often. */
    private static final Lua COMPILED = new Lua(0);

    static Stream<List<Limit>> limits() {
        Limit bucket =
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").burst(7).build();
        Limit thirds = Limit.of("a", Algorithm.GCRA).rate("3/s").burst(8).build();
        Limit bursty =
                Limit.of("a", Algorithm.SMOOTH_BURSTY).rate("20/s").burst(5).build();
        Limit leaky =
                Limit.of("a", Algorithm.LEAKY_BUCKET).rate("100/s").burst(8).build();
        Limit warm = Limit.of("a", Algorithm.WARM_UP)
                .rate("7/s")
                .warmup(Duration.ofSeconds(3))
                .build();
        Limit fixed = Limit.of("a", Algorithm.FIXED_WINDOW)
                .rate("9/s")
                .zone(ZoneId.of("America/Santiago"))
                .build();
        Limit sliding = Limit.of("a", Algorithm.SLIDING_WINDOW).rate("9/s").build();
        Limit log = Limit.of("a", Algorithm.SLIDING_LOG).rate("9/s").build();
        Limit flight = Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(5).build();
        return Stream.of(
                List.of(bucket),
                List.of(thirds),
                List.of(bursty),
                List.of(leaky),
                List.of(warm),
                List.of(fixed),
                List.of(sliding),
                List.of(log),
                List.of(flight),
                List.of(
                        bucket,
                        bucket.toBuilder().rate("20/s").burst(3).build(),
                        bursty,
                        leaky,
                        warm,
                        fixed,
                        sliding,
                        log));
    }

    @ParameterizedTest
    @MethodSource("limits")
    void repliesAndStoresAsARealServer(List<Limit> limits) {
        compare(Lua.shared(), limits, 1, 60, 4);
    }

    @ParameterizedTest
    @MethodSource("limits")
    @Tag("proof")
    void repliesAndStoresAsARealServerAtLength(List<Limit> limits) {
        compare(Lua.shared(), limits, 2, 500, 20);
    }

    @ParameterizedTest
    @MethodSource("limits")
    @Tag("proof")
    void repliesAndStoresAsARealServerWhenItsScriptsAreCompiled(List<Limit> limits) {
        compare(COMPILED, limits, 3, 100, 20);
    }

    private static void compare(Lua lua, List<Limit> limits, int seed, int steps, int every) {
        REDIS.server().ask(commands -> commands.flushall());
        Random random = new Random(seed);
        ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));
        Twin twin = new Twin(REDIS.connector(), new Server(lua, () -> ticker.epochNanos() / 1000));
        boolean ofNode = random.nextBoolean();
        // Closed at the end: calls that still run would be registered anew behind the next flush.
        try (RedisBackend backend = REDIS.backend(
                twin,
                RedisBackendOptions.DEFAULTS.ticker(ticker).timeout(Duration.ofSeconds(20)),
                time -> ticker.epochNanos() / 1000 + (ofNode ? " 1000000" : " 0") + " 3600000")) {
            compare(
                    limits,
                    seed,
                    steps,
                    every,
                    random,
                    ticker,
                    twin,
                    backend.limiter(limits.get(0), RedisLimitOptions.DEFAULTS));
        }
    }

    private static void compare(
            List<Limit> limits,
            int seed,
            int steps,
            int every,
            Random random,
            ManualTicker ticker,
            Twin twin,
            RateLimiter limiter) {
        boolean flight = limits.get(0).algorithm() == Algorithm.CONCURRENCY;
        RedisCommands<String, String> commands =
                REDIS.closeLater(REDIS.client().connect()).sync();
        RedisCommands<String, byte[]> bytes = REDIS.closeLater(
                        REDIS.client().connect(RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE)))
                .sync();
        List<Reservation> taken = new ArrayList<>();
        for (int step = 0; step < steps; step++) {
            ticker.advanceNanos(random.nextInt(4) == 0 ? random.nextInt(700_000_000) : random.nextInt(40_000_000));
            switch (random.nextInt(12)) {
                case 0 -> limiter.update(limits.get(random.nextInt(limits.size())));
                case 1, 2 -> {
                    if (!taken.isEmpty()) {
                        taken.remove(random.nextInt(taken.size())).cancel();
                    }
                }
                case 3 -> limiter.peek("k", 1 + random.nextInt(3), 0);
                case 4 ->
                    ticker.setWallClock(Instant.EPOCH.plusNanos(
                            ticker.epochNanos() - random.nextInt(3) * (long) random.nextInt(1_500_000_000)));
                default ->
                    taken.add(limiter.reserve(
                            random.nextInt(8) == 0 ? null : "k",
                            1 + random.nextInt(3),
                            flight || random.nextBoolean() ? 0 : random.nextInt(1_500_000_000)));
            }
            // What was given back is sent without waiting; this comes behind it.
            limiter.peek("k", 1, 0);
            assertThat(twin.differences).as("step " + step + " of seed " + seed).isEmpty();
            // Not after each: it asks for every key, and a difference stays, or is seen in the replies.
            if (step % every == every - 1) {
                assertThat(stored(commands, bytes))
                        .as("step " + step + " of seed " + seed)
                        .isEqualTo(twin.server.store().described());
            }
        }
        assertThat(twin.asked).isGreaterThan(steps / 3);
    }

    private static Map<String, String> stored(
            RedisCommands<String, String> commands, RedisCommands<String, byte[]> bytes) {
        Map<String, String> all = new TreeMap<>();
        for (String key : commands.keys("*")) {
            if (key.contains("{~") || key.contains(":~")) {
                continue;
            }
            all.put(
                    key,
                    switch (commands.type(key)) {
                        case "hash" -> new TreeMap<>(commands.hgetall(key)).toString();
                        case "list" -> commands.lrange(key, 0, -1).toString();
                        case "zset" -> {
                            Map<String, Double> members = new TreeMap<>();
                            commands.zrangeWithScores(key, 0, -1)
                                    .forEach(member -> members.put(member.getValue(), member.getScore()));
                            yield members.toString();
                        }
                        default -> HexFormat.of().formatHex(bytes.get(key));
                    });
        }
        return all;
    }

    /** Asks a real server and one of the simulation the same. */
    private static final class Twin implements RedisConnector {

        private final RedisConnector connector;
        private final Server server;
        private final List<String> differences = new ArrayList<>();
        private int asked;

        private Twin(RedisConnector connector, Server server) {
            this.connector = connector;
            this.server = server;
        }

        @Override
        public CompletionStage<Set<String>> discover() {
            return connector.discover();
        }

        @Override
        public @Nullable String address(String key) {
            return connector.address(key);
        }

        @Override
        public CompletionStage<RedisLink> connect(String address) {
            return connector.connect(address).thenApply(Link::new);
        }

        @Override
        public boolean isCluster() {
            return false;
        }

        @Override
        public void close() {
            connector.close();
        }

        private final class Link implements RedisLink {

            private final RedisLink link;

            private Link(RedisLink link) {
                this.link = link;
            }

            @Override
            public CompletionStage<List<Object>> eval(
                    Script script, String[] keys, ScriptArguments args, boolean asking) {
                if (Set.of(Script.HEARTBEAT, Script.CHANGES, Script.PAUSES, Script.PROBE, Script.MEMORY)
                        .contains(script)) {
                    return link.eval(script, keys, args, asking);
                }
                return link.eval(script, keys, args, asking).whenComplete((reply, failure) -> {
                    asked++;
                    String real = failure == null ? reply.toString() : "error";
                    String simulated = simulated(script, keys, args);
                    if (!real.equals(simulated)) {
                        differences.add(words(args) + ": " + real + " " + failure + ", but " + simulated);
                    }
                });
            }

            private String simulated(Script script, String[] keys, ScriptArguments args) {
                try {
                    return server.eval(
                                    script.digest(),
                                    true,
                                    Stream.of(keys).map(LuaString::valueOf).toList(),
                                    SentArguments.of(args).stream()
                                            .map(LuaString::valueOf)
                                            .toList())
                            .toString();
                } catch (RedisError ex) {
                    return "error " + ex.getMessage();
                } catch (CompletionException ex) {
                    return "failed " + ex;
                }
            }

            private static List<String> words(ScriptArguments args) {
                return SentArguments.of(args).stream()
                        .map(word -> new String(word, StandardCharsets.UTF_8))
                        .toList();
            }

            @Override
            public CompletionStage<List<Object>> time() {
                return link.time();
            }

            @Override
            public CompletionStage<Long> delete(String key) {
                server.delete(LuaString.valueOf(key));
                return link.delete(key);
            }

            @Override
            public void onBreak(Runnable task) {
                link.onBreak(task);
            }

            @Override
            public void close() {
                link.close();
            }
        }
    }
}
