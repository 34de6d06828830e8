package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.KeyNames;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a call has really cost is charged in Redis, once, whatever happens meanwhile. */
@Tag("once")
@Tag("slow")
class SettleTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    private static Limit limit(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("settled", algorithm).rate("10/s");
        return algorithm == Algorithm.WARM_UP
                ? limit.warmup(Duration.ofSeconds(1)).build()
                : limit.build();
    }

    /** A rate at which nothing comes back within a test. */
    private static Limit slow(Algorithm algorithm) {
        return Limit.of("settled", algorithm).rate("10/3650d").build();
    }

    /** 1,000 guesses at once on four nodes: the password is checked five times. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void onlyFailedLoginsCostAndNoMoreAreTriedThanMayFail(Algorithm algorithm) throws Exception {
        Limit failures = Limit.of("failed-logins", algorithm).rate("5/3650d").build();
        RedisBackendOptions options =
                RedisBackendOptions.DEFAULTS.expectedNodes(4).timeout(Duration.ofSeconds(20));
        List<RateLimiter> nodes = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            nodes.add(REDIS.backend(options).limiter(failures, RedisLimitOptions.DEFAULTS));
        }
        AtomicInteger guessed = new AtomicInteger();
        AtomicInteger right = new AtomicInteger();
        CountDownLatch gate = new CountDownLatch(1);
        ExecutorService threads = Executors.newFixedThreadPool(32);
        try {
            List<Future<?>> logins = new ArrayList<>();
            for (int i = 0; i < 1_000; i++) {
                RateLimiter node = nodes.get(i % 4);
                logins.add(threads.submit(() -> {
                    gate.await();
                    return login(node, "guessed", 1, guessed);
                }));
            }
            gate.countDown();
            for (int round = 0; round < 5; round++) {
                List<Reservation> together = new ArrayList<>();
                for (RateLimiter node : nodes) {
                    together.add(node.reserve("right", 1, 0));
                }
                Collections.rotate(together, round);
                for (Reservation login : together) {
                    right.addAndGet(login.isRefused() ? 0 : 1);
                    login.settle(0);
                }
                until(() -> nodes.get(0).peek("right", 1, 0).remaining() == 5, "given back", Duration.ofMinutes(1));
            }
            for (Future<?> login : logins) {
                login.get(1, TimeUnit.MINUTES);
            }
        } finally {
            threads.shutdownNow();
        }
        assertThat(guessed).hasValue(5);
        assertThat(right).hasValue(20);
        assertThat(nodes.get(3).peek("guessed", 1, 0).remaining()).isZero();
    }

    private static Object login(RateLimiter failures, String user, long cost, AtomicInteger checked) {
        Reservation attempt = failures.reserve(user, 1, 0);
        if (attempt.isRefused()) {
            return attempt;
        }
        checked.incrementAndGet();
        attempt.settle(cost);
        attempt.release();
        return attempt;
    }

    /** A primary that was demoted keeps its connections, and says that it writes nothing. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_LOG"})
    void whatAServerThatIsReadOnlyHasRefusedIsChargedAndGivenBackLater(Algorithm algorithm) {
        RateLimiter limiter = REDIS.backend(
                        RedisBackendOptions.DEFAULTS.expectedNodes(1).timeout(Duration.ofSeconds(20)))
                .limiter(slow(algorithm), RedisLimitOptions.DEFAULTS);
        Reservation charged = limiter.reserve("charged", 1, 0);
        Reservation returned = limiter.reserve("returned", 1, 0);
        REDIS.server().ask(commands -> commands.replicaof("127.0.0.1", 1));
        try {
            charged.settle(4);
            returned.settle(0);
            // Redis replies in order: it has refused both.
            limiter.peek("other", 1, 0);
        } finally {
            REDIS.server().ask(RedisCommands::replicaofNoOne);
        }
        until(() -> remaining(limiter, "charged") == 6, "charged", Duration.ofSeconds(20));
        until(() -> remaining(limiter, "returned") == 10, "given back", Duration.ofSeconds(20));
    }

    /** As Redis has it; more than there can be while it does not decide. */
    private static long remaining(RateLimiter limiter, String key) {
        Decision decision = limiter.peek(key, 1, 0);
        return decision.source() == Source.REDIS ? decision.remaining() : Long.MAX_VALUE;
    }

    /** HTTP fields are written from it. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "WARM_UP", "ADAPTIVE", "DEFAULT"})
    void theDecisionShowsTheBudgetAsItIsAfterTheSettlement(Algorithm algorithm) {
        Limit limit = limit(algorithm);
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit, RedisLimitOptions.DEFAULTS);
        for (long cost : new long[] {0, 1, 2, 3, 4, 9, 11, 30}) {
            String key = "cost" + cost;
            limiter.reserve(key, 1, 0);
            ticker.advance(Duration.ofMillis(30));
            Reservation reservation =
                    limiter.reserve(key, 2, Duration.ofSeconds(5).toNanos());
            ticker.advance(Duration.ofMillis(130));
            reservation.settle(cost);
            Decision known = reservation.decision();
            Decision asked = limiter.peek(key, 1, 0);
            assertThat(known.admitted()).isTrue();
            assertThat(known.remaining()).as(key).isEqualTo(asked.remaining());
            long late = known.reset().minus(asked.reset()).toNanos();
            // A node does not know when windows of the calendar end, nor what else is in a sliding one.
            long apart = algorithm.family() == Algorithm.Family.WINDOW ? 900_000_000 : 2_000;
            assertThat(late).as(key).isBetween(-2_000L, apart);
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void enormousCostsOneAfterTheOtherAreNoGift(Algorithm algorithm) {
        for (long cost : new long[] {Long.MAX_VALUE, 1L << 60, (1L << 53) + 1, 1L << 52}) {
            RateLimiter limiter = REDIS.backend(ticker).limiter(limit(algorithm), RedisLimitOptions.DEFAULTS);
            String key = "k" + cost;
            for (int call = 0; call < 9; call++) {
                limiter.reserve(key, 1, Long.MAX_VALUE).settle(cost);
                ticker.advance(Duration.ofMillis(1));
            }
            assertThat(limiter.peek(key, 1, 0).remaining()).isZero();
            limiter.update(limit(algorithm).toBuilder().rate("1000/s").build());
            assertThat(limiter.peek(key, 1, 0).remaining()).isZero();
            assertThat(limiter.tryAcquire(key, 1)).isFalse();
        }
    }

    /** Charges at different times, each of which is more than a count can hold beside the other. */
    @ParameterizedTest
    @EnumSource(names = {"SLIDING_WINDOW", "SLIDING_LOG"})
    void anEnormousCostCountsUntilItLeavesTheWindowAlsoBesideAnEarlierOne(Algorithm algorithm) {
        Limit hourly = Limit.of("enormous", algorithm).rate("5/h").build();
        RateLimiter limiter = REDIS.backend(ticker).limiter(hourly, RedisLimitOptions.DEFAULTS);
        Reservation first = limiter.reserve("k", 1, 0);
        Reservation second = limiter.reserve("k", 1, 0);
        first.settle(Long.MAX_VALUE);
        ticker.advance(Duration.ofMinutes(30));
        second.settle(Long.MAX_VALUE);
        ticker.advance(Duration.ofMinutes(45));
        assertThat(limiter.peek("k", 1, 0).remaining()).isZero();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        ticker.advance(Duration.ofMinutes(22));
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(5);
    }

    /** Permits that are given back while others stay are added up, to more than a number of a script can hold. */
    @Test
    void whatIsGivenBackWithoutEndIsNoGift() {
        Limit slow = Limit.of("slow", Algorithm.TOKEN_BUCKET)
                .rate("1/3650d")
                .burst(3)
                .build();
        RateLimiter limiter = REDIS.backend(ticker).limiter(slow, RedisLimitOptions.DEFAULTS);
        long given = 0;
        for (int turn = 0; turn < 100; turn++) {
            ticker.advance(Duration.ofNanos(1_000L * (turn % 7)));
            Reservation middle = limiter.reserve("k", 1, 0);
            Reservation last = limiter.reserve("k", 1, 0);
            given += middle.isRefused() ? 0 : 1;
            given += last.isRefused() ? 0 : 1;
            for (Reservation call : List.of(middle, last)) {
                if (!call.isRefused()) {
                    call.cancel();
                    given--;
                }
            }
            Decision left = limiter.peek("k", 1, 0);
            assertThat(given).isZero();
            assertThat(left.remaining()).isBetween(0L, 3L);
            assertThat(left.reset()).isBetween(Duration.ZERO, Duration.ofDays(3 * 3_650));
        }
        Reservation one = limiter.reserve("k", 1, 0);
        assertThat(limiter.peek("k", 1, 0).remaining()).isLessThan(3);
        one.cancel();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aKeyInDebtExpiresWhenItIsPaid(Algorithm algorithm) {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit(algorithm), RedisLimitOptions.DEFAULTS);
        for (long cost : new long[] {100, 1_000_000, Long.MAX_VALUE, Long.MAX_VALUE}) {
            limiter.reserve("k", 1, Long.MAX_VALUE).settle(cost);
            Decision owed = limiter.peek("k", 1, 0);
            long left = REDIS.server().ask(commands -> commands.pttl(REDIS.keyOf("settled", "k")));
            assertThat(owed.remaining()).isZero();
            assertThat(left).isGreaterThanOrEqualTo(owed.reset().toMillis());
            assertThat(owed.reset()).isLessThan(Duration.ofDays(37 * 365));
        }
        limiter.update(limit(algorithm).toBuilder().rate("7/s").build());
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        assertThat(limiter.peek("k", 1, 0).remaining()).isZero();
    }

    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG", "TOKEN_BUCKET"})
    void whatCostMoreIsChargedOnceAlsoUnderTheLimitOfAnotherNode(Algorithm algorithm) {
        RedisBackend backend = REDIS.backend(ticker);
        RateLimiter old = backend.limiter(slow(algorithm), RedisLimitOptions.DEFAULTS);
        RateLimiter changed =
                backend.limiter(slow(algorithm).toBuilder().rate("12/3650d").build(), RedisLimitOptions.DEFAULTS);
        Reservation reservation = old.reserve("k", 2, 0);
        Reservation back = old.reserve("k", 3, 0);
        assertThat(changed.tryAcquire("k", 1)).isTrue();
        reservation.settle(5);
        // A larger window has its two permits more at once; a bucket fills at its rate.
        boolean bucket = algorithm == Algorithm.TOKEN_BUCKET;
        long left = bucket ? 1 : 3;
        until(() -> changed.peek("k", 1, 0).remaining() == left, "charged", Duration.ofSeconds(30));
        // Of a bucket that has been converted since nothing is given back.
        back.settle(0);
        assertThat(changed.peek("k", 1, 0).remaining()).isEqualTo(bucket ? left : left + 3);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aResetForgetsWhatWasReservedAndNotWhatItCostsMore(Algorithm algorithm) {
        RateLimiter limiter = REDIS.backend(ticker).limiter(slow(algorithm), RedisLimitOptions.DEFAULTS);
        Reservation more = limiter.reserve("k", 2, 0);
        Reservation less = limiter.reserve("k", 2, 0);
        limiter.reset("k");
        ticker.advance(Duration.ofMillis(1));
        more.settle(7);
        less.settle(1);
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(5);
    }

    @Test
    void eachOfSeveralLimitsIsCharged() {
        RedisBackend backend = REDIS.backend(ticker);
        RateLimiter bucket = backend.limiter(slow(Algorithm.TOKEN_BUCKET), RedisLimitOptions.DEFAULTS);
        RateLimiter log = backend.limiter(
                Limit.of("log", Algorithm.SLIDING_LOG).rate("20/3650d").build(), RedisLimitOptions.DEFAULTS);
        AllOf.reserve(List.of(Claim.of(bucket, "k", 4, 0), Claim.of(log, "k", 2, 0)))
                .settle(3);
        assertThat(bucket.peek("k", 1, 0).remaining()).isEqualTo(7);
        assertThat(log.peek("k", 1, 0).remaining()).isEqualTo(17);
    }

    @Test
    void leasedPermitsThatWereNotUsedAreHandedOutAgain() {
        RateLimiter limiter = REDIS.backend(ticker)
                .limiter(
                        Limit.of("hot", Algorithm.TOKEN_BUCKET).rate("10000/s").build(),
                        RedisLimitOptions.DEFAULTS.maxOvershoot(0.05));
        Reservation leased = limiter.reserve("k", 4, 0);
        for (int i = 0; i < 500 && leased.decision().source() != Source.LEASE; i++) {
            ticker.advance(Duration.ofMillis(1));
            leased = limiter.reserve("k", 4, 0);
        }
        assertThat(leased.decision().source()).isEqualTo(Source.LEASE);
        long left = leased.decision().remaining();
        leased.settle(1);
        leased.cancel();
        assertThat(leased.decision().remaining()).isEqualTo(left + 3);
        assertThat(limiter.reserve("k", 2, 0).decision().remaining()).isEqualTo(left + 1);
    }

    @Test
    void whatWasNotCountedIsNotCharged() {
        RateLimiter open = REDIS.backend(ticker)
                .limiter(
                        Limit.of("settled", Algorithm.TOKEN_BUCKET)
                                .rate("unlimited")
                                .build(),
                        RedisLimitOptions.DEFAULTS);
        Reservation free = open.reserve("k", 1, 0);
        free.settle(9);
        assertThat(free.decision().remaining()).isEqualTo(Long.MAX_VALUE);
        assertThat(REDIS.server()
                        .<List<String>>ask(commands -> commands.keys(
                                new KeyNames("rl").ofLimit("settled", "").of("k") + "*")))
                .isEmpty();
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter allowing = far.backend()
                .limiter(slow(Algorithm.FIXED_WINDOW), RedisLimitOptions.DEFAULTS.onFailure(OnFailure.ALLOW));
        far.awaitRedis();
        far.cut();
        Reservation unlimited = allowing.reserve("k", 1, 0);
        assertThat(unlimited.decision().source()).isEqualTo(Source.FALLBACK);
        unlimited.settle(9);
        assertThatThrownBy(() -> unlimited.settle(-1)).isInstanceOf(IllegalArgumentException.class);
        far.heal();
        assertThat(allowing.peek("k", 1, 0).remaining()).isEqualTo(10);
    }

    @ParameterizedTest
    @ValueSource(strings = {"LOCAL", "DENY"})
    void whatIsSettledWhileRedisIsAwayIsChargedAfterwards(OnFailure onFailure) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter = far.backend()
                .limiter(
                        Limit.of("settled", Algorithm.SLIDING_LOG)
                                .rate("100/3650d")
                                .build(),
                        RedisLimitOptions.DEFAULTS.onFailure(onFailure));
        far.awaitRedis();
        List<Reservation> taken = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            taken.add(limiter.reserve("k", 3, 0));
        }
        far.cut();
        for (int i = 0; i < 10; i++) {
            taken.get(i).settle(i < 5 ? 1 : 9);
        }
        far.heal();
        until(() -> limiter.peek("k", 1, 0).remaining() == 100 - 5 - 45, "charged", Duration.ofSeconds(30));
    }

    /** More than this node's share and more than the whole limit, too: it was really used. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whatWasAdmittedHereIsChargedAsItHasCost(Algorithm algorithm) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter =
                far.limiter(Limit.of("settled", algorithm).rate("100/30s").build());
        far.awaitRedis();
        limiter.reserve("known", 1, 0);
        far.cut();
        Reservation here = limiter.reserve("k", 1, Duration.ofSeconds(5).toNanos());
        assertThat(here.decision().source()).isEqualTo(Source.FALLBACK);
        here.settle(400);
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        far.heal();
        until(() -> limiter.peek("k", 1, 0).remaining() == 0, "charged", Duration.ofSeconds(30));
        if (algorithm == Algorithm.TOKEN_BUCKET) {
            assertThat(limiter.peek("k", 1, 0).retryAfter()).isGreaterThan(Duration.ofSeconds(60));
        }
    }

    /** As is one that Redis has admitted: what it has cost counts where the key has its permits by then. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whatWasAdmittedHereIsChargedUnderTheLimitThatThereIsWhenItEnds(Algorithm algorithm) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        Limit limit = Limit.of("settled", algorithm).rate("10/d").build();
        Limit raised = limit.toBuilder().rate("1000/3650d").build();
        RateLimiter limiter = far.limiter(limit);
        far.awaitRedis();
        far.cut();
        Reservation here = limiter.reserve("k", 1, 0);
        assertThat(here.decision().source()).isEqualTo(Source.FALLBACK);
        far.heal();
        until(() -> remaining(limiter, "k") == 9, "the call is charged", Duration.ofSeconds(30));
        RateLimiter other = REDIS.backend(FarNode.NEAR).limiter(raised, RedisLimitOptions.DEFAULTS);
        other.reset("k");
        assertThat(other.tryAcquire("k", 1)).isTrue();
        limiter.update(raised);
        here.settle(11);
        until(() -> other.peek("k", 1, 0).remaining() == 989, "charged", Duration.ofSeconds(30));
    }

    /** Another node has raised it, and has used the key: its bucket stays as large as it is. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW"})
    void whatWasAdmittedHereBeforeTheLimitWasRaisedTakesNoMoreThanItHasCost(Algorithm algorithm) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        Limit limit = Limit.of("settled", algorithm).rate("10/3650d").build();
        Limit raised = limit.toBuilder().rate("1000/3650d").build();
        RateLimiter limiter = far.limiter(limit);
        far.awaitRedis();
        far.cut();
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
        RateLimiter other = REDIS.backend(FarNode.NEAR).limiter(raised, RedisLimitOptions.DEFAULTS);
        assertThat(other.tryAcquire("k", 1)).isTrue();
        limiter.update(raised);
        far.heal();
        until(() -> other.peek("k", 1, 0).remaining() == 998, "charged", Duration.ofSeconds(30));
    }
}
