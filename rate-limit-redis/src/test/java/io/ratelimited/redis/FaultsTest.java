package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What callers see while Redis, or the way to it, is broken, and after. */
@Tag("once")
@Tag("slow")
class FaultsTest {

    /** The timeout and 20 ms. */
    private static final long LONGEST_WAIT_MILLIS = 50 + 20;

    private static final Duration RECOVERY = Duration.ofSeconds(2);
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    /** For tests in which a busy machine must not pass for a fault. */
    private static final RedisBackendOptions PATIENT =
            RedisBackendOptions.DEFAULTS.expectedNodes(1).timeout(Duration.ofSeconds(1));

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    @RegisterExtension
    final LogLines log = new LogLines();

    private static Limit limit(String name) {
        return Limit.of(name, Algorithm.TOKEN_BUCKET).rate("1000/s").burst(100).build();
    }

    private static boolean isDecidedByRedis(RateLimiter limiter) {
        return limiter.reserve("recovery", 1, 0).decision().source() == Source.REDIS;
    }

    private static void awaitRecovery(String what, RateLimiter limiter) {
        try (Stalls stalls = new Stalls()) {
            long begin = System.nanoTime();
            until(() -> isDecidedByRedis(limiter), "recovery after " + what, PATIENCE);
            long end = System.nanoTime();
            long stolen = stalls.between(begin, end);
            System.out.printf(
                    "RECOVERY %s: after %d ms, of which the machine took %d ms%n",
                    what, (end - begin) / 1_000_000, stolen / 1_000_000);
            assertThat(end - begin - stolen).as(what).isLessThan(RECOVERY.toNanos());
        }
    }

    @Test
    void aFrozenServerKeepsNobodyLongerThanTheTimeout() {
        freeze(500);
    }

    private static void freeze(long millis) {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(limit("frozen"), RedisLimitOptions.DEFAULTS);
        try (Load load = new Load(limiter, 8, caller -> "k" + caller % 2)) {
            until(() -> load.decisions(Source.REDIS) > 1000, "load", PATIENCE);
            load.begin();
            int threads = Thread.activeCount();
            long timeouts = backend.health().timeouts();
            REDIS.server().freeze();
            long frozenAt = System.nanoTime();
            until(() -> load.decisions(Source.FALLBACK) > 1000, "fallback", PATIENCE);
            until(() -> System.nanoTime() - frozenAt > 1_000_000 * millis, "frozen long enough", PATIENCE);
            assertThat(backend.health().state()).isEqualTo(RedisHealth.State.DOWN);
            assertThat(Thread.activeCount()).isLessThanOrEqualTo(threads + 8);
            assertThat(backend.health().timeouts() - timeouts).isLessThan(60);
            REDIS.server().thaw();
            awaitRecovery("frozen", limiter);
            load.assertNobodyWaitedLongerThan(LONGEST_WAIT_MILLIS, "frozen");
        }
    }

