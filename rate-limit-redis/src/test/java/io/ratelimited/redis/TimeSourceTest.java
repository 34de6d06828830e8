package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.AclSetuserArgs;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.protocol.CommandType;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.redis.RedisBackendOptions.TimeSource;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Servers that refuse TIME: to a user without the command, who is refused it in scripts and outside. A server that
 * refuses it in scripts alone is this one with a connection of another user for plain TIME.
 */
@Tag("once")
@Tag("slow")
class TimeSourceTest {

    private static final Duration PATIENCE = Duration.ofMinutes(1);
    private static final RedisBackendOptions OPTIONS = RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(20));

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** Another version, if there is one. */
    @RegisterExtension
    static final RedisServers EMBEDDED = RedisServers.embedded();

    @RegisterExtension
    final LogLines log = new LogLines();

    @AfterEach
    void stop() {
        allowTime(REDIS, true);
        allowTime(EMBEDDED, true);
    }

    private static void allowTime(RedisServers servers, boolean allowed) {
        AclSetuserArgs user =
                AclSetuserArgs.Builder.on().nopass().allKeys().allChannels().allCommands();
        servers.server()
                .ask(commands -> commands.aclSetuser("limits", allowed ? user : user.removeCommand(CommandType.TIME)));
    }

    /** Of the user to whom TIME may be refused. */
    private static RedisConnector connector(RedisServers servers) {
        return RedisServers.connector(RedisServers.settings(
                ClientOptions.create(),
                RedisURI.builder()
                        .withHost("127.0.0.1")
                        .withPort(servers.server().port())
                        .withAuthentication("limits", "any")
                        .build()));
    }

    /** The same, but plain TIME is allowed. */
    private static RedisConnector connectorWithTime(RedisServers servers) {
        RedisLink plain = servers.connector().connect("").toCompletableFuture().join();
        return new OtherTime(connector(servers), plain::time);
    }

    private static RedisBackend backend(RedisConnector connector, RedisBackendOptions options) {
        return REDIS.closeLater(RedisBackend.of(connector, options, UnaryOperator.identity()));
    }

    private static RateLimiter limiter(RedisBackend backend, Algorithm algorithm) {
        Limit.Builder limit = Limit.of(algorithm.name(), algorithm);
        return backend.limiter(
                switch (algorithm) {
                    case CONCURRENCY -> limit.maxConcurrent(5).build();
                    case WARM_UP ->
                        limit.rate("5/h").warmup(Duration.ofHours(1)).build();
                    default -> limit.rate("5/h").build();
                },
                RedisLimitOptions.DEFAULTS);
    }

    /** How many calls go, as decided by Redis. */
    private static int admitted(RateLimiter limiter) {
        int admitted = 0;
        while (true) {
            Decision decision = limiter.reserve("k", 1, 0).decision();
            assertThat(decision.source()).isEqualTo(Source.REDIS);
            if (!decision.admitted()) {
                return admitted;
            }
            admitted++;
        }
    }

    private static void awaitUp(RedisBackend backend) {
        until(() -> backend.health().state() == RedisHealth.State.UP, "Redis decides", PATIENCE);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void scriptsThatMayNotAskAreToldTheTime(boolean embedded) {
        RedisServers servers = embedded ? EMBEDDED : REDIS;
        allowTime(servers, false);
        RedisBackend backend = backend(connectorWithTime(servers), OPTIONS);
        awaitUp(backend);
        for (Algorithm algorithm : Algorithm.all()) {
            if (algorithm.findsItsLimit()) {
                continue;
            }
            boolean single = algorithm == Algorithm.SMOOTH_BURSTY
                    || algorithm == Algorithm.WARM_UP
                    || algorithm == Algorithm.LEAKY_BUCKET;
            assertThat(admitted(limiter(backend, algorithm)))
                    .as("%s", algorithm)
                    .isEqualTo(single ? 1 : 5);
        }
        until(() -> backend.health().nodes() == 1, "a heartbeat", PATIENCE);
        until(() -> !log.all().isEmpty(), "reported", PATIENCE);
        assertThat(log.all()).singleElement().asString().contains("rejects TIME in scripts");
    }

    @Test
    void aNodeThatIsToTellTheTimeDoesSoFromTheStart() {
        allowTime(REDIS, false);
        RedisBackend backend = backend(connectorWithTime(REDIS), OPTIONS.timeSource(TimeSource.NODE));
        awaitUp(backend);
        assertThat(admitted(limiter(backend, Algorithm.GCRA))).isEqualTo(5);
        assertThat(backend.health().errors()).isZero();
        assertThat(log.all()).isEmpty();
    }

    @Test
    void aServerMayBeginToRefuse() {
        allowTime(REDIS, true);
        RedisBackend backend = backend(connectorWithTime(REDIS), OPTIONS);
        RateLimiter limiter = limiter(backend, Algorithm.FIXED_WINDOW);
        assertThat(limiter.reserve("k", 2, 0).decision().source()).isEqualTo(Source.REDIS);
        allowTime(REDIS, false);
        until(
                () -> limiter.reserve("other", 1, 0).decision().source() == Source.REDIS
                        && !log.all().isEmpty(),
                "told by the node",
                PATIENCE);
        assertThat(admitted(limiter)).isEqualTo(3);
        assertThat(log.all()).singleElement().asString().contains("rejects TIME in scripts");
    }

    @Test
    void aRefusalThatAProbeIsTheFirstToSeeEndsTheOutageToo() {
        allowTime(REDIS, true);
        RedisBackend backend = backend(connectorWithTime(REDIS), OPTIONS);
        RateLimiter limiter = limiter(backend, Algorithm.GCRA);
        REDIS.server().ask(commands -> commands.replicaof("127.0.0.1", 1));
        try {
            until(
                    () -> {
                        limiter.reserve("k", 1, 0);
                        return backend.health().state() == RedisHealth.State.DOWN;
                    },
                    "open",
                    PATIENCE);
            allowTime(REDIS, false);
        } finally {
            REDIS.server().ask(commands -> commands.replicaofNoOne());
        }
        awaitUp(backend);
        assertThat(admitted(limiter(backend, Algorithm.SLIDING_LOG))).isEqualTo(5);
    }

    @ParameterizedTest
    @EnumSource
    void whereNobodyTellsTheTimeLimitsDecideAsTheyDoWithoutRedis(TimeSource source) {
        allowTime(REDIS, false);
        RedisBackend backend = backend(connector(REDIS), OPTIONS.timeSource(source));
        RateLimiter limiter = backend.limiter(
                Limit.of("untimed", Algorithm.GCRA).rate("5/h").build(),
                RedisLimitOptions.DEFAULTS.onFailure(OnFailure.DENY));
        until(() -> backend.health().lastError() != null, "refused", PATIENCE);
        for (int i = 0; i < 20; i++) {
            Decision decision = limiter.reserve("k", 1, 0).decision();
            assertThat(decision.source()).isEqualTo(Source.UNAVAILABLE);
            assertThat(decision.admitted()).isFalse();
        }
        assertThat(limiter.peek("k", 1, 0).source()).isEqualTo(Source.UNAVAILABLE);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.DOWN);
        // The reply of the server itself may be the last error first.
        until(() -> String.valueOf(backend.health().lastError()).contains("time"), "the reason", PATIENCE);
        allowTime(REDIS, true);
        awaitUp(backend);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.REDIS);
        // Written by a thread that nobody waits for.
        until(() -> log.all().stream().anyMatch(line -> line.contains("Redis returns the time")), "reported", PATIENCE);
        assertThat(log.all())
                .filteredOn(line -> line.contains("does not return the time"))
                .hasSize(1);
        assertThat(log.all()).last().asString().contains("Redis returns the time");
    }

    @Test
    void beforeTheFirstReplyRedisIsNotAsked() {
        CompletableFuture<List<Object>> reply = new CompletableFuture<>();
        AtomicInteger asked = new AtomicInteger();
        RedisBackend backend = backend(
                new OtherTime(REDIS.connector(), () -> {
                    asked.incrementAndGet();
                    return reply;
                }),
                OPTIONS.timeSource(TimeSource.NODE));
        RateLimiter limiter = limiter(backend, Algorithm.GCRA);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
        assertThat(asked).hasValue(1);
        assertThat(REDIS.server().<Long>ask(commands -> commands.dbsize())).isZero();
        reply.complete(OtherTime.reply(1_700_000_000_000_000L));
        awaitUp(backend);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.REDIS);
        assertThat(asked).hasValue(5);
    }

    /** Otherwise what one node has taken would be forgotten by the clock of another. */
    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "WARM_UP", "ADAPTIVE", "DEFAULT"})
    void keysOutliveTheirExpiryByWhatClocksMayDiffer(Algorithm algorithm) {
        RedisBackend backend = REDIS.backend(OPTIONS.timeSource(TimeSource.NODE));
        RateLimiter limiter = limiter(backend, algorithm);
        AtomicInteger keys = new AtomicInteger();
        // Again if the machine has taken most of the second between the two.
        until(
                () -> {
                    String key = "k" + keys.incrementAndGet();
                    Decision decision = limiter.reserve(key, 1, 0).decision();
                    String stored = REDIS.keyOf(algorithm.name(), key);
                    long left = REDIS.server().ask(commands -> commands.pttl(stored));
                    assertThat(decision.source()).isEqualTo(Source.REDIS);
                    // SMOOTH_BURSTY stores one second of its rate, here a part of a permit, which no reset counts.
                    long part = algorithm == Algorithm.SMOOTH_BURSTY ? 1000 : 0;
                    assertThat(left).isLessThanOrEqualTo(decision.reset().toMillis() + part + 1001);
                    return left > decision.reset().toMillis() + 100;
                },
                "outlives",
                PATIENCE);
    }
}
