package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Redis counts a call, and its reply comes when the node has decided without it. In one thread, on a time that the test moves; only
 * callers that block wait for the timeout.
 */
@Tag("once")
@Tag("slow")
class LateRepliesTest {

    private final DirectServer server = new DirectServer();
    private final RedisBackend backend = server.node("node");

    /** Asks for one permit of each limit, while replies are held; returns what the node decides by itself. */
    private enum Way {
        BLOCKING {
            @Override
            boolean ask(LateRepliesTest test, List<Claim> claims) {
                return !AllOf.reserve(claims).isRefused();
            }
        },
        ASYNC {
            @Override
            boolean ask(LateRepliesTest test, List<Claim> claims) {
                CompletableFuture<Reservation> asked =
                        AllOf.reserveAsync(claims).toCompletableFuture();
                assertThat(asked).isNotDone();
                test.server.ticker.advance(Node.TIMEOUT);
                return !asked.join().isRefused();
            }
        },
        BY_HAND {
            @Override
            boolean ask(LateRepliesTest test, List<Claim> claims) {
                return claims.stream().allMatch(claim -> claim.limiter().tryAcquire(claim.key(), 1));
            }
        };

        abstract boolean ask(LateRepliesTest test, List<Claim> claims);
    }

    @AfterEach
    void close() {
        server.release();
        backend.close();
    }

    private static Limit limit(String name, Algorithm algorithm) {
        return Limit.of(name, algorithm).rate("5/d").build();
    }

    static Stream<Arguments> calls() {
        Limit blocking = Limit.of("blocking", Algorithm.SLIDING_LOG)
                .rate("5/d")
                .block(Duration.ofMinutes(1))
                .build();
        List<List<Limit>> limits = List.of(
                List.of(limit("bucket", Algorithm.TOKEN_BUCKET)),
                List.of(limit("meter", Algorithm.GCRA)),
                List.of(limit("window", Algorithm.FIXED_WINDOW)),
                List.of(limit("slots", Algorithm.SLIDING_WINDOW)),
                List.of(limit("log", Algorithm.SLIDING_LOG)),
                List.of(blocking),
                List.of(limit("bucket", Algorithm.TOKEN_BUCKET), blocking));
        return limits.stream()
                .flatMap(all -> Stream.of(Way.values())
                        .filter(way -> all.size() == 1 || way != Way.BY_HAND)
                        .flatMap(way -> Stream.of(OnFailure.LOCAL, OnFailure.ALLOW, OnFailure.DENY)
                                .map(onFailure -> Arguments.of(all, way, onFailure))));
    }

    @ParameterizedTest
    @MethodSource("calls")
    void aCallIsCountedOnceWhoeverHasDecidedIt(List<Limit> limits, Way way, OnFailure onFailure) {
        List<RateLimiter> limiters = limiters(limits, onFailure);
        for (int call = 1; call <= 3; call++) {
            server.hold();
            assertThat(way.ask(this, claims(limiters))).isEqualTo(onFailure != OnFailure.DENY);
            // The connection gives up no sooner than the caller.
            server.ticker.advance(Node.TIMEOUT);
            server.release();
            server.ticker.advance(Duration.ofSeconds(1));
            // What everybody is allowed counts nowhere; what is rejected is not charged.
            int counted = onFailure == OnFailure.LOCAL ? call : 0;
            assertThat(limiters).extracting(this::left).containsOnly(5L - counted);
        }
    }

