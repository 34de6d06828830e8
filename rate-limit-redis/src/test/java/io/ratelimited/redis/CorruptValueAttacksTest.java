package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import java.time.Duration;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Somebody has written to a key of ours what no script of ours writes: it counts as a key never seen, and nobody else is hit. */
@Tag("once")
@Tag("slow")
class CorruptValueAttacksTest {

    /** Each corrupts a key that a limiter has just written. */
    private static final List<BiConsumer<RedisCommands<String, String>, String>> CORRUPTIONS = List.of(
            CorruptValueAttacksTest::spoil,
            (redis, key) -> replace(redis, key, () -> redis.set(key, "")),
            (redis, key) -> replace(redis, key, () -> redis.set(key, "x")),
            (redis, key) -> replace(redis, key, () -> redis.rpush(key, "x")),
            (redis, key) -> replace(redis, key, () -> redis.hset(key, "m", "x")),
            (redis, key) -> replace(redis, key, () -> redis.sadd(key, "x")),
            (redis, key) -> replace(redis, key, () -> redis.zadd(key, 1, "x")));

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    @RegisterExtension
    static final RedisServers EMBEDDED = RedisServers.embedded();

    @RegisterExtension
    final LogLines log = new LogLines();

    private static void replace(RedisCommands<String, String> redis, String key, Runnable with) {
        redis.del(key);
        with.run();
    }

    /** Keeps the type and the parameters that are stored with the state, and spoils the state. */
    private static void spoil(RedisCommands<String, String> redis, String key) {
        switch (redis.type(key)) {
            case "string" -> redis.set(key, "too short");
            case "hash" ->
                redis.hkeys(key).stream()
                        .filter(field -> !field.equals("m"))
                        .forEach(field -> redis.hset(key, field, "x"));
            case "list" -> {
                for (long i = 1; i < redis.llen(key); i++) {
                    redis.lset(key, i, "x");
                }
            }
            default -> replace(redis, key, () -> redis.zadd(key, 1, "x"));
        }
    }

    private static Limit limit(String name, Algorithm algorithm) {
        Limit.Builder limit = Limit.of(name, algorithm);
        return algorithm == Algorithm.CONCURRENCY
                ? limit.maxConcurrent(5).build()
                : algorithm == Algorithm.WARM_UP
                        ? limit.rate("5/h").warmup(Duration.ofHours(1)).build()
                        : limit.rate("5/h").build();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void aCorruptValueIsAKeyNeverSeen(Algorithm algorithm) {
        isAKeyNeverSeen(REDIS, algorithm);
    }

    /** Another version reports errors of scripts in other words. */
    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void aCorruptValueIsAKeyNeverSeenOnTheServerOfTheJar(Algorithm algorithm) {
        isAKeyNeverSeen(EMBEDDED, algorithm);
    }

    private static void isAKeyNeverSeen(RedisServers servers, Algorithm algorithm) {
        RedisBackend backend = servers.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));
        RateLimiter limiter = backend.limiter(limit("corrupt", algorithm), RedisLimitOptions.DEFAULTS);
        for (int i = 0; i < CORRUPTIONS.size(); i++) {
            String key = "k" + i;
            BiConsumer<RedisCommands<String, String>, String> corruption = CORRUPTIONS.get(i);
            Reservation fresh = limiter.reserve(key, 1, 0);
            String name = servers.keyOf("corrupt", key);
            servers.server().<Void>ask(commands -> {
                corruption.accept(commands, name);
                return null;
            });
            assertThat(limiter.peek(key, 1, 0).source()).as("peek %d", i).isEqualTo(Source.REDIS);
            Reservation again = limiter.reserve(key, 1, 0);
            assertThat(again.decision().source()).as("reserve %d", i).isEqualTo(Source.REDIS);
            assertThat(again.isRefused()).as("reserve %d", i).isEqualTo(fresh.isRefused());
            assertThat(again.decision().remaining())
                    .as("reserve %d", i)
                    .isEqualTo(fresh.decision().remaining());
            fresh.cancel();
        }
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.UP);
        assertThat(backend.health().errors()).isZero();
    }

    @Test
    void aCorruptValueOfOneOfSeveralLimitsOpensNoBreaker() {
        RedisBackend backend = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));
        List<Claim> claims = Stream.of(Algorithm.TOKEN_BUCKET, Algorithm.FIXED_WINDOW)
                .map(algorithm -> backend.limiter(limit(algorithm.name(), algorithm), RedisLimitOptions.DEFAULTS))
                .map(limiter -> Claim.of(limiter, "k", 1, 0))
                .toList();
        AllOf.reserve(claims);
        String name = REDIS.keyOf("FIXED_WINDOW", "k");
        REDIS.server().<Void>ask(commands -> {
            spoil(commands, name);
            return null;
        });
        assertThat(AllOf.reserve(claims).decision().source()).isEqualTo(Source.REDIS);
        assertThat(backend.health().errors()).isZero();
    }

    @Test
    void manyCorruptValuesAreOneLineInTheLog() {
        RedisBackend backend = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));
        RateLimiter limiter = backend.limiter(limit("corrupt", Algorithm.SLIDING_WINDOW), RedisLimitOptions.DEFAULTS);
        for (int i = 0; i < 20; i++) {
            String key = "k" + i;
            limiter.reserve(key, 1, 0);
            String name = REDIS.keyOf("corrupt", key);
            REDIS.server().<Void>ask(commands -> {
                spoil(commands, name);
                return null;
            });
            assertThat(limiter.reserve(key, 1, 0).decision().source()).isEqualTo(Source.REDIS);
        }
        RedisProcess.until(() -> !log.all().isEmpty(), "a line", FarNode.PATIENCE);
        backend.close();
        assertThat(log.all()).singleElement().asString().contains(REDIS.keyOf("corrupt", "k0"), "treated as a new key");
    }

    @Test
    void aValueOfAnotherTypeIsReportedInTheLogOfTheServer() {
        RedisBackend backend = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));
        RateLimiter limiter = backend.limiter(limit("typed", Algorithm.FIXED_WINDOW), RedisLimitOptions.DEFAULTS);
        limiter.reserve("k", 1, 0);
        String name = REDIS.keyOf("typed", "k");
        REDIS.server().<Void>ask(commands -> {
            replace(commands, name, () -> commands.rpush(name, "x"));
            return null;
        });
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
        RedisProcess.until(
                () -> REDIS.server().log().contains(name + " held another type"), "a line", FarNode.PATIENCE);
    }
}
