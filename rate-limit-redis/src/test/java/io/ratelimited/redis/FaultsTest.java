package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What callers see while Redis, or the way to it, is broken, and after. */
class FaultsTest {

    /** Timeout and 20 ms are promised; a shared machine may add what it likes. */
    private static final long LONGEST_WAIT_MILLIS = 50 + 20 + 400;

    private static final Duration RECOVERY = Duration.ofSeconds(15);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static Limit limit(String name) {
        return Limit.of(name, Algorithm.TOKEN_BUCKET).rate("1000/s").burst(100).build();
    }

    private static boolean isDecidedByRedis(RateLimiter limiter) {
        return limiter.reserve("recovery", 1, 0).decision().source() == Source.REDIS;
    }

    private static void awaitRecovery(String what, RateLimiter limiter) {
        long begin = System.nanoTime();
        until(() -> isDecidedByRedis(limiter), "recovery after " + what, RECOVERY);
        System.out.printf("%s: recovered after %d ms%n", what, (System.nanoTime() - begin) / 1_000_000);
    }

    @Test
    void aFrozenServerKeepsNobodyLongerThanTheTimeout() throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(limit("frozen"), RedisLimitOptions.DEFAULTS);
        try (Load load = new Load(limiter, 8, caller -> "k" + caller % 2)) {
            until(() -> load.decisions(Source.REDIS) > 1000, "load", RECOVERY);
            load.longestMillis();
            int threads = Thread.activeCount();
            long timeouts = backend.health().timeouts();
            REDIS.server().freeze();
            long frozenAt = System.nanoTime();
            until(() -> load.decisions(Source.FALLBACK) > 1000, "fallback", RECOVERY);
            until(() -> System.nanoTime() - frozenAt > 5_000_000_000L, "5 s", RECOVERY);
            assertThat(backend.health().state()).isEqualTo(RedisHealth.State.DOWN);
            assertThat(Thread.activeCount()).isLessThanOrEqualTo(threads + 8);
            REDIS.server().thaw();
            awaitRecovery("frozen", limiter);
            long longest = load.longestMillis();
            System.out.printf(
                    "frozen: longest wait %d ms, %d calls timed out, %d decided locally%n",
                    longest, backend.health().timeouts() - timeouts, load.decisions(Source.FALLBACK));
            assertThat(longest).isLessThan(LONGEST_WAIT_MILLIS);
            assertThat(backend.health().timeouts() - timeouts).isLessThan(60);
        }
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.UP);
    }

    @Test
    void aKilledServerIsUsedAgainWhenItIsBack() throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(limit("killed"), RedisLimitOptions.DEFAULTS);
        try (Load load = new Load(limiter, 8, caller -> "k" + caller)) {
            until(() -> load.decisions(Source.REDIS) > 1000, "load", RECOVERY);
            load.longestMillis();
            REDIS.server().kill();
            until(() -> load.decisions(Source.FALLBACK) > 1000, "fallback", RECOVERY);
            REDIS.server().restart();
            awaitRecovery("killed", limiter);
            long longest = load.longestMillis();
            System.out.printf("killed: longest wait %d ms%n", longest);
            assertThat(longest).isLessThan(LONGEST_WAIT_MILLIS);
            assertThat(load.failures()).isZero();
        }
    }

    @Test
    void anApplicationStartsWithoutRedis() {
        int port = RedisProcess.freePort();
        RedisClient client = RedisClient.create(RedisURI.create("127.0.0.1", port));
        REDIS.closeLater(() -> client.shutdown(Duration.ZERO, Duration.ofSeconds(1)));
        RedisBackend backend = REDIS.closeLater(RedisBackend.of(client, RedisBackendOptions.DEFAULTS));
        RateLimiter limiter = backend.limiter(limit("late"), RedisLimitOptions.DEFAULTS);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.DOWN);
        assertThat(backend.health().lastError()).isNotNull();
        REDIS.closeLater(RedisProcess.start(port));
        awaitRecovery("late start", limiter);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.UP);
    }

    @Test
    void scriptsThatTheServerForgetsUnderLoadAreSentAgainAndNothingIsLost() throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(10)));
        Limit limit = Limit.of("flush", Algorithm.FIXED_WINDOW).rate("500/d").build();
        RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
        try (Load load = new Load(limiter, 8, caller -> "k")) {
            for (int i = 0; i < 50; i++) {
                REDIS.server().ask(commands -> commands.scriptFlush());
            }
            until(() -> load.decisions(Source.DENY_CACHE) > 100, "exhausted", RECOVERY);
            assertThat(load.admitted()).isEqualTo(500);
            assertThat(load.decisions(Source.FALLBACK)).isZero();
            assertThat(load.failures()).isZero();
        }
    }

    @Test
    void aServerOutOfMemoryCountsAsAway() {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(limit("oom"), RedisLimitOptions.DEFAULTS);
        assertThat(isDecidedByRedis(limiter)).isTrue();
        REDIS.server().ask(commands -> commands.configSet("maxmemory", "1"));
        try {
            assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
            assertThat(backend.health().lastError()).contains("OOM");
        } finally {
            REDIS.server().ask(commands -> commands.configSet("maxmemory", "0"));
        }
        awaitRecovery("OOM", limiter);
    }

    @Test
    void aServerThatHasBecomeAReplicaCountsAsAway() {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(limit("readonly"), RedisLimitOptions.DEFAULTS);
        assertThat(isDecidedByRedis(limiter)).isTrue();
        REDIS.server().ask(commands -> commands.replicaof("127.0.0.1", 1));
        try {
            assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
            assertThat(backend.health().lastError()).contains("READONLY");
        } finally {
            REDIS.server().ask(commands -> commands.replicaofNoOne());
        }
        awaitRecovery("READONLY", limiter);
    }

    @Test
    void aBadNetworkOfOneNodeHarmsThatNodeOnly() throws Exception {
        Proxy proxy = REDIS.closeLater(new Proxy(REDIS.server().port()));
        RedisClient client = RedisClient.create(RedisURI.create("127.0.0.1", proxy.port()));
        REDIS.closeLater(() -> client.shutdown(Duration.ZERO, Duration.ofSeconds(1)));
        RedisBackend far = REDIS.closeLater(RedisBackend.of(client, RedisBackendOptions.DEFAULTS.expectedNodes(2)));
        RedisBackend near = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(2));
        RateLimiter farLimiter = far.limiter(limit("network"), RedisLimitOptions.DEFAULTS);
        RateLimiter nearLimiter = near.limiter(limit("network"), RedisLimitOptions.DEFAULTS);
        try (Load load = new Load(farLimiter, 4, caller -> "k" + caller)) {
            proxy.delay(5);
            until(() -> load.decisions(Source.REDIS) > 100, "slow but in time", RECOVERY);
            load.longestMillis();
            proxy.delay(200);
            until(() -> load.decisions(Source.FALLBACK) > 1000, "too slow", RECOVERY);
            assertThat(isDecidedByRedis(nearLimiter)).isTrue();
            proxy.delay(0);
            awaitRecovery("slow network", farLimiter);
            proxy.silence(true);
            long before = load.decisions(Source.FALLBACK);
            until(() -> load.decisions(Source.FALLBACK) > before + 1000, "black hole", RECOVERY);
            assertThat(isDecidedByRedis(nearLimiter)).isTrue();
            proxy.cut(true);
            proxy.silence(false);
            proxy.cut(false);
            awaitRecovery("black hole", farLimiter);
            proxy.cut(true);
            long beforeCut = load.decisions(Source.FALLBACK);
            until(() -> load.decisions(Source.FALLBACK) > beforeCut + 1000, "cut", RECOVERY);
            proxy.cut(false);
            awaitRecovery("cut", farLimiter);
            long longest = load.longestMillis();
            System.out.printf("network: longest wait %d ms%n", longest);
            assertThat(longest).isLessThan(LONGEST_WAIT_MILLIS);
        }
        assertThat(near.health().errors() + near.health().timeouts()).isZero();
    }

    /** A backend whose Redis cannot be reached. */
    private static RedisBackend unreachable(RedisBackendOptions options) {
        return REDIS.closeLater(RedisBackend.of(
                () -> {
                    throw new IllegalStateException("refused");
                },
                options,
                null));
    }

    @ParameterizedTest
    @EnumSource
    void decidesAsTheLimitSaysWhileRedisIsAway(OnFailure onFailure) {
        RedisBackend backend = unreachable(RedisBackendOptions.DEFAULTS.expectedNodes(2));
        RateLimiter limiter = backend.limiter(
                Limit.of("failure", Algorithm.SLIDING_LOG).rate("10/m").build(),
                RedisLimitOptions.DEFAULTS.onFailure(onFailure));
        if (onFailure == OnFailure.THROW) {
            assertThatThrownBy(() -> limiter.reserve("k", 1, 0)).isInstanceOf(RedisUnavailableException.class);
            assertThatThrownBy(() -> limiter.tryAcquire("k", 1)).isInstanceOf(RedisUnavailableException.class);
            assertThat(limiter.reserveAsync("k", 1, 0)).failsWithin(Duration.ofSeconds(10));
            return;
        }
        int admitted = 0;
        for (int i = 0; i < 20; i++) {
            Reservation reservation = limiter.reserve("k", 1, 0);
            assertThat(reservation.decision().source()).isEqualTo(Source.FALLBACK);
            admitted += reservation.isRefused() ? 0 : 1;
        }
        int expected = switch (onFailure) {
            case LOCAL -> 5;
            case ALLOW -> 20;
            default -> 0;
        };
        assertThat(admitted).isEqualTo(expected);
        assertThat(limiter.reserveAsync("k", 1, 0))
                .succeedsWithin(Duration.ofSeconds(10))
                .extracting(Reservation::isRefused)
                .isEqualTo(onFailure != OnFailure.ALLOW);
        assertThat(limiter.peek("k", 1, 0).admitted()).isEqualTo(onFailure == OnFailure.ALLOW);
    }

    @Test
    void aLocalBucketBeginsEmptyAndRefillsAtItsShare() {
        var ticker = RedisServers.ticker();
        RedisBackend backend =
                unreachable(RedisBackendOptions.DEFAULTS.expectedNodes(4).ticker(ticker));
        RateLimiter limiter = backend.limiter(limit("empty"), RedisLimitOptions.DEFAULTS);
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        ticker.advance(Duration.ofMillis(40));
        int admitted = 0;
        while (limiter.tryAcquire("k", 1)) {
            admitted++;
        }
        assertThat(admitted).isEqualTo(10);
        Decision tooMuchForOneNode = limiter.reserve("k", 60, 0).decision();
        assertThat(tooMuchForOneNode.admitted()).isFalse();
        assertThat(tooMuchForOneNode.never()).isFalse();
    }

    @Test
    void nodesAreCounted() {
        RedisBackend one = REDIS.backend(RedisBackendOptions.DEFAULTS);
        RedisBackend two = REDIS.backend(RedisBackendOptions.DEFAULTS);
        until(() -> one.health().nodes() == 2 && two.health().nodes() == 2, "two nodes", RECOVERY);
        two.close();
        until(() -> one.health().nodes() == 1, "one node", RECOVERY);
    }

    @Test
    void callsInFlightOutliveTheirAnswerAtMostByTheirLease() throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(
                Limit.of("flight", Algorithm.CONCURRENCY)
                        .maxConcurrent(2)
                        .lease(Duration.ofMillis(300))
                        .build(),
                RedisLimitOptions.DEFAULTS);
        assertThat(limiter.reserve("k", 2, 0).isRefused()).isFalse();
        REDIS.server().freeze();
        Reservation local = limiter.reserve("k", 1, 0);
        assertThat(local.decision().source()).isEqualTo(Source.FALLBACK);
        local.release();
        REDIS.server().thaw();
        until(
                () -> {
                    Reservation next = limiter.reserve("k", 2, 0);
                    boolean admitted = !next.isRefused() && next.decision().source() == Source.REDIS;
                    next.release();
                    return admitted;
                },
                "permits of abandoned calls come back",
                RECOVERY);
    }

    @Test
    void aTimedOutCallIsNotAskedAgain() throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        Limit limit = Limit.of("once", Algorithm.FIXED_WINDOW).rate("100/d").build();
        RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
        limiter.reserve("k", 1, 0);
        REDIS.server().freeze();
        int asked = 0;
        for (int i = 0; i < 3; i++) {
            limiter.reserve("k", 1, 0);
            asked++;
        }
        REDIS.server().thaw();
        awaitRecovery("once", limiter);
        // What was sent is charged or has been given back, but never twice.
        assertThat(limiter.peek("k", 1, 0).remaining()).isBetween(99L - asked, 99L);
    }

    @Test
    void eachTransitionIsLoggedOnce() throws Exception {
        List<String> lines = new ArrayList<>();
        Handler handler = new Handler() {
            @Override
            public synchronized void publish(LogRecord entry) {
                lines.add(entry.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Logger logger = Logger.getLogger(RedisBackend.class.getName());
        logger.addHandler(handler);
        try {
            RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
            RateLimiter limiter = backend.limiter(limit("log"), RedisLimitOptions.DEFAULTS);
            REDIS.server().freeze();
            try (Load load = new Load(limiter, 4, caller -> "k" + caller)) {
                until(() -> load.decisions(Source.FALLBACK) > 1000, "fallback", RECOVERY);
                REDIS.server().thaw();
                awaitRecovery("log", limiter);
            }
            until(() -> lines.size() >= 2, "log lines", RECOVERY);
            assertThat(lines).hasSize(2);
            assertThat(lines.get(0)).contains("does not decide");
            assertThat(lines.get(1)).contains("decides again");
        } finally {
            logger.removeHandler(handler);
        }
    }

    @Test
    void asynchronousCallersAreAnsweredInTimeToo() throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(limit("async"), RedisLimitOptions.DEFAULTS);
        limiter.reserve("k", 1, 0);
        REDIS.server().freeze();
        try {
            CountDownLatch answered = new CountDownLatch(20);
            List<CompletableFuture<Reservation>> calls = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                CompletableFuture<Reservation> call =
                        limiter.reserveAsync("k", 1, 0).toCompletableFuture();
                calls.add(call);
                call.whenComplete((reservation, failure) -> answered.countDown());
            }
            assertThat(answered.await(10, TimeUnit.SECONDS)).isTrue();
            for (CompletableFuture<Reservation> call : calls) {
                assertThat(call.get().decision().source()).isEqualTo(Source.FALLBACK);
            }
        } finally {
            REDIS.server().thaw();
        }
    }
}
