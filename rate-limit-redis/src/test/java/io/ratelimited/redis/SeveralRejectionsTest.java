package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** One call, several limits that refuse it, on one Redis, on two, and in memory beside: any order gives the same answer. */
@Tag("once")
@Tag("slow")
class SeveralRejectionsTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private enum Place {
        ONE_SCRIPT,
        TWO_BACKENDS,
        BESIDE_MEMORY
    }

    private static final Algorithm[] ALGORITHMS = {
        Algorithm.TOKEN_BUCKET,
        Algorithm.GCRA,
        Algorithm.LEAKY_BUCKET,
        Algorithm.SMOOTH_BURSTY,
        Algorithm.FIXED_WINDOW,
        Algorithm.SLIDING_WINDOW,
        Algorithm.SLIDING_LOG
    };

    private final ManualTicker ticker = RedisServers.ticker();
    private final RedisBackend one = REDIS.backend(ticker);

    private RateLimiter limiter(Place place, int number, RedisBackend other, Limit limit) {
        return switch (place) {
            case ONE_SCRIPT -> one.limiter(limit, RedisLimitOptions.DEFAULTS);
            case TWO_BACKENDS -> (number % 2 == 0 ? one : other).limiter(limit, RedisLimitOptions.DEFAULTS);
            case BESIDE_MEMORY ->
                number % 2 == 0
                        ? one.limiter(limit, RedisLimitOptions.DEFAULTS)
                        : new InMemoryRateLimiter(limit, ticker, 100);
        };
    }

    @ParameterizedTest
    @EnumSource
    void anyOrderGivesTheSameRefusalAndWhoObeysItIsAdmitted(Place place) {
        RedisBackend other = place == Place.TWO_BACKENDS ? REDIS.backend(ticker) : one;
        int refused = 0;
        for (int seed = 0; seed < 25; seed++) {
            Random random = new Random(seed);
            List<Claim> claims = new ArrayList<>();
            int number = 2 + random.nextInt(2);
            for (int i = 0; i < number; i++) {
                String rate = 1 + random.nextInt(3) + List.of("/s", "/m", "/5s").get(random.nextInt(3));
                Limit limit = Limit.of("l" + i, ALGORITHMS[random.nextInt(ALGORITHMS.length)])
                        .rate(rate)
                        .build();
                claims.add(Claim.of(
                        limiter(place, i, other, limit), "k" + seed, 1, random.nextInt(4) == 0 ? 1_000_000_000 : 0));
            }
            for (int call = 0; call < 8; call++) {
                ticker.advance(Duration.ofMillis(random.nextInt(400)));
                Claim alone = claims.get(random.nextInt(number));
                alone.limiter().reserve(alone.key(), 1, 0);
                Collections.shuffle(claims, random);
                Reservation first = AllOf.reserve(claims);
                if (!first.isRefused()) {
                    continue;
                }
                refused++;
                Collections.shuffle(claims, random);
                Decision second =
                        AllOf.reserveAsync(claims).toCompletableFuture().join().decision();
                String where = place + ", seed " + seed + ", call " + call;
                assertThat(List.of(second.limit(), second.never(), String.valueOf(second.retryAfter())))
                        .as(where)
                        .isEqualTo(List.of(
                                first.decision().limit(),
                                first.decision().never(),
                                String.valueOf(first.decision().retryAfter())));
                Duration retryAfter = first.decision().retryAfter();
                if (retryAfter != null) {
                    ticker.advance(retryAfter);
                    assertThat(AllOf.reserve(claims).isRefused()).as(where).isFalse();
                }
            }
        }
        assertThat(refused).isGreaterThan(50);
    }

    /** Redis is only asked whether it would reject the call, too, and its answer is remembered until a place is free again. */
    @Test
    void aRejectionBesideMemoryNamesNoPlaceThatHasBeenReleased() {
        RateLimiter pace = new InMemoryRateLimiter(
                Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/h").build(), ticker, 10);
        RateLimiter places = one.limiter(
                Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(1).build(), RedisLimitOptions.DEFAULTS);
        assertThat(pace.tryAcquire("k", 1)).isTrue();
        Reservation place = places.reserve("k", 1, 0);
        List<Claim> claims = List.of(Claim.of(pace, "k", 1, 0), Claim.of(places, "k", 1, 0));
        assertThat(AllOf.refusals(AllOf.reserve(claims))).doesNotContainNull();
        place.release();
        assertThat(AllOf.refusals(AllOf.reserve(claims))[1]).isNull();
    }

    /** An exempt call says nothing of the blocks of others. */
    @Test
    void aRejectionOfAnExemptCallIsNotThatOfOthers() {
        RateLimiter blocks = one.limiter(
                Limit.of("blocks", Algorithm.TOKEN_BUCKET)
                        .rate("1/h")
                        .block(Duration.ofHours(2))
                        .build(),
                RedisLimitOptions.DEFAULTS);
        RateLimiter used =
                one.limiter(Limit.of("used", Algorithm.TOKEN_BUCKET).rate("1/h").build(), RedisLimitOptions.DEFAULTS);
        assertThat(blocks.tryAcquire("k", 1)).isTrue();
        assertThat(blocks.tryAcquire("k", 1)).isFalse();
        ticker.advance(Duration.ofMinutes(90)); // its budget is full again, and the key still blocked
        assertThat(used.tryAcquire("k", 1)).isTrue();
        Claim other = Claim.of(used, "k", 1, 0);
        List<Claim> exempt = List.of(Claim.of(blocks, "k", 1, 0, RateLimiter.NO_RANK, 0, true), other);
        assertThat(AllOf.refusals(AllOf.reserve(exempt))[0]).isNull();
        assertThat(AllOf.refusals(AllOf.reserve(List.of(Claim.of(blocks, "k", 1, 0), other)))[0])
                .isNotNull();
    }

    /** Whatever the uses, their waits and blocks are: the call is decided as one use of all their permits. */
    @ParameterizedTest
    @EnumSource
    void claimsOnOneBudgetAreDecidedAsOneAndWhoObeysItIsAdmitted(Place place) {
        RedisBackend other = place == Place.TWO_BACKENDS ? REDIS.backend(ticker) : one;
        int refused = 0;
        int waited = 0;
        int blocked = 0;
        for (int seed = 0; seed < 60; seed++) {
            Random random = new Random(seed);
            Algorithm algorithm =
                    random.nextBoolean() ? Algorithm.LEAKY_BUCKET : ALGORITHMS[random.nextInt(ALGORITHMS.length)];
            Limit.Builder limit = Limit.of("l" + seed, algorithm).rate(2 + random.nextInt(4) + "/5s");
            if (algorithm == Algorithm.LEAKY_BUCKET) {
                limit.burst(2 + random.nextInt(5));
            }
            // Where two backends are asked first, a rejection does not tell the block that it begins.
            if (random.nextInt(3) == 0 && place != Place.TWO_BACKENDS) {
                limit.block(Duration.ofSeconds(1 + random.nextInt(3)));
            }
            RateLimiter limiter = limiter(place, 0, other, limit.build());
            RateLimiter wide = limiter(
                    place,
                    1,
                    other,
                    Limit.of("wide", Algorithm.TOKEN_BUCKET).rate("99999/s").build());
            boolean besideAnother = random.nextBoolean();
            for (int call = 0; call < 8; call++) {
                ticker.advance(Duration.ofMillis(random.nextInt(700)));
                long first = 1L + random.nextInt(3);
                long second = random.nextInt(3);
                long wait = random.nextInt(2) * random.nextLong(3_000_000_000L);
                long longer = wait + random.nextInt(2) * 1_000_000_000L;
                List<Claim> sum = new ArrayList<>(List.of(Claim.of(limiter, "one", first + second, wait)));
                List<Claim> uses = new ArrayList<>(List.of(
                        Claim.of(limiter, "several", first, wait), Claim.of(limiter, "several", second, longer)));
                Collections.shuffle(uses, random);
                if (besideAnother) {
                    sum.add(Claim.of(wide, "one", 1, 0));
                    uses.add(1, Claim.of(wide, "several", 1, 0));
                }
                String where = place + ", seed " + seed + ", call " + call;
                boolean blocking = random.nextBoolean();
                Reservation expected = reserve(sum, blocking);
                Reservation decided = reserve(uses, blocking);
                assertThat(said(decided)).as(where).isEqualTo(said(expected));
                if (decided.isRefused()) {
                    refused++;
                    blocked += decided.decision().blocked() ? 1 : 0;
                    Duration retryAfter = decided.decision().retryAfter();
                    if (retryAfter != null) {
                        ticker.advance(retryAfter);
                        assertThat(reserve(uses, blocking).isRefused())
                                .as(where)
                                .isFalse();
                        assertThat(reserve(sum, blocking).isRefused()).as(where).isFalse();
                    }
                } else {
                    waited += decided.waitNanos() > 0 ? 1 : 0;
                }
            }
        }
        assertThat(refused).isGreaterThan(100);
        assertThat(waited).isGreaterThan(10);
        assertThat(blocked > 10).isEqualTo(place != Place.TWO_BACKENDS);
    }

    private static Reservation reserve(List<Claim> claims, boolean blocking) {
        return blocking
                ? AllOf.reserve(claims)
                : AllOf.reserveAsync(claims).toCompletableFuture().join();
    }

    private static String said(Reservation call) {
        Decision decision = call.decision();
        return call.isRefused() + " " + call.waitNanos() + " " + decision.never() + " " + decision.retryAfter() + " "
                + decision.blocked();
    }

    /** A refusal is remembered for up to a second, with what the other limits of the call have said. */
    @Test
    void anExhaustedCallerCostsRedisOneScriptASecond() {
        RateLimiter pace = one.limiter(
                Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("10/m").burst(1).build(), RedisLimitOptions.DEFAULTS);
        RateLimiter quota = one.limiter(
                Limit.of("quota", Algorithm.FIXED_WINDOW).rate("1000/h").build(), RedisLimitOptions.DEFAULTS);
        List<Claim> claims = List.of(Claim.of(quota, "k", 1, 0), Claim.of(pace, "k", 1, 0));
        assertThat(AllOf.reserve(claims).isRefused()).isFalse();
        assertThat(AllOf.reserve(claims).decision().source()).isEqualTo(Decision.Source.REDIS);
        for (int call = 0; call < 20; call++) {
            Decision refusal = AllOf.reserve(claims).decision();
            assertThat(refusal.source()).isEqualTo(Decision.Source.DENY_CACHE);
            assertThat(refusal.limit()).isEqualTo("pace");
        }
        // More permits of the other limit were never asked for.
        assertThat(AllOf.reserve(List.of(Claim.of(quota, "k", 1000, 0), Claim.of(pace, "k", 1, 0)))
                        .decision()
                        .limit())
                .isEqualTo("quota");
        ticker.advance(Duration.ofMillis(1_001));
        assertThat(AllOf.reserve(claims).decision().source()).isEqualTo(Decision.Source.REDIS);
    }

    /**
     * Both limits have refused a call. The memory of the longer one ends with a charge, while that of the shorter one still holds:
     * the longer one has not admitted the call thereby.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theLongestTimeIsToldAlsoWhenTheMemoryOfItsLimitHasEndedFirst(boolean blocking) {
        RateLimiter shorter = one.limiter(
                Limit.of("shorter", Algorithm.TOKEN_BUCKET).rate("1/5m").build(), RedisLimitOptions.DEFAULTS);
        RateLimiter longer = one.limiter(
                Limit.of("longer", Algorithm.TOKEN_BUCKET).rate("1/20m").build(), RedisLimitOptions.DEFAULTS);
        List<Claim> claims = List.of(Claim.of(shorter, "k", 1, 0), Claim.of(longer, "k", 1, 0));
        Reservation first = AllOf.reserve(claims);
        assertThat(AllOf.reserve(claims).decision().retryAfter()).isEqualTo(Duration.ofMinutes(20));
        AllOf.member(first, 1).settle(2);
        Reservation refused = blocking
                ? AllOf.reserve(claims)
                : AllOf.reserveAsync(claims).toCompletableFuture().join();
        assertThat(AllOf.refusals(refused)).doesNotContainNull();
        assertThat(refused.decision().limit()).isEqualTo("longer");
        assertThat(refused.decision().retryAfter()).isEqualTo(Duration.ofMinutes(40));
        // What is remembered of both is told again.
        assertThat(AllOf.reserve(claims).decision().source()).isEqualTo(Decision.Source.DENY_CACHE);
        assertThat(AllOf.reserve(claims).decision().retryAfter()).isEqualTo(Duration.ofMinutes(40));
    }

    /** More scripts than a few looks and the backend's own; fewer than one for each call of a flood. */
    private static final long MORE = 500;

    /** Scripts that Redis has run. */
    private static long scripts() {
        return REDIS.server()
                .ask(redis -> redis.info("commandstats"))
                .lines()
                .filter(line -> line.startsWith("cmdstat_eval"))
                .mapToLong(line -> Long.parseLong(line.replaceFirst("[^:]*:calls=(\\d+).*", "$1")))
                .sum();
    }

    private Claim inMemory(String name, String rate) {
        return Claim.of(
                new InMemoryRateLimiter(
                        Limit.of(name, Algorithm.TOKEN_BUCKET)
                                .rate(rate)
                                .burst(1)
                                .build(),
                        ticker,
                        100),
                "k",
                1,
                0);
    }

    private Claim inRedis(Limit.Builder limit) {
        return Claim.of(one.limiter(limit.build(), RedisLimitOptions.DEFAULTS), "k", 1, 0);
    }

    /** A caller whom a limit in memory refuses costs each limit on Redis one script a second. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aFloodThatMemoryRefusesDoesNotReachRedis(boolean blocking) {
        Claim memory = inMemory("memory", "1/h");
        Claim open = inRedis(Limit.of("open", Algorithm.FIXED_WINDOW).rate("1000/h"));
        Claim spent = inRedis(Limit.of("spent", Algorithm.TOKEN_BUCKET).rate("1/d"));
        Claim flights = inRedis(Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(1));
        memory.reserve();
        spent.reserve();
        flights.reserve();
        List<Claim> claims = new ArrayList<>(List.of(open, memory, flights, spent));
        for (int second = 0; second < 2; second++) {
            long before = scripts();
            for (int call = 0; call < 1_000; call++) {
                Reservation refused = blocking
                        ? AllOf.reserve(claims)
                        : AllOf.reserveAsync(claims).toCompletableFuture().join();
                assertThat(refused.decision().limit()).isEqualTo("spent");
                assertThat(AllOf.refusals(refused))
                        .extracting(refusal -> refusal == null ? "" : refusal.limit())
                        .containsExactly("", "memory", "flights", "spent");
                ticker.advance(Duration.ofMillis(1));
            }
            assertThat(scripts() - before).isLessThan(MORE);
        }
    }

    /** Nobody of a crowd knows the answer when it comes. */
    @Test
    void aCrowdThatMemoryRefusesAsksTogether() {
        Claim memory = inMemory("memory", "1/h");
        Claim open = inRedis(Limit.of("open", Algorithm.FIXED_WINDOW).rate("1000/h"));
        memory.reserve();
        long before = scripts();
        List<CompletableFuture<Reservation>> crowd = new ArrayList<>();
        for (int call = 0; call < 1_000; call++) {
            crowd.add(AllOf.reserveAsync(List.of(memory, open)).toCompletableFuture());
        }
        crowd.forEach(call -> assertThat(call.join().decision().limit()).isEqualTo("memory"));
        assertThat(scripts() - before).isLessThan(MORE);
    }

    /** Callers choose how many permits they ask for. */
    @Test
    void aFloodOfDifferentWeightsThatMemoryRefusesDoesNotReachRedis() {
        Claim memory = inMemory("memory", "1/h");
        RateLimiter quota = one.limiter(
                Limit.of("quota", Algorithm.FIXED_WINDOW).rate("1000/h").build(), RedisLimitOptions.DEFAULTS);
        memory.reserve();
        quota.reserve("k", 500, 0);
        long before = scripts();
        for (int call = 0; call < 1_000; call++) {
            int permits = 1 + call % 500;
            assertThat(AllOf.reserve(List.of(memory, Claim.of(quota, "k", 501 - permits, 0)))
                            .decision()
                            .limit())
                    .isEqualTo("memory");
        }
        assertThat(scripts() - before).isLessThan(MORE);
    }

    @Test
    void whatIsKnownOfARefusedCallNeverAdmitsOne() {
        Claim memory = inMemory("memory", "1/s");
        Limit.Builder quota = Limit.of("quota", Algorithm.FIXED_WINDOW).rate("1/h");
        Claim here = inRedis(quota);
        memory.reserve();
        assertThat(AllOf.reserve(List.of(memory, here)).decision().limit()).isEqualTo("memory");
        REDIS.backend(ticker).limiter(quota.build(), RedisLimitOptions.DEFAULTS).tryAcquire("k", 1);
        ticker.advance(Duration.ofSeconds(1));
        Reservation late = AllOf.reserve(List.of(memory, here));
        assertThat(late.isRefused()).isTrue();
        assertThat(late.decision().limit()).isEqualTo("quota");
        assertThat(memory.limiter().peek("k", 1, 0).remaining()).isOne();
    }

    /** A refusal that is known says the same instant, and what this node takes or gives back is seen at once. */
    @Test
    void whatIsKnownOfARefusedCallIsTrueOnThisNode() {
        Claim memory = inMemory("memory", "1/m");
        Claim quota = inRedis(Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("1/h"));
        List<Claim> claims = List.of(memory, quota);
        memory.reserve();
        assertThat(AllOf.refusals(AllOf.reserve(claims))[1]).isNull();
        Reservation taken = quota.reserve();
        ticker.advance(Duration.ofMillis(100));
        Duration first = AllOf.reserve(claims).decision().retryAfter();
        ticker.advance(Duration.ofMillis(300));
        Decision second = AllOf.reserve(claims).decision();
        assertThat(second.source()).isEqualTo(Decision.Source.DENY_CACHE);
        assertThat(second.retryAfter()).isEqualTo(first.minusMillis(300));
        taken.cancel();
        assertThat(AllOf.reserve(claims).decision().limit()).isEqualTo("memory");
    }
}