    @Test
    void aKilledServerIsUsedAgainWhenItIsBack() throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(limit("killed"), RedisLimitOptions.DEFAULTS);
        try (Load load = new Load(limiter, 8, caller -> "k" + caller)) {
            until(() -> load.decisions(Source.REDIS) > 1000, "load", PATIENCE);
            load.begin();
            REDIS.server().kill();
            until(() -> load.decisions(Source.FALLBACK) > 1000, "fallback", PATIENCE);
            REDIS.server().restart();
            awaitRecovery("killed", limiter);
            load.assertNobodyWaitedLongerThan(LONGEST_WAIT_MILLIS, "killed");
            assertThat(load.failures()).isZero();
        }
    }

    @Test
    void anApplicationStartsWithoutRedis() {
        int port = RedisProcess.freePort();
        RedisBackend backend = REDIS.closeLater(RedisBackend.of(RedisServers.settings(port), PATIENT));
        RateLimiter limiter = backend.limiter(limit("late"), RedisLimitOptions.DEFAULTS);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.DOWN);
        assertThat(backend.health().lastError()).isNotNull();
        REDIS.closeLater(RedisProcess.start(RedisProcess.binary(), port));
        awaitRecovery("late start", limiter);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.UP);
    }

    @Test
    void theLogNamesTheShareOfAnInstanceThatStartsWithoutRedis() {
        REDIS.closeLater(RedisBackend.of(
                RedisServers.settings(RedisProcess.freePort()),
                RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(1))));
        REDIS.closeLater(RedisBackend.of(RedisServers.settings(RedisProcess.freePort()), PATIENT.expectedNodes(3)));
        until(() -> log.all().size() == 2, "told", PATIENCE);
        assertThat(log.all().get(0))
                .endsWith(
                        "The on-failure policy applies; with 'local', this instance enforces 1/4 of each limit, because the instances are"
                                + " not counted yet and expected-nodes is not set. Check the connection. [RL-301]");
        assertThat(log.all().get(1))
                .contains(
                        "; with 'local', this instance enforces 1/3 of each limit, because expected-nodes is 3. Check");
    }

    /** Nobody knows whether Redis carries out a command that it has not answered in time, so it may count beside the local decision. */
    @Test
    void aCallThatRedisAnswersTooLateCountsTwiceAtTheMost() {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        Limit limit = Limit.of("late", Algorithm.FIXED_WINDOW).rate("6/h").build();
        RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
        List<String> keys = new ArrayList<>();
        until(
                () -> {
                    keys.add(0, "k" + keys.size());
                    return limiter.reserve(keys.get(0), 1, 0).decision().source() == Source.REDIS;
                },
                "a call in time",
                PATIENCE);
        REDIS.server().freeze();
        Decision late = limiter.reserve(keys.get(0), 1, 0).decision();
        assertThat(late.admitted()).isTrue();
        assertThat(late.source()).isEqualTo(Source.FALLBACK);
        REDIS.server().thaw();
        AtomicReference<Decision> after = new AtomicReference<>();
        until(
                () -> {
                    limiter.reserve("recovery", 1, 0);
                    after.set(limiter.peek(keys.get(0), 1, 0));
                    return after.get().source() == Source.REDIS;
                },
                "recovery",
                PATIENCE);
        assertThat(after.get().remaining()).isBetween(3L, 4L);
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
            until(() -> load.decisions(Source.DENY_CACHE) > 100, "exhausted", PATIENCE);
            assertThat(load.admitted()).isEqualTo(500);
            assertThat(load.decisions(Source.FALLBACK)).isZero();
            assertThat(load.failures()).isZero();
        }
    }

    @Test
    void aServerOutOfMemoryCountsAsAway() throws Exception {
        breaks(
                "OOM",
                commands -> commands.configSet("maxmemory", "1"),
                commands -> commands.configSet("maxmemory", "0"));
    }

    @Test
    void aServerThatHasBecomeAReplicaCountsAsAway() throws Exception {
        breaks("READONLY", commands -> commands.replicaof("127.0.0.1", 1), RedisCommands::replicaofNoOne);
    }

    /** Rejections only read, so they succeed there; an attacker can make as many as are needed. */
    @ParameterizedTest
    @EnumSource
    void aServerThatTakesNoWritesCountsAsAwayWithItsFirstSuchAnswer(OnFailure onFailure) {
        RedisBackend backend = REDIS.backend(PATIENT.timeout(Duration.ofSeconds(20)));
        Limit limit =
                Limit.of("full" + onFailure, Algorithm.FIXED_WINDOW).rate("1/d").build();
        RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(onFailure));
        for (int i = 0; i < 20; i++) {
            limiter.reserve("spent" + i, 1, 0);
        }
        REDIS.server().ask(commands -> commands.configSet("maxmemory", "1"));
        try {
            for (int i = 0; i < 20; i++) {
                limiter.peek("spent" + i, 1, 0);
            }
            if (onFailure == OnFailure.THROW) {
                assertThatThrownBy(() -> limiter.reserve("fresh", 1, 0)).isInstanceOf(RedisUnavailableException.class);
            } else {
                assertThat(limiter.reserve("fresh", 1, 0).isRefused()).isEqualTo(onFailure == OnFailure.DENY);
            }
            assertThat(backend.health().state()).isEqualTo(RedisHealth.State.DOWN);
            assertThat(backend.health().lastError()).contains("OOM");
        } finally {
            REDIS.server().ask(commands -> commands.configSet("maxmemory", "0"));
        }
        until(() -> backend.health().state() == RedisHealth.State.UP, "recovery", PATIENCE);
    }

    /** A server that answers with errors, under load. */
    private static void breaks(
            String error,
            Function<RedisCommands<String, String>, String> fault,
            Function<RedisCommands<String, String>, String> repair)
            throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = backend.limiter(limit(error), RedisLimitOptions.DEFAULTS);
        try (Load load = new Load(limiter, 8, caller -> "k" + caller)) {
            until(() -> load.decisions(Source.REDIS) > 1000, "load", PATIENCE);
            load.begin();
            REDIS.server().ask(fault);
            try {
                until(() -> backend.health().state() == RedisHealth.State.DOWN, "open", PATIENCE);
                until(() -> backend.health().lastError().contains(error), error, PATIENCE);
                assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
            } finally {
                REDIS.server().ask(repair);
            }
            awaitRecovery(error, limiter);
            load.assertNobodyWaitedLongerThan(LONGEST_WAIT_MILLIS, error);
            assertThat(load.failures()).isZero();
        }
    }

    @Test
    void aBadNetworkOfOneNodeHarmsThatNodeOnly() throws Exception {
        Proxy proxy = REDIS.closeLater(new Proxy(REDIS.server().port()));
        RedisBackend far = REDIS.closeLater(
                RedisBackend.of(RedisServers.settings(proxy.port()), RedisBackendOptions.DEFAULTS.expectedNodes(2)));
        RedisBackend near = REDIS.backend(PATIENT.timeout(Duration.ofSeconds(20)));
        RateLimiter farLimiter = far.limiter(limit("network"), RedisLimitOptions.DEFAULTS);
        RateLimiter nearLimiter = near.limiter(limit("network"), RedisLimitOptions.DEFAULTS);
        try (Load load = new Load(farLimiter, 4, caller -> "k" + caller)) {
            proxy.delay(5);
            until(() -> load.decisions(Source.REDIS) > 100, "slow but in time", PATIENCE);
            load.begin();
            proxy.delay(200);
            until(() -> load.decisions(Source.FALLBACK) > 1000, "too slow", PATIENCE);
            assertThat(isDecidedByRedis(nearLimiter)).isTrue();
            proxy.delay(0);
            awaitRecovery("slow network", farLimiter);
            proxy.silence(true);
            long before = load.decisions(Source.FALLBACK);
            until(() -> load.decisions(Source.FALLBACK) > before + 1000, "black hole", PATIENCE);
            assertThat(isDecidedByRedis(nearLimiter)).isTrue();
            proxy.cut(true);
            proxy.silence(false);
            proxy.cut(false);
            awaitRecovery("black hole", farLimiter);
            proxy.cut(true);
            long beforeCut = load.decisions(Source.FALLBACK);
            until(() -> load.decisions(Source.FALLBACK) > beforeCut + 1000, "cut", PATIENCE);
            proxy.cut(false);
            awaitRecovery("cut", farLimiter);
            load.assertNobodyWaitedLongerThan(LONGEST_WAIT_MILLIS, "network");
        }
        assertThat(near.health().errors() + near.health().timeouts()).isZero();
    }

    /** A backend whose Redis cannot be reached, and which does not wait for it first. */
    private static RedisBackend unreachable(RedisBackendOptions options) {
        RedisConnector refusing = (RedisConnector) java.lang.reflect.Proxy.newProxyInstance(
                FaultsTest.class.getClassLoader(), new Class<?>[] {RedisConnector.class}, (proxy, method, args) -> {
                    if (method.getName().equals("close")) {
                        return null;
                    }
                    throw new IllegalStateException("refused");
                });
        return REDIS.closeLater(RedisBackend.of(
                refusing, options, Threads.real(), CallersExecutor.of(options.executor()), "unreachable"));
    }

    @ParameterizedTest
    @EnumSource
    void decidesAsTheLimitSaysWhileRedisIsAway(OnFailure onFailure) {
        RateLimiter limiter = unreachable(RedisBackendOptions.DEFAULTS.expectedNodes(2))
                .limiter(
                        Limit.of("failure", Algorithm.SLIDING_LOG).rate("10/m").build(),
                        RedisLimitOptions.DEFAULTS.onFailure(onFailure));
        if (onFailure == OnFailure.THROW) {
            assertThatThrownBy(() -> limiter.reserve("k", 1, 0)).isInstanceOf(RedisUnavailableException.class);
            assertThatThrownBy(() -> limiter.tryAcquire("k", 1)).isInstanceOf(RedisUnavailableException.class);
            assertThat(limiter.reserveAsync("k", 1, 0))
                    .failsWithin(Duration.ofSeconds(10))
                    .withThrowableThat()
                    .withCauseInstanceOf(RedisUnavailableException.class)
                    .withMessageContaining("limit 'failure' could not be decided by Redis: not called");
            return;
        }
        Source source = onFailure == OnFailure.DENY ? Source.UNAVAILABLE : Source.FALLBACK;
        int admitted = 0;
        for (int i = 0; i < 20; i++) {
            Reservation reservation = limiter.reserve("k", 1, 0);
            assertThat(reservation.decision().source()).isEqualTo(source);
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
    void aLocalBucketBeginsWithItsShareOfTheBurstAndRefillsAtItsShare() {
        var ticker = RedisServers.ticker();
        RedisBackend backend =
                unreachable(RedisBackendOptions.DEFAULTS.expectedNodes(4).ticker(ticker));
        RateLimiter limiter = backend.limiter(limit("local"), RedisLimitOptions.DEFAULTS);
        assertThat(admitted(limiter)).isEqualTo(25);
        ticker.advance(Duration.ofMillis(20));
        assertThat(admitted(limiter)).isEqualTo(5);
        Decision tooMuchForOneNode = limiter.reserve("k", 60, 0).decision();
        assertThat(tooMuchForOneNode.admitted()).isFalse();
        assertThat(tooMuchForOneNode.never()).isFalse();
    }

    /** They have never reached Redis, and nobody has said how many there are. */
    @Test
    void fourNodesThatHaveNotCountedEachOtherAdmitNoMoreThanTheLimit() {
        var ticker = RedisServers.ticker();
        int admitted = 0;
        for (int node = 0; node < 4; node++) {
            RedisBackend backend = unreachable(RedisBackendOptions.DEFAULTS.ticker(ticker));
            admitted += admitted(backend.limiter(limit("fleet"), RedisLimitOptions.DEFAULTS));
        }
        assertThat(admitted).isEqualTo(100);
    }

    private static int admitted(RateLimiter limiter) {
        int admitted = 0;
        while (limiter.tryAcquire("k", 1)) {
            admitted++;
        }
        return admitted;
    }

    /** Each counts when it comes; whoever was there before hears of it with its next heartbeat. */
    @Test
    void nodesAreCounted() {
        RedisBackend one = REDIS.backend(PATIENT.expectedNodes(0));
        RedisBackend two = REDIS.backend(PATIENT.expectedNodes(0));
        assertThat(one.health().nodes()).isPositive();
        assertThat(two.health().nodes()).isEqualTo(2);
        two.close();
        assertThat(REDIS.backend(PATIENT.expectedNodes(0)).health().nodes()).isEqualTo(2);
    }

    @Test
    @Tag("proof")
    void nodesHearOfEachOtherByTheirHeartbeats() {
        RedisBackend one = REDIS.backend(PATIENT.expectedNodes(0));
        RedisBackend two = REDIS.backend(PATIENT.expectedNodes(0));
        until(() -> one.health().nodes() == 2 && two.health().nodes() == 2, "two nodes", PATIENCE);
        two.close();
        until(() -> one.health().nodes() == 1, "one node", PATIENCE);
    }

    @Test
    void callsInFlightOutliveTheirAnswerAtMostByTheirLease() throws Exception {
        RedisBackend backend = REDIS.backend(PATIENT);
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
                PATIENCE);
    }

    @Test
    void aTimedOutCallIsNotAskedAgain() throws Exception {
        RedisBackend backend = REDIS.backend(PATIENT.timeout(Duration.ofMillis(300)));
        Limit limit = Limit.of("once", Algorithm.FIXED_WINDOW).rate("100/d").build();
        // Refused while Redis is away, so that the node has nothing of its own to charge.
        RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(OnFailure.DENY));
        AtomicInteger asked = new AtomicInteger();
        // A busy machine may keep a reply for longer than the timeout.
        until(
                () -> {
                    asked.incrementAndGet();
                    return limiter.reserve("k", 1, 0).decision().source() == Source.REDIS;
                },
                "a call in time",
                PATIENCE);
        REDIS.server().freeze();
        for (int i = 0; i < 3; i++) {
            limiter.reserve("k", 1, 0);
            asked.incrementAndGet();
        }
        REDIS.server().thaw();
        awaitRecovery("once", limiter);
        AtomicReference<Decision> after = new AtomicReference<>();
        until(
                () -> {
                    after.set(limiter.peek("k", 1, 0));
                    return after.get().source() == Source.REDIS;
                },
                "peeked in time",
                PATIENCE);
        // What was sent is charged or has been given back, but never twice.
        assertThat(after.get().remaining()).isBetween(100L - asked.get(), 99L);
    }

    @Test
    void eachTransitionIsLoggedOnce() throws Exception {
        RedisBackend backend = REDIS.backend(PATIENT);
        RateLimiter limiter = backend.limiter(limit("log"), RedisLimitOptions.DEFAULTS);
        REDIS.server().freeze();
        try (Load load = new Load(limiter, 4, caller -> "k" + caller)) {
            until(() -> load.decisions(Source.FALLBACK) > 1000, "fallback", PATIENCE);
            // A single late reply is no outage.
            until(() -> backend.health().state() == RedisHealth.State.DOWN, "an outage", PATIENCE);
            REDIS.server().thaw();
            awaitRecovery("log", limiter);
        }
        until(() -> log.all().size() >= 2, "log lines", PATIENCE);
        assertThat(log.all()).hasSize(2);
        assertThat(log.all().get(0)).contains("is unavailable");
        assertThat(log.all().get(1)).contains("is available again");
    }
}
