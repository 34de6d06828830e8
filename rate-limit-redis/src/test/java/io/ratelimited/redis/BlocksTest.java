package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.KeyNames;
import java.time.Duration;
import java.time.Instant;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.RejectedExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Blocks of keys that several nodes share, and through outages. */
@Tag("once")
@Tag("slow")
class BlocksTest {

    private static final Pattern EVALS = Pattern.compile("cmdstat_evalsha?:calls=(\\d+)");
    private static final Duration BLOCK = Duration.ofMinutes(10);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    private static Limit.Builder builder() {
        return Limit.of("guesses", Algorithm.TOKEN_BUCKET).rate("2/s").block(BLOCK);
    }

    private static Limit limit() {
        return builder().build();
    }

    private static Limit byCharge() {
        return builder().charged(true).build();
    }

    private RateLimiter node(Limit limit) {
        return REDIS.backend(ticker).limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    private static Decision offend(RateLimiter limiter) {
        Reservation next = limiter.reserve("k", 1, 0);
        while (!next.isRefused()) {
            next = limiter.reserve("k", 1, 0);
        }
        return next.decision();
    }

    private static long commands() {
        Matcher stats = EVALS.matcher(REDIS.server().ask(commands -> commands.info("commandstats")));
        long sum = 0;
        while (stats.find()) {
            sum += Long.parseLong(stats.group(1));
        }
        return sum;
    }

    @Test
    void allNodesAndThoseThatStartLaterKnowABlockAndOneTellsOfIt() {
        List<BlockedKey> toldByOne = new CopyOnWriteArrayList<>();
        List<BlockedKey> toldByOther = new CopyOnWriteArrayList<>();
        RateLimiter one = node(limit());
        RateLimiter other = node(limit());
        one.onBlock(toldByOne::add);
        other.onBlock(toldByOther::add);
        offend(one);
        Decision refused = other.reserve("k", 1, 0).decision();
        assertThat(refused.blocked()).isTrue();
        assertThat(refused.retryAfter()).isEqualTo(BLOCK);
        assertThat(other.blockedKeys()).containsExactly(new BlockedKey("k", BLOCK, 1));
        until(() -> !toldByOne.isEmpty(), "the observer is told", Duration.ofSeconds(20));
        assertThat(toldByOther).isEmpty();
        assertThat(node(limit()).tryAcquire("k", 1)).isFalse();
    }

    @Test
    void ofManyCallersAtOnceTheLimitAdmitsItsPermitsAndOneBlockBegins() {
        RateLimiter limiter = node(limit());
        List<BlockedKey> begun = new CopyOnWriteArrayList<>();
        limiter.onBlock(begun::add);
        List<CompletableFuture<Reservation>> calls = IntStream.range(0, 500)
                .mapToObj(i -> limiter.reserveAsync("k", 1, 0).toCompletableFuture())
                .toList();
        List<Decision> decisions =
                calls.stream().map(call -> call.join().decision()).toList();
        assertThat(decisions).filteredOn(Decision::admitted).hasSize(2);
        assertThat(decisions).filteredOn(Decision::blocked).hasSize(498);
        until(() -> !begun.isEmpty(), "the observer is told", Duration.ofSeconds(20));
        assertThat(begun).containsExactly(new BlockedKey("k", BLOCK, 1));
    }

    @Test
    void aBlockedCallerReachesRedisOnceASecond() {
        RateLimiter limiter = node(limit());
        offend(limiter);
        long before = commands();
        for (int i = 0; i < 100; i++) {
            assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.DENY_CACHE);
            assertThat(limiter.tryAcquire("k", 1)).isFalse();
        }
        ticker.advance(Duration.ofMillis(999));
        assertThat(limiter.reserve("k", 2, 0).decision().retryAfter()).isEqualTo(BLOCK.minusMillis(999));
        assertThat(commands()).isEqualTo(before);
        ticker.advance(Duration.ofMillis(1));
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        assertThat(commands()).isEqualTo(before + 1);
    }

    @Test
    void aResetOnAnotherNodeForgivesWithinASecond() {
        RateLimiter one = node(limit());
        RateLimiter other = node(limit());
        offend(one);
        assertThat(other.tryAcquire("k", 1)).isFalse();
        other.reset("k");
        assertThat(other.blockedKeys()).isEmpty();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(one.tryAcquire("k", 1)).isTrue();
        assertThat(one.blockedKeys()).isEmpty();
        assertThat(offend(one).retryAfter()).isEqualTo(BLOCK);
    }