    @ParameterizedTest
    @MethodSource("calls")
    void soIsOneWhoseReplyComesRightAfterItsCallerHasGone(List<Limit> limits, Way way, OnFailure onFailure) {
        List<RateLimiter> limiters = limiters(limits, onFailure);
        server.hold();
        assertThat(way.ask(this, claims(limiters))).isEqualTo(onFailure != OnFailure.DENY);
        server.release();
        server.ticker.advance(Duration.ofSeconds(1));
        assertThat(limiters).extracting(this::left).containsOnly(onFailure == OnFailure.LOCAL ? 4L : 5L);
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void callsThatWereDecidedTogetherAreCountedOnceEach(Algorithm algorithm) {
        RateLimiter limiter =
                limiters(List.of(limit("together", algorithm)), OnFailure.LOCAL).get(0);
        server.hold();
        List<CompletableFuture<Reservation>> asked = new ArrayList<>();
        for (int call = 0; call < 3; call++) {
            asked.add(limiter.reserveAsync("k", 1, 0).toCompletableFuture());
        }
        server.ticker.advance(Node.TIMEOUT);
        assertThat(asked).allMatch(one -> one.join().decision().source() == Source.FALLBACK);
        server.release();
        server.ticker.advance(Duration.ofSeconds(1));
        assertThat(left(limiter)).isEqualTo(2);
    }

    /** Returns whether the node admits a call whose reply is late, and that Redis has run. */
    private boolean admitsLate(RateLimiter limiter) {
        server.hold();
        boolean admitted = Way.ASYNC.ask(this, claims(List.of(limiter)));
        server.release();
        server.ticker.advance(Duration.ofSeconds(1));
        return admitted;
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"TOKEN_BUCKET", "GCRA", "SMOOTH_BURSTY", "LEAKY_BUCKET", "WARM_UP"})
    void aBucketIsNotUsedUpByLateRepliesWhileRedisHasPermits(Algorithm algorithm) {
        Limit.Builder often = Limit.of("often", algorithm).rate("5/s");
        Limit limit = (algorithm == Algorithm.WARM_UP ? often.warmup(Duration.ofSeconds(1)) : often).build();
        RateLimiter limiter = limiters(List.of(limit), OnFailure.LOCAL).get(0);
        for (int call = 0; call < 40; call++) {
            assertThat(admitsLate(limiter)).as("call " + call).isTrue();
        }
    }