    @Test
    void aKeyOfALimitWithoutBlocksHasOneValueAndABlockExpiresWhenItIsForgiven() {
        node(builder().withoutBlocks().build()).tryAcquire("k", 1);
        String name = new KeyNames("rl").ofLimit("guesses", "").of("k");
        assertThat(REDIS.server().<List<String>>ask(commands -> commands.keys(name + "*")))
                .hasSize(1);
        offend(node(limit()));
        assertThat(REDIS.server().<Long>ask(commands -> commands.pttl(name + "~t~block2")))
                .isBetween(
                        BLOCK.plusHours(24).toMillis() + 3_500_000,
                        BLOCK.plusHours(24).toMillis() + 3_600_001);
    }

    @Test
    void whatCallsOfAKeyWereChargedIsInTheValueOfItsBlockAndLastsAsLongAsItCounts() {
        RateLimiter limiter = node(byCharge().toBuilder().rate("2/h").build());
        String name = new KeyNames("rl").ofLimit("guesses", "").of("k");
        limiter.reserve("k", 1, 0).settle(1);
        List<String> both = List.of(name + "~t", name + "~t~block2");
        until(() -> both.equals(keys(name)), "the charge is noted", Duration.ofSeconds(20));
        // An hour more, as clocks of tests want it; and what is left of a microsecond is a millisecond.
        assertThat(lasts(name)).isBetween(3_600_000 + 5_300_000L, 3_600_000 + 5_400_001L);
        limiter.reset("k");
        assertThat(keys(name)).containsExactly(name + "~t~block2");
        assertThat(lasts(name)).isBetween(3_600_000 + 3_500_000L, 3_600_000 + 3_600_001L);
    }

    private static List<String> keys(String name) {
        return REDIS.server().<List<String>>ask(commands -> commands.keys(name + "*")).stream()
                .sorted()
                .toList();
    }

    private static long lasts(String name) {
        return REDIS.server().<Long>ask(commands -> commands.pttl(name + "~t~block2"));
    }

    @Test
    void aValueThatNoScriptHasWrittenBlocksNobody() {
        RateLimiter limiter = node(limit());
        String name = new KeyNames("rl").ofLimit("guesses", "").of("k") + "~t~block2";
        for (String value : List.of(
                "",
                "garbage",
                "x".repeat(16),
                "\0".repeat(7) + "x".repeat(9),
                "\0".repeat(16) + "x".repeat(16),
                "\0".repeat(31) + "x")) {
            REDIS.server().ask(commands -> commands.set(name, value));
            assertThat(limiter.peek("k", 1, 0).blocked())
                    .as(value.replace('\0', '0'))
                    .isFalse();
        }
        REDIS.server().ask(commands -> commands.del(name));
        REDIS.server().ask(commands -> commands.rpush(name, "a list"));
        assertThat(limiter.tryAcquire("k", 1)).isTrue();
        assertThat(offend(limiter).retryAfter()).isEqualTo(BLOCK);
    }

    /** As after a failover to a server whose clock is behind. */
    @Test
    void aClockOfRedisThatStepsBackBehindABlockMakesItNoLongerThanItWas() {
        offend(node(limit()));
        ticker.setWallClock(Instant.parse("2025-12-31T19:00:00Z"));
        RateLimiter limiter = node(limit());
        assertThat(limiter.peek("k", 1, 0).retryAfter()).isEqualTo(BLOCK);
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        ticker.advance(BLOCK.minusMillis(1));
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        ticker.advance(Duration.ofMillis(1));
        assertThat(limiter.tryAcquire("k", 1)).isTrue();
    }

    @Test
    void aLimitThatToleratesLeasesTakesNoneWithBlocks() {
        Limit.Builder hot = builder().rate("100000/s");
        assertThat(sources(hot.build())).containsOnly(Source.REDIS);
        assertThat(sources(hot.withoutBlocks().build())).contains(Source.LEASE);
    }