    /** Redis has paid for the first five; the others are debt. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"TOKEN_BUCKET", "GCRA"})
    void lateRepliesGiveOneBurstMoreAtMost(Algorithm algorithm) {
        RateLimiter limiter =
                limiters(List.of(limit("seldom", algorithm)), OnFailure.LOCAL).get(0);
        int admitted = 0;
        for (int call = 0; call < 40; call++) {
            admitted += admitsLate(limiter) ? 1 : 0;
        }
        assertThat(admitted).isEqualTo(5 + 5);
    }

    @Test
    void aBucketThatAnOutageHasUsedUpIsRefilledFromRedisForTheNext() {
        Limit limit = Limit.of("outage", Algorithm.TOKEN_BUCKET).rate("5/s").build();
        RateLimiter limiter = limiters(List.of(limit), OnFailure.LOCAL).get(0);
        server.hold();
        for (int call = 0; call < 100; call++) {
            limiter.reserveAsync("k", 1, 0);
            server.ticker.advance(Node.TIMEOUT);
        }
        server.release();
        server.ticker.advance(Duration.ofSeconds(5));
        assertThat(Stream.generate(() -> admitsLate(limiter)).limit(20)).containsOnlyOnce(false);
    }

    @Test
    void aCallThatAnOutageHasRejectedCostsNothingIfItsPermitsComeBack() {
        Limit limit = Limit.of("rejected", Algorithm.TOKEN_BUCKET).rate("8/d").build();
        try (RedisBackend node = server.node("one of two", 2)) {
            RateLimiter limiter = node.limiter(limit, RedisLimitOptions.DEFAULTS);
            assertThat(admittedInOutage(limiter, 3, 2)).isEqualTo(3);
            assertThat(left(limiter)).isEqualTo(5);
            assertThat(admittedInOutage(limiter, 4, 1)).isEqualTo(4);
            assertThat(left(limiter)).isEqualTo(1);
            // Redis pays for one, and the others are debt. The node gives nothing that it has not got.
            assertThat(admittedInOutage(limiter, 1, 1, 3, 2)).isEqualTo(4);
            assertThat(left(limiter)).isZero();
            assertThat(admittedInOutage(limiter, 1)).isZero();
        }
    }

    @Test
    void onlyThePermitsThatACallHasLackedAreTakenForTheNext() {
        Limit limit =
                Limit.of("lacked", Algorithm.TOKEN_BUCKET).rate("1/s").burst(8).build();
        try (RedisBackend node = server.node("one of two", 2)) {
            RateLimiter limiter = node.limiter(limit, RedisLimitOptions.DEFAULTS);
            server.hold();
            assertThat(admitted(limiter, 4)).isEqualTo(4);
            server.ticker.advance(Duration.ofMinutes(1));
            assertThat(admitted(limiter, 4)).isEqualTo(4);
            server.ticker.advance(Duration.ofSeconds(2));
            assertThat(admitted(limiter, 3)).isZero();
            server.release();
            server.ticker.advance(Duration.ofSeconds(1));
            assertThat(left(limiter)).isEqualTo(8 - 4 - 2 + 1);
        }
    }

    @Test
    void aCallThatABlockRejectsInAnOutageLacksNoPermits() {
        Limit limit = Limit.of("blocked", Algorithm.TOKEN_BUCKET)
                .rate("5/d")
                .block(Duration.ofHours(1))
                .build();
        RateLimiter limiter = limiters(List.of(limit), OnFailure.LOCAL).get(0);
        assertThat(limiter.reserve("k", 4, 0).isRefused()).isFalse();
        assertThat(limiter.reserve("k", 2, 0).decision().blocked()).isTrue();
        RateLimiter memory = new InMemoryRateLimiter(limit("memory", Algorithm.TOKEN_BUCKET), server.ticker, 10);
        assertThat(memory.reserve("k", 5, 0).isRefused()).isFalse();
        server.ticker.advance(Duration.ofSeconds(2));
        server.hold();
        CompletableFuture<Reservation> asked =
                AllOf.reserveAsync(claims(List.of(memory, limiter))).toCompletableFuture();
        server.ticker.advance(Node.TIMEOUT);
        assertThat(AllOf.refusals(asked.join())[1])
                .matches(Decision::blocked)
                .extracting(Decision::source)
                .isEqualTo(Source.FALLBACK);
        server.release();
        server.ticker.advance(Duration.ofSeconds(5));
        limiter.update(limit("blocked", Algorithm.TOKEN_BUCKET));
        assertThat(left(limiter)).isEqualTo(1);
    }

    private long admittedInOutage(RateLimiter limiter, long... calls) {
        server.hold();
        long admitted = admitted(limiter, calls);
        server.release();
        server.ticker.advance(Duration.ofSeconds(5));
        return admitted;
    }

    /** Returns the permits that the node admits, in calls with so many, while it waits for Redis. */
    private long admitted(RateLimiter limiter, long... calls) {
        long admitted = 0;
        for (long permits : calls) {
            CompletableFuture<Reservation> asked =
                    limiter.reserveAsync("k", permits, 0).toCompletableFuture();
            server.ticker.advance(Node.TIMEOUT);
            admitted += asked.join().isRefused() ? 0 : permits;
        }
        return admitted;
    }

    /** Asks eight times for a permit of one key, every two milliseconds. */
    private List<Source> sources(RateLimiter limiter) {
        List<CompletableFuture<Reservation>> asked = new ArrayList<>();
        for (int call = 0; call < 8; call++) {
            asked.add(limiter.reserveAsync("k", 1, 0).toCompletableFuture());
            server.ticker.advance(Duration.ofMillis(2));
        }
        server.ticker.advance(Node.TIMEOUT);
        return asked.stream().map(one -> one.join().decision().source()).toList();
    }

    /** A call that waited for the reply to another one would wait for two round trips. */
    @ParameterizedTest
    @CsvSource({"1, 8", "15, 2", "20, 8", "30, 8", "45, 8"})
    void repliesInTimeDecideAllCallsOfAKeyHoweverFarRedisIs(int roundTripMillis, int commands) {
        server.delay(Duration.ofMillis(roundTripMillis));
        try (RedisBackend far = server.node("far")) {
            server.ticker.advance(Duration.ofMillis(1_500));
            Limit limit = Limit.of("far", Algorithm.SLIDING_LOG).rate("8/d").build();
            RateLimiter limiter = far.limiter(limit, RedisLimitOptions.DEFAULTS);
            long before = far.health().calls();
            assertThat(sources(limiter)).containsOnly(Source.REDIS);
            assertThat(far.health().timeouts()).isZero();
            assertThat(far.health().calls() - before).isEqualTo(commands);
        }
    }