    /** Of 400 calls of one key, one a millisecond. */
    private Set<Source> sources(Limit limit) {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit, RedisLimitOptions.DEFAULTS.maxOvershoot(0.5));
        Set<Source> sources = EnumSet.noneOf(Source.class);
        for (int i = 0; i < 400; i++) {
            ticker.advance(Duration.ofMillis(1));
            sources.add(limiter.reserve("k", 1, 0).decision().source());
        }
        return sources;
    }

    @Test
    void besideALimitInMemoryThatRefusesTooEachBeginsItsBlock() {
        RateLimiter memory = new InMemoryRateLimiter(limit(), ticker, 100);
        RateLimiter redis = node(limit());
        List<Claim> both = List.of(Claim.of(memory, "k", 1, 0), Claim.of(redis, "k", 1, 0));
        assertThat(memory.tryAcquire("k", 2)).isTrue();
        assertThat(redis.tryAcquire("k", 1)).isTrue();
        assertThat(AllOf.reserve(both).isRefused()).isTrue();
        assertThat(redis.peek("k", 1, 0).blocked()).isFalse();
        memory.reset("k");
        assertThat(AllOf.reserve(both).isRefused()).isFalse();
        assertThat(memory.tryAcquire("k", 1)).isTrue();
        ticker.advance(Duration.ofNanos(1_000));
        assertThat(AllOf.reserve(both).isRefused()).isTrue();
        assertThat(memory.peek("k", 1, 0).blocked()).isTrue();
        assertThat(redis.peek("k", 1, 0).blocked()).isTrue();
    }

    @ParameterizedTest
    @EnumSource
    void aKnownBlockHoldsWhileRedisIsAwayWhateverOnFailureSays(OnFailure onFailure) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter = far.backend().limiter(limit(), RedisLimitOptions.DEFAULTS.onFailure(onFailure));
        far.awaitRedis();
        offend(limiter);
        far.cut();
        Decision refused = limiter.reserve("k", 1, 0).decision();
        assertThat(refused.blocked()).isTrue();
        assertThat(refused.retryAfter()).isBetween(BLOCK.minusMinutes(1), BLOCK);
        assertThat(limiter.peek("k", 1, 0).blocked()).isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
    }

    @Test
    void aBlockThatBeginsWhileRedisIsAwayIsThereForAllAfterwards() {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter = far.limiter(limit());
        List<BlockedKey> told = new CopyOnWriteArrayList<>();
        limiter.onBlock(told::add);
        far.awaitRedis();
        far.cut();
        Decision refused = offend(limiter);
        assertThat(refused.source()).isEqualTo(Source.FALLBACK);
        assertThat(refused.blocked()).isTrue();
        assertThat(limiter.blockedKeys()).hasSize(1);
        until(() -> !told.isEmpty(), "the observer is told", Duration.ofSeconds(20));
        far.heal();
        RateLimiter other = REDIS.backend(FarNode.NEAR).limiter(limit(), RedisLimitOptions.DEFAULTS);
        Decision elsewhere = other.reserve("k", 1, 0).decision();
        assertThat(elsewhere.source()).isEqualTo(Source.REDIS);
        assertThat(elsewhere.blocked()).isTrue();
        assertThat(elsewhere.retryAfter()).isBetween(BLOCK.minusMinutes(1), BLOCK);
        Decision here = limiter.reserve("k", 1, 0).decision();
        assertThat(here.source()).isEqualTo(Source.REDIS);
        assertThat(here.blocked()).isTrue();
        assertThat(told).hasSize(1);
    }

    @Test
    void aChargeThatIsKnownWhileRedisIsAwayBeginsABlockHereOrWhenItIsBack() {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter = far.limiter(byCharge().toBuilder().rate("2/h").build());
        far.awaitRedis();
        assertThat(limiter.tryAcquire("k", 1)).isTrue();
        Reservation last = limiter.reserve("k", 1, 0);
        assertThat(last.isRefused()).isFalse();
        far.cut();
        last.settle(1);
        assertThat(limiter.peek("k", 1, 0).blocked()).isFalse();
        Reservation firstLocal = limiter.reserve("local", 1, 0);
        Reservation lastLocal = limiter.reserve("local", 1, 0);
        lastLocal.settle(1);
        assertThat(limiter.peek("local", 1, 0).blocked()).isFalse();
        firstLocal.settle(1);
        assertThat(limiter.peek("local", 1, 0).blocked()).isTrue();
        far.heal();
        assertThat(limiter.peek("k", 1, 0).blocked()).isTrue();
        assertThat(limiter.peek("local", 1, 0).blocked()).isTrue();
    }

    /** Two of four an hour for this node. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_LOG"})
    void whatIsOverTheShareOfANodeAloneIsNoViolation(Algorithm algorithm) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT.expectedNodes(2));
        Limit limit = Limit.of("shares", algorithm).rate("4/h").block(BLOCK).build();
        RateLimiter limiter = far.limiter(limit);
        far.awaitRedis();
        far.cut();
        for (int i = 0; i < 2; i++) {
            assertThat(limiter.tryAcquire("k", 1)).isTrue();
        }
        for (int i = 0; i < 2; i++) {
            Decision overShare = limiter.reserve("k", 1, 0).decision();
            assertThat(overShare.admitted()).isFalse();
            assertThat(overShare.blocked()).isFalse();
        }
        Decision overAll = limiter.reserve("k", 1, 0).decision();
        assertThat(overAll.blocked()).isTrue();
        assertThat(limiter.tryAcquire("other", 2)).isTrue();
        assertThat(limiter.tryAcquire("other", 2)).isFalse();
        far.heal();
        RateLimiter elsewhere = REDIS.backend(FarNode.NEAR).limiter(limit, RedisLimitOptions.DEFAULTS);
        assertThat(elsewhere.peek("other", 1, 0).blocked()).isFalse();
        assertThat(elsewhere.peek("k", 1, 0).blocked()).isTrue();
    }

    @Test
    void whileRedisIsAwayPermitsThatCallsInFlightHoldAreNoEvidence() {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT.expectedNodes(2));
        RateLimiter limiter = far.limiter(byCharge().toBuilder().rate("4/h").build());
        far.awaitRedis();
        far.cut();
        List<Reservation> two = List.of(limiter.reserve("k", 1, 0), limiter.reserve("k", 1, 0));
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        two.get(0).settle(1);
        assertThat(limiter.peek("k", 1, 0).blocked()).isFalse();
        two.get(1).settle(2);
        assertThat(limiter.peek("k", 1, 0).blocked()).isFalse();
        Reservation more = limiter.reserve("other", 1, 0);
        more.settle(4, false);
        assertThat(limiter.peek("other", 1, 0).blocked()).isFalse();
        Reservation last = limiter.reserve("third", 1, 0);
        last.settle(4);
        assertThat(limiter.peek("third", 1, 0).blocked()).isTrue();
    }

    @Test
    void aRedisThatComesBackEmptyHearsFirstOfTheBlocksThatANodeKnows() {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter = far.limiter(limit());
        far.awaitRedis();
        offend(limiter);
        far.cut();
        REDIS.server().ask(commands -> commands.flushall());
        far.heal();
        RateLimiter other = REDIS.backend(FarNode.NEAR).limiter(limit(), RedisLimitOptions.DEFAULTS);
        Decision elsewhere = other.peek("k", 1, 0);
        assertThat(elsewhere.blocked()).isTrue();
        assertThat(elsewhere.retryAfter()).isBetween(BLOCK.minusMinutes(1), BLOCK);
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
    }

    @Test
    void aBlockThatRedisHasLostWithoutAnOutageHoldsWhereItIsKnownAndIsThereForAllAfterTheNextCall() {
        RateLimiter one = node(limit());
        RateLimiter other = node(limit());
        offend(one);
        REDIS.server().ask(commands -> commands.flushall());
        ticker.advance(Duration.ofSeconds(1));
        assertThat(one.reserve(Claim.of(one, "k", 1, 0, RateLimiter.NO_RANK, 0, true))
                        .isRefused())
                .as("a call that is exempt from blocks")
                .isFalse();
        Decision refused = one.reserve("k", 1, 0).decision();
        assertThat(refused.blocked()).isTrue();
        assertThat(refused.retryAfter()).isEqualTo(BLOCK.minusSeconds(1));
        until(() -> other.peek("k", 1, 0).blocked(), "Redis has it again", Duration.ofSeconds(20));
        assertThat(other.peek("k", 1, 0).retryAfter()).isEqualTo(BLOCK.minusSeconds(1));
        assertThat(other.blockedKeys()).containsExactly(new BlockedKey("k", BLOCK.minusSeconds(1), 1));
    }

    private static Limit ofCallersAlone(Algorithm algorithm, String rate) {
        return Limit.of("plans", algorithm).rate(rate).block(BLOCK).build();
    }

    /** Under a limit that is unlimited or closed for all others. */
    @ParameterizedTest
    @CsvSource({"TOKEN_BUCKET, unlimited", "FIXED_WINDOW, unlimited", "SLIDING_LOG, 0/s"})
    void aRedisThatComesBackEmptyHearsFirstOfTheBlocksOfCallersWithTheirOwnNumbers(Algorithm algorithm, String rate) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        Limit limit = ofCallersAlone(algorithm, rate);
        RateLimiter limiter = far.limiter(limit);
        RateLimiter own = limiter.ofCallers(CallerLimit.of("3/h"));
        far.awaitRedis();
        offend(own);
        far.cut();
        REDIS.server().ask(commands -> commands.flushall());
        far.heal();
        RateLimiter other = REDIS.backend(FarNode.NEAR)
                .limiter(limit, RedisLimitOptions.DEFAULTS)
                .ofCallers(CallerLimit.of("3/h"));
        Decision elsewhere = other.peek("k", 1, 0);
        assertThat(elsewhere.blocked()).isTrue();
        assertThat(elsewhere.retryAfter()).isBetween(BLOCK.minusMinutes(1), BLOCK);
        assertThat(own.tryAcquire("k", 1)).isFalse();
        assertThat(limiter.blockedKeys()).hasSize(1);
    }

    @ParameterizedTest
    @CsvSource({"TOKEN_BUCKET, unlimited", "FIXED_WINDOW, unlimited", "SLIDING_LOG, 0/s"})
    void aBlockOfACallerWithItsOwnNumbersThatRedisHasLostIsThereForAllAfterTheNextCall(
            Algorithm algorithm, String rate) {
        Limit limit = ofCallersAlone(algorithm, rate);
        RateLimiter one = node(limit).ofCallers(CallerLimit.of("3/h"));
        RateLimiter other = node(limit).ofCallers(CallerLimit.of("3/h"));
        offend(one);
        REDIS.server().ask(commands -> commands.flushall());
        ticker.advance(Duration.ofSeconds(1));
        assertThat(one.reserve(Claim.of(one, "k", 1, 0, RateLimiter.NO_RANK, 0, true))
                        .isRefused())
                .as("a call that is exempt from blocks")
                .isFalse();
        Decision refused = one.reserve("k", 1, 0).decision();
        assertThat(refused.blocked()).isTrue();
        assertThat(refused.retryAfter()).isEqualTo(BLOCK.minusSeconds(1));
        until(() -> other.peek("k", 1, 0).blocked(), "Redis has it again", Duration.ofSeconds(20));
        assertThat(other.blockedKeys()).containsExactly(new BlockedKey("k", BLOCK.minusSeconds(1), 1));
    }

    @ParameterizedTest
    @CsvSource({"TOKEN_BUCKET, unlimited", "FIXED_WINDOW, unlimited", "SLIDING_LOG, 0/s"})
    void aBlockByChargesInAnOutageOfACallerWithItsOwnNumbersIsThereForAllAfterwards(Algorithm algorithm, String rate) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        Limit limit = ofCallersAlone(algorithm, rate).toBuilder().charged(true).build();
        RateLimiter own = far.limiter(limit).ofCallers(CallerLimit.of("3/h"));
        far.awaitRedis();
        far.cut();
        own.reserve("k", 1, 0).settle(3);
        assertThat(own.peek("k", 1, 0).blocked()).isTrue();
        far.heal();
        RateLimiter other = REDIS.backend(FarNode.NEAR)
                .limiter(limit, RedisLimitOptions.DEFAULTS)
                .ofCallers(CallerLimit.of("3/h"));
        assertThat(other.peek("k", 1, 0).blocked()).isTrue();
    }

    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void anotherPeriodOfACallerWithItsOwnNumbersEndsItsBlockOnAllNodes(Algorithm algorithm) {
        Limit limit = ofCallersAlone(algorithm, "unlimited");
        List<RateLimiter> nodes = List.of(node(limit), node(limit));
        offend(nodes.get(0).ofCallers(CallerLimit.of("3/h")));
        for (RateLimiter node : nodes) {
            assertThat(node.ofCallers(CallerLimit.of("3/h")).tryAcquire("k", 1)).isFalse();
            assertThat(node.ofCallers(CallerLimit.of("100/d")).tryAcquire("k", 1))
                    .isTrue();
            assertThat(node.ofCallers(CallerLimit.of("3/h")).tryAcquire("k", 1)).isFalse();
            assertThat(node.blockedKeys()).containsExactly(new BlockedKey("k", BLOCK, 1));
        }
        nodes.get(0).reset("k");
        assertThat(nodes.get(0).blockedKeys()).isEmpty();
        ticker.advance(Duration.ofSeconds(1));
        for (RateLimiter node : nodes) {
            assertThat(node.ofCallers(CallerLimit.of("3/h")).tryAcquire("k", 1)).isTrue();
        }
    }

    /** It is one key to whoever reads its name, and two records in Redis. */
    @Test
    void callersOfOneKeyWithOtherPeriodsAreBlockedApartInAnOutageAndAfterwards() {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        Limit limit = ofCallersAlone(Algorithm.FIXED_WINDOW, "unlimited");
        RateLimiter limiter = far.limiter(limit);
        RateLimiter other = REDIS.backend(FarNode.NEAR).limiter(limit, RedisLimitOptions.DEFAULTS);
        far.awaitRedis();
        far.cut();
        for (String numbers : List.of("3/h", "5/d")) {
            RateLimiter own = limiter.ofCallers(CallerLimit.of(numbers));
            assertThat(own.tryAcquire("k", 1)).isTrue();
            assertThat(offend(own).blocked()).isTrue();
        }
        far.heal();
        for (String numbers : List.of("3/h", "5/d")) {
            assertThat(other.ofCallers(CallerLimit.of(numbers)).peek("k", 1, 0).blocked())
                    .as(numbers)
                    .isTrue();
        }
    }

    @Test
    void aBlockThatRedisHasLostIsNamedBesideALimitThatRejectsForLessTime() {
        RedisBackend backend = REDIS.backend(ticker);
        RateLimiter blocking = backend.limiter(limit(), RedisLimitOptions.DEFAULTS);
        RateLimiter other = backend.limiter(
                Limit.of("searches", Algorithm.TOKEN_BUCKET).rate("1/s").build(), RedisLimitOptions.DEFAULTS);
        offend(blocking);
        REDIS.server().ask(commands -> commands.flushall());
        ticker.advance(Duration.ofSeconds(1));
        assertThat(other.tryAcquire("k", 1)).isTrue();
        Reservation refused = AllOf.reserve(List.of(Claim.of(other, "k", 1, 0), Claim.of(blocking, "k", 1, 0)));
        assertThat(AllOf.refusals(refused)).doesNotContainNull();
        assertThat(refused.decision().retryAfter()).isEqualTo(BLOCK.minusSeconds(1));
    }

    @Test
    void aBlockThatBeginsAndEndsInAnOutageKeepsItsLevel() {
        Limit limit = builder()
                .rate("2/h")
                .block(Duration.ofMillis(100))
                .blockFactor(1_000)
                .blockMax(BLOCK)
                .build();
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter = far.limiter(limit);
        far.awaitRedis();
        far.cut();
        offend(limiter);
        until(() -> limiter.blockedKeys().findAny().isEmpty(), "the block has ended", Duration.ofSeconds(20));
        far.heal();
        RateLimiter other = REDIS.backend(FarNode.NEAR).limiter(limit, RedisLimitOptions.DEFAULTS);
        assertThat(other.peek("k", 1, 0).blocked()).isFalse();
        Decision second = offend(other);
        assertThat(second.blocked()).isTrue();
        assertThat(other.blockedKeys()).extracting(BlockedKey::level).containsExactly(2);
    }

    @Test
    void aRememberedBlockSaysForMorePermitsNoMoreThanTheBudgetNeeds() {
        RateLimiter limiter = node(builder().rate("1/m").burst(15).block(BLOCK).build());
        assertThat(limiter.tryAcquire("k", 15)).isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        ticker.advance(BLOCK.minusMinutes(1));
        assertThat(limiter.reserve("k", 1, 0).decision().retryAfter()).isEqualTo(Duration.ofMinutes(1));
        assertThat(limiter.reserve("k", 9, 0).decision().retryAfter()).isEqualTo(Duration.ofMinutes(1));
        assertThat(limiter.reserve("k", 15, 0).decision().retryAfter()).isEqualTo(Duration.ofMinutes(6));
    }

    /** It was no violation, which the next one is. */
    @Test
    void aRejectionOfACallThatIsExemptFromBlocksIsNotRememberedForOthers() {
        RateLimiter limiter = node(limit());
        assertThat(limiter.tryAcquire("k", 2)).isTrue();
        Claim exempt = Claim.of(limiter, "k", 1, 0, RateLimiter.NO_RANK, 0, true);
        Decision unjudged = limiter.reserve(exempt).decision();
        assertThat(unjudged.admitted()).isFalse();
        assertThat(unjudged.blocked()).isFalse();
        assertThat(limiter.reserve("k", 1, 0).decision().blocked()).isTrue();
    }

    @Test
    void aRejectionThatThisNodeRemembersTellsOfABlockThatBeginsMeanwhile() {
        RateLimiter limiter = node(byCharge());
        List<Reservation> both = List.of(limiter.reserve("k", 1, 0), limiter.reserve("k", 1, 0));
        Decision before = limiter.reserve("k", 1, 0).decision();
        assertThat(before.admitted()).isFalse();
        assertThat(before.blocked()).isFalse();
        both.forEach(one -> one.settle(1));
        until(() -> limiter.reserve("k", 1, 0).decision().blocked(), "the block is told", Duration.ofSeconds(20));
        assertThat(limiter.reserve("k", 1, 0).decision().retryAfter()).isEqualTo(BLOCK);
    }

    @Test
    void anotherAlgorithmOrPeriodEndsBlocksAndAnotherRateKeepsThem() {
        Limit window = Limit.of("guesses", Algorithm.FIXED_WINDOW)
                .rate("2/m")
                .block(BLOCK)
                .build();
        RateLimiter limiter = node(window);
        offend(limiter);
        limiter.update(window.toBuilder().rate("9/m").build());
        assertThat(limiter.peek("k", 1, 0).blocked()).isTrue();
        limiter.update(window.toBuilder().rate("9/h").build());
        assertThat(limiter.peek("k", 1, 0).blocked()).isFalse();
        assertThat(limiter.blockedKeys()).isEmpty();
        offend(limiter);
        limiter.update(limit());
        assertThat(limiter.peek("k", 1, 0).blocked()).isFalse();
    }

    @Test
    void aBlockIsToldOfAlsoIfTheExecutorOfTheApplicationTakesNoTask() {
        RateLimiter limiter = REDIS.backend(RedisBackendOptions.DEFAULTS
                        .timeout(Duration.ofSeconds(20))
                        .executor(task -> {
                            throw new RejectedExecutionException("full");
                        }))
                .limiter(limit(), RedisLimitOptions.DEFAULTS);
        List<BlockedKey> told = new CopyOnWriteArrayList<>();
        limiter.onBlock(told::add);
        offend(limiter);
        until(() -> !told.isEmpty(), "the observer is told", Duration.ofSeconds(20));
    }

    @Test
    void anEndlessNumberOfBlocksIsKnownOfABoundedNumberOfKeys() {
        RateLimiter limiter = REDIS.backend(ticker)
                .limiter(builder().rate("1/h").build(), RedisLimitOptions.DEFAULTS.maximumKeys(100));
        for (int i = 0; i < 300; i++) {
            limiter.tryAcquire("k" + i, 1);
            assertThat(limiter.tryAcquire("k" + i, 1)).isFalse();
        }
        assertThat(limiter.blockedKeys().count()).isBetween(50L, 100L);
        assertThat(limiter.peek("k0", 1, 0).blocked()).isTrue();
    }

    @Test
    void blocksThatALimitWithoutBlocksHasEndedComeBackOnNoNodeThatStartsLater() {
        RateLimiter limiter = node(limit());
        offend(limiter);
        limiter.update(builder().withoutBlocks().build());
        assertThat(limiter.reserve("other", 1, 0).isRefused()).isFalse();
        RateLimiter later = node(limit());
        assertThat(later.peek("k", 1, 0).blocked()).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(offend(later).retryAfter()).isEqualTo(BLOCK);
        assertThat(later.blockedKeys()).containsExactly(new BlockedKey("k", BLOCK, 1));
        assertThat(node(limit()).peek("k", 1, 0).blocked()).isTrue();
    }
}