    @Test
    void aLeaseOfAKeyIsTakenByOneCommandWhereSeveralArePending() {
        server.delay(Duration.ofMillis(30));
        try (RedisBackend far = server.node("far")) {
            server.ticker.advance(Duration.ofMillis(1_500));
            Limit limit =
                    Limit.of("leased", Algorithm.TOKEN_BUCKET).rate("6000/m").build();
            RateLimiter limiter = far.limiter(limit, RedisLimitOptions.DEFAULTS.maxOvershoot(0.05));
            List<CompletableFuture<Reservation>> asked = new ArrayList<>();
            for (int call = 0; call < 1_000; call++) {
                asked.add(limiter.reserveAsync("k", 1, 0).toCompletableFuture());
                server.ticker.advance(Duration.ofMillis(2));
            }
            server.ticker.advance(Node.TIMEOUT);
            assertThat(asked.stream().map(one -> one.join().decision().source()))
                    .containsOnly(Source.REDIS, Source.LEASE)
                    .filteredOn(Source.LEASE::equals)
                    .hasSizeGreaterThan(500);
            server.delay(Duration.ZERO);
            // All that is not there was used by the calls, or is in one lease of a second.
            assertThat(left(limiter)).isGreaterThan(6_000 - 1_000 - 100);
        }
    }

    @Test
    void healthCountsCallsThatAreNotDecidedInTimeBecauseTheyWaitedForTheReplyToAnother() {
        RateLimiter limiter = limiters(List.of(limit("slow", Algorithm.SLIDING_LOG)), OnFailure.LOCAL)
                .get(0);
        server.delay(Duration.ofMillis(30));
        assertThat(sources(limiter))
                .contains(Source.REDIS)
                .filteredOn(Source.FALLBACK::equals)
                .hasSize(4);
        assertThat(backend.health().timeouts()).isEqualTo(4);
    }

    /** A caller that waits for one of them after the other waits for the timeout of each. */
    @ParameterizedTest
    @EnumSource(
            value = Way.class,
            names = {"BLOCKING", "ASYNC"})
    void limitsThatAreAskedAboutARejectedCallAreAskedAtTheSameTime(Way way) {
        List<RateLimiter> limiters = new ArrayList<>();
        limiters.add(new InMemoryRateLimiter(limit("memory", Algorithm.TOKEN_BUCKET), server.ticker, 10));
        limiters.addAll(limiters(
                Stream.of("one", "two", "three", "four")
                        .map(name -> limit(name, Algorithm.SLIDING_LOG))
                        .toList(),
                OnFailure.LOCAL));
        limiters.forEach(each -> each.reserve("k", 5, 0));
        server.hold(4);
        Reservation refused = way == Way.BLOCKING
                ? AllOf.reserve(claims(limiters))
                : AllOf.reserveAsync(claims(limiters)).toCompletableFuture().join();
        assertThat(AllOf.refusals(refused))
                .extracting(Decision::source)
                .containsExactly(Source.MEMORY, Source.REDIS, Source.REDIS, Source.REDIS, Source.REDIS);
    }

    @Test
    void aCallThatIsChargedLessThanItReservedIsCountedWithThat() {
        Limit limit = Limit.of("charged", Algorithm.SLIDING_LOG)
                .rate("5/d")
                .charged(true)
                .build();
        RateLimiter limiter = limiters(List.of(limit), OnFailure.LOCAL).get(0);
        server.hold();
        CompletableFuture<Reservation> asked = limiter.reserveAsync("k", 3, 0).toCompletableFuture();
        server.ticker.advance(Node.TIMEOUT);
        asked.join().settle(1);
        server.release();
        server.ticker.advance(Duration.ofSeconds(1));
        assertThat(left(limiter)).isEqualTo(4);
    }

    private List<RateLimiter> limiters(List<Limit> limits, OnFailure onFailure) {
        return limits.stream()
                .map(limit -> backend.limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(onFailure)))
                .toList();
    }

    private static List<Claim> claims(List<RateLimiter> limiters) {
        return limiters.stream().map(each -> Claim.of(each, "k", 1, 0)).toList();
    }

    private long left(RateLimiter limiter) {
        Decision decision = limiter.peek("k", 1, 0);
        assertThat(decision.source()).isEqualTo(Source.REDIS);
        return decision.remaining();
    }
}
