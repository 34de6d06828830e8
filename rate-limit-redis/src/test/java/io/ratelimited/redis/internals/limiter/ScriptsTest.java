package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.cluster.SlotHash;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisServers;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/** Keys, expiry, clocks and numbers in Redis. */
@Tag("once")
@Tag("slow")
class ScriptsTest {

    /** What tests that set the time add to each expiry; see {@code time.lua}. */
    private static final long PADDING = 3_600_000;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static final Nodes ONE = new Nodes("node", 1);

    private final ManualTicker ticker = RedisServers.ticker();

    private static Limit limit(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("scripts", algorithm);
        return switch (algorithm) {
            case WARM_UP -> limit.rate("10/s").warmup(Duration.ofSeconds(1)).build();
            case CONCURRENCY -> limit.maxConcurrent(5).build();
            default -> limit.rate("10/s").build();
        };
    }

    /** In Redis, of the caller {@code k}. */
    private String key(Limit limit) {
        return new ScriptParameters(limit, ticker, ONE)
                .fullName(new KeyNames("rl").ofLimit("scripts", "").of("k"));
    }

    /** The name of a key tells the algorithm by it. */
    @Test
    void everyAlgorithmHasALetterOfItsOwn() {
        assertThat(Algorithm.all())
                .filteredOn(algorithm -> !algorithm.findsItsLimit())
                .extracting(algorithm -> key(limit(algorithm)).replaceFirst(".*~(.).*", "$1"))
                .doesNotHaveDuplicates();
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void everyAlgorithmHasAFamilyInTheScript(Algorithm algorithm) {
        char letter = new ScriptParameters(limit(algorithm), ticker, ONE).letter();
        String text = Script.DECIDE.text();
        assertThat(text.substring(text.indexOf("local makers = {"))).contains("\n" + letter + " = ");
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void everyKeyExpiresWhenItEqualsOneNeverSeen(Algorithm algorithm) {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit(algorithm), RedisLimitOptions.DEFAULTS);
        limiter.reserve("k", 3, 0);
        limiter.reserve("k", 2, Duration.ofSeconds(2).toNanos()).cancel();
        limiter.update(limit(algorithm).toBuilder().maxWaiting(7).build());
        limiter.reserve("k", 1, 0);
        Decision decision = limiter.peek("k", 1, 0);
        List<String> keys = REDIS.server().ask(commands -> commands.keys("*"));
        String stored = key(limit(algorithm));
        assertThat(keys).contains(stored);
        for (String key : keys) {
            long left = REDIS.server().ask(commands -> commands.pttl(key));
            assertThat(left).as(key).isPositive();
        }
        long pttl = REDIS.server().ask(commands -> commands.pttl(stored));
        long left = pttl - PADDING;
        if (algorithm == Algorithm.CONCURRENCY) {
            assertThat(left).isBetween(20_000L, 30_000L);
        } else {
            // A warm-up goes on cooling after the next call may go.
            long cooling = limit(algorithm).warmup().toMillis();
            assertThat(left)
                    .isBetween(
                            decision.reset().toMillis() - 10_000,
                            decision.reset().toMillis() + cooling + 1);
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void onTheServersOwnClockStateVanishesByItself(Algorithm algorithm) {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(20)));
        Limit.Builder limit = limit(algorithm).toBuilder().rate("10/10ms");
        if (algorithm == Algorithm.WARM_UP) {
            limit.warmup(Duration.ofMillis(10));
        }
        RateLimiter limiter = backend.limiter(limit.build(), RedisLimitOptions.DEFAULTS);
        String stored = key(limit.build());
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.REDIS);
        RedisProcess.until(
                () -> REDIS.server().ask(commands -> commands.exists(stored)) == 0, "expired", Duration.ofSeconds(20));
        assertThat(limiter.tryAcquire("k", 1)).isTrue();
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aServerClockThatStepsBackFreezesNothing(Algorithm algorithm) {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit(algorithm), RedisLimitOptions.DEFAULTS);
        int admitted = 0;
        while (limiter.tryAcquire("k", 1)) {
            admitted++;
        }
        assertThat(admitted).isPositive();
        // A promoted replica whose clock is an hour behind.
        ticker.setWallClock(java.time.Instant.parse("2025-12-31T23:00:00Z"));
        ticker.advance(Duration.ofMillis(1100));
        Decision decision = limiter.reserve("k", 1, 0).decision();
        assertThat(decision.source()).isEqualTo(Source.REDIS);
        if (!decision.admitted()) {
            assertThat(decision.retryAfter()).isLessThanOrEqualTo(Duration.ofMillis(2100));
            ticker.advance(decision.retryAfter());
            assertThat(limiter.tryAcquire("k", 1)).isTrue();
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void whatIsCancelledAfterAResetGivesNothingBack(Algorithm algorithm) {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit(algorithm), RedisLimitOptions.DEFAULTS);
        List<Reservation> before = exhaust(limiter);
        limiter.reset("k");
        ticker.advanceNanos(1000);
        assertThat(exhaust(limiter)).isNotEmpty();
        before.forEach(Reservation::cancel);
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
    }

    private static List<Reservation> exhaust(RateLimiter limiter) {
        List<Reservation> admitted = new ArrayList<>();
        for (Reservation next = limiter.reserve("k", 1, 0); !next.isRefused(); next = limiter.reserve("k", 1, 0)) {
            admitted.add(next);
        }
        return admitted;
    }

    /** Calls that wait, cancelled in any order: those that stay and those that come still are within the limit. */
    @Test
    void cancelsInAnyOrderNeverBuyABurst() {
        Limit limit = Limit.of("order", Algorithm.TOKEN_BUCKET)
                .rate("1000/s")
                .burst(10)
                .build();
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit, RedisLimitOptions.DEFAULTS);
        Random random = new Random(7);
        record Grant(Reservation reservation, long permits, long due) {}
        List<Grant> grants = new ArrayList<>();
        for (int step = 0; step < 2000; step++) {
            long now = ticker.nanos();
            List<Grant> open = grants.stream().filter(grant -> grant.due > now).toList();
            if (!open.isEmpty() && random.nextInt(3) == 0) {
                Grant cancelled = open.get(random.nextInt(open.size()));
                cancelled.reservation.cancel();
                grants.remove(cancelled);
            } else if (random.nextInt(3) == 0) {
                ticker.advanceNanos(1000 * (long) random.nextInt(4000));
            } else {
                long permits = 1L + random.nextInt(10);
                Reservation next =
                        limiter.reserve("k", permits, Duration.ofMillis(30).toNanos());
                if (!next.isRefused()) {
                    grants.add(new Grant(next, permits, now + next.waitNanos()));
                }
            }
        }
        grants.sort(Comparator.comparingLong(Grant::due));
        for (int from = 0; from < grants.size(); from++) {
            long permits = 0;
            for (int to = from; to < grants.size(); to++) {
                permits += grants.get(to).permits;
                long nanos = grants.get(to).due - grants.get(from).due;
                assertThat(permits).isLessThanOrEqualTo(10 + nanos / 1_000_000);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "SMOOTH_BURSTY", "LEAKY_BUCKET", "FIXED_WINDOW"})
    void aKeyTakesFewBytes(Algorithm algorithm) {
        RedisBackend backend = REDIS.backend(ticker);
        Limit.Builder limit = Limit.of("api", algorithm).rate("100/s");
        if (algorithm != Algorithm.FIXED_WINDOW) {
            limit.burst(200);
        }
        RateLimiter limiter = backend.limiter(limit.build(), RedisLimitOptions.DEFAULTS);
        limiter.tryAcquire("user", 1);
        assertThat(bytes()).isLessThanOrEqualTo(algorithm == Algorithm.TOKEN_BUCKET ? 120 : 136);
        // The time of the last call, while the bucket is not full.
        limiter.tryAcquire("user", 1);
        assertThat(bytes()).isLessThanOrEqualTo(136);
    }

    private static long bytes() {
        return REDIS.server().<Long>ask(commands -> commands.memoryUsage(REDIS.keyOf("api", "user")));
    }

    /** However many calls give back before the bucket is full again; and then it takes what it took at first. */
    @Test
    void aKeyThatHasGivenBackIsBounded() {
        RateLimiter limiter = REDIS.backend(ticker)
                .limiter(
                        Limit.of("bounded", Algorithm.TOKEN_BUCKET)
                                .rate("10000/h")
                                .build(),
                        RedisLimitOptions.DEFAULTS);
        limiter.tryAcquire("user", 10);
        long first = length("bounded", "user");
        List<Reservation> open = new ArrayList<>();
        for (int call = 0; call < 600; call++) {
            open.add(limiter.reserve("user", 10, 0));
        }
        for (int call = 0; call < 599; call++) {
            open.get(call).settle(9);
            if (call % 100 == 0) {
                limiter.peek("user", 1, 0);
            }
        }
        assertThat(limiter.peek("user", 1, 0).remaining()).isEqualTo(10_000 - 10 - 599 * 9 - 10);
        assertThat(length("bounded", "user")).isBetween(4_096L, 4_300L);
        ticker.advance(Duration.ofHours(1));
        limiter.tryAcquire("user", 10);
        assertThat(length("bounded", "user")).isEqualTo(first);
    }

    private static long length(String limit, String key) {
        return REDIS.server().<Long>ask(commands -> commands.strlen(REDIS.keyOf(limit, key)));
    }

    @Test
    void ratesThatDivideNoMicrosecondDoNotDrift() {
        Limit limit =
                Limit.of("third", Algorithm.TOKEN_BUCKET).rate("3/s").burst(2).build();
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit, RedisLimitOptions.DEFAULTS);
        long start = ticker.nanos();
        for (int admitted = 0; admitted < 302; ) {
            Decision decision = limiter.reserve("k", 1, 0).decision();
            if (decision.admitted()) {
                admitted++;
            } else {
                ticker.advance(decision.retryAfter());
            }
        }
        assertThat(ticker.nanos() - start).isEqualTo(100_000_000_000L);
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void extremeLimitsAreCountedExactly(Algorithm algorithm) {
        RedisBackend backend = REDIS.backend(ticker);
        Limit.Builder fast = limit(algorithm).toBuilder().rate("100000000/s");
        RateLimiter fastLimiter = backend.limiter(fast.build(), RedisLimitOptions.DEFAULTS);
        assertThat(fastLimiter.tryAcquire("fast", 100)).isTrue();
        Limit.Builder slow = limit(algorithm).toBuilder().rate("1/3650d");
        RateLimiter slowLimiter = backend.limiter(slow.build(), RedisLimitOptions.DEFAULTS);
        assertThat(slowLimiter.tryAcquire("slow", 1)).isTrue();
        Decision refused = slowLimiter.reserve("slow", 1, 0).decision();
        assertThat(refused.admitted()).isFalse();
        assertThat(refused.retryAfter()).isBetween(Duration.ofDays(300), Duration.ofDays(16_000));
    }

    /** Permits of one instant are one entry, in which each call has a number. */
    @Test
    void aRefundThatArrivesTwiceTakesNoPermitOfAnotherCallOfThatInstant() {
        LimiterContext context = RedisServers.context(REDIS.backend(ticker));
        Limit limit = Limit.of("twice", Algorithm.SLIDING_LOG).rate("100/h").build();
        RedisRateLimiter limiter = new RedisRateLimiter(context, limit, "", failure -> null, 0, 1_000);
        List<PermitRequest> calls = List.of(new PermitRequest(5, 0), new PermitRequest(3, 0), new PermitRequest(7, 0));
        ScriptReply[] replies =
                limiter.ask("k", "take", limiter.parameters(), calls).join();
        for (int time = 0; time < 3; time++) {
            limiter.giveBack("k", 2, replies[1], 0);
            assertThat(left(limiter)).isEqualTo(100 - 13);
        }
        limiter.giveBack("k", 5, replies[0], 0);
        limiter.giveBack("k", 7, replies[2], 0);
        limiter.giveBack("k", 2, replies[1], 0);
        assertThat(left(limiter)).isEqualTo(99);
    }

    private static long left(RedisRateLimiter limiter) {
        List<PermitRequest> one = List.of(new PermitRequest(1, 0));
        return limiter.ask("k", "peek", limiter.parameters(), one).join()[0].remaining();
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void aChargeReportsWhetherACallWouldHaveBeenAdmitted(Algorithm algorithm) {
        LimiterContext context = RedisServers.context(REDIS.backend(ticker));
        RedisRateLimiter limiter = new RedisRateLimiter(context, limit(algorithm), "", failure -> null, 0, 1_000);
        assertThat(charge(context, limiter, 1, "")).isEmpty();
        assertThat(charge(context, limiter, 4, "+")).containsExactly(0L);
        assertThat(charge(context, limiter, 6, "?")).asString().startsWith("[-");
        assertThat(left(limiter)).isEqualTo(5);
        assertThat(charge(context, limiter, 2, "?")).containsExactly(0L);
        assertThat(charge(context, limiter, 1, "+", 3, "?")).asString().startsWith("[[0], [-");
        assertThat(left(limiter)).isEqualTo(2);
        assertThat(charge(context, limiter, 3, "+")).asString().startsWith("[-");
        assertThat(charge(context, limiter, 1, "?")).asString().startsWith("[-");
        assertThat(charge(context, limiter, 1, "")).isEmpty();
        ticker.advanceNanos(limit(algorithm).rate().period().toNanos() * 3 / 10);
        assertThat(left(limiter)).isEqualTo(1);
    }

    /** @param charges permits and the tail of each group */
    private static List<Object> charge(LimiterContext context, RedisRateLimiter limiter, Object... charges) {
        ScriptParameters parameters = limiter.parameters();
        ScriptArguments args = parameters.begin("charge", context.connection().time());
        for (int i = 0; i < charges.length; i += 2) {
            parameters.appendDecided(args, ((Number) charges[i]).longValue(), 0, charges[i + 1].toString());
        }
        return context.connection()
                .eval(Script.DECIDE, new String[] {parameters.fullName("k")}, args)
                .join();
    }

    /** As when a limit becomes smaller, or closed, while a call is on its way. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aCallOfMorePermitsThanAWindowHoldsIsRefusedForGoodByTheScript(Algorithm algorithm) {
        LimiterContext context = RedisServers.context(REDIS.backend(ticker));
        for (String rate : List.of("3/s", "0/s")) {
            Limit limit = Limit.of("smaller", algorithm).rate(rate).build();
            RedisRateLimiter limiter = new RedisRateLimiter(context, limit, "", failure -> null, 0, 1_000);
            List<PermitRequest> four =
                    List.of(new PermitRequest(4, Duration.ofHours(1).toNanos()));
            for (int call = 0; call < 3; call++) {
                assertThat(limiter.ask("k", "take", limiter.parameters(), four)
                                .join()[0]
                                .outcome())
                        .as("%s of %s", rate, algorithm)
                        .isEqualTo(ScriptReply.NEVER);
            }
        }
    }

    @Test
    void noCallerChoosesTheSlot() {
        KeyNames keys = new KeyNames("rl");
        assertThat(keys.ofLimit("limit", "").of("user")).isEqualTo("rl:{kLnXQBKOMVkVBGCrbVKdhEqEaL4}:limit");
        assertThat(Stream.of("", "%", "user", "}{user", "}:limit")
                        .map(caller -> keys.ofLimit("limit", "").of(caller)))
                .allMatch(name -> name.matches("rl:\\{[\\w-]{27}}:limit"))
                .doesNotHaveDuplicates();
        assertThat(keys.ofLimit("a", "").of("limit"))
                .isNotEqualTo(keys.ofLimit("a:limit", "").of(null));
        assertThat(keys.ofLimit("limit", "gold").of("user")).isEqualTo("rl:{kLnXQBKOMVkVBGCrbVKdhEqEaL4}:limit{gold}");
        assertThat(keys.ofLimit("limit", "gold").of(null)).isEqualTo("rl:{limit}{gold}");
        assertThat(keys.ofLimit("limit{gold}", "").of("user"))
                .isNotEqualTo(keys.ofLimit("limit", "gold").of("user"));
        for (String caller : List.of("user", "")) {
            assertThat(SlotHash.getSlot(keys.ofLimit("one", "").of(caller)))
                    .isEqualTo(SlotHash.getSlot(keys.ofLimit("two", "gold").of(caller)));
        }
    }

    @Test
    void noNameReachesTheKeysOfTheBackend() {
        KeyNames keys = new KeyNames("rl");
        assertThat(keys.ofLimit("~nodes", "").of(null)).isNotEqualTo(keys.internal("nodes"));
        assertThat(keys.ofLimit("~probe", "").of("user")).isEqualTo("rl:{kLnXQBKOMVkVBGCrbVKdhEqEaL4}:%7Eprobe");
    }

    @Test
    void everyTextHasAKeyOfItsOwn() {
        List<String> texts = List.of(
                "a?b",
                "a\ud800b",
                "a\udc00b",
                "a\ud801b",
                "\ud83d\ude00",
                "a\uffffd800\uffffb",
                "a\uffffb",
                "a\uffff\uffffb",
                "a\ud800\uffffb",
                "x".repeat(300) + "?",
                "x".repeat(300) + "\ud800");
        assertThat(texts.stream()
                        .map(text -> new String(
                                new KeyNames("rl")
                                        .ofLimit("limit", "")
                                        .of(CanonicalKey.textOrNull(text))
                                        .getBytes(StandardCharsets.UTF_8),
                                StandardCharsets.UTF_8)))
                .doesNotHaveDuplicates();
    }

    /** What a node leased and has not used goes back with its next call, and counts there already. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW"})
    void whatIsGivenBackOnTheWayIsThereForTheCallsBehind(Algorithm algorithm) {
        RedisRateLimiter limiter = new RedisRateLimiter(
                RedisServers.context(REDIS.backend(ticker)), limit(algorithm), "", failure -> null, 0, 1_000);
        PermitRequest all = new PermitRequest(10, 0);
        ScriptReply taken = limiter.ask("rl:{k}", "take", limiter.parameters(), List.of(all))
                .join()[0];
        List<PermitRequest> calls =
                List.of(PermitRequest.refund(10, taken.mark().toString()), all);
        assertThat(limiter.ask("rl:{k}", "take", limiter.parameters(), calls)
                        .join()[1]
                        .admitted())
                .isTrue();
    }

    /** While nodes are restarted one by one, some count calls in flight and some permits over time. */
    @Test
    void callsInFlightAndPermitsUnderOneNameLeaveEachOtherAlone() {
        RedisBackend backend = REDIS.backend(ticker);
        RateLimiter calls = backend.limiter(limit(Algorithm.CONCURRENCY), RedisLimitOptions.DEFAULTS);
        RateLimiter bucket = backend.limiter(limit(Algorithm.TOKEN_BUCKET), RedisLimitOptions.DEFAULTS);
        Reservation call = calls.reserve("k", 1, 0);
        assertThat(bucket.tryAcquire("k", 10)).isTrue();
        assertThat(calls.peek("k", 1, 0).remaining()).isEqualTo(4);
        assertThat(bucket.peek("k", 1, 0).remaining()).isZero();
        ((InFlightCall) call).renew();
        call.release();
        assertThat(calls.peek("k", 1, 0).remaining()).isEqualTo(5);
        assertThat(bucket.peek("k", 1, 0).remaining()).isZero();
        assertThat(backend.health().errors()).isZero();
    }

    /** What counts in one way has one name, whatever the number of permits, and nothing else has it. */
    @Test
    void theNameOfAKeySaysHowItCounts() {
        List<String> names = new ArrayList<>();
        for (Limit.Builder limit : List.of(
                Limit.of("names", Algorithm.TOKEN_BUCKET).rate("1/s"),
                Limit.of("names", Algorithm.GCRA).rate("1/s"),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/d"),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/h"),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/d").zone(ZoneId.of("Asia/Kathmandu")),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/month"),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/31d"),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/month").startsOn("15"),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/month").zone(ZoneId.of("Asia/Kathmandu")),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/year"),
                Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/week"),
                Limit.of("names", Algorithm.SLIDING_WINDOW).rate("1/m"),
                Limit.of("names", Algorithm.SLIDING_WINDOW).rate("1/m").slots(60),
                Limit.of("names", Algorithm.SLIDING_WINDOW).rate("1/10m").slots(100),
                Limit.of("names", Algorithm.SLIDING_LOG).rate("1/m"))) {
            String name = key(limit.build());
            names.add(name);
            Rate rate = limit.build().rate();
            assertThat(key(limit.rate(new Rate(77, rate.period(), rate.calendar()))
                            .build()))
                    .isEqualTo(name);
        }
        assertThat(names).doesNotHaveDuplicates();
        Limit utc = Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/d").build();
        assertThat(key(utc)).endsWith(":scripts~f864e8");
        Limit month = Limit.of("names", Algorithm.FIXED_WINDOW).rate("1/month").build();
        assertThat(key(month)).endsWith(":scripts~fmonth@1");
        assertThat(key(month.toBuilder().startsOn("01").build())).isEqualTo(key(month));
        assertThat(key(utc.toBuilder().zone(ZoneId.of("UTC")).build())).isEqualTo(key(utc));
        assertThat(key(Limit.of("names", Algorithm.TOKEN_BUCKET)
                        .rate("5/d")
                        .burst(9)
                        .build()))
                .isEqualTo(names.get(0))
                .endsWith(":scripts~t");
    }

    @Test
    void aRefusalWhileOthersWaitForTheNextWindowIsNotTheAnswerToALargerCall() {
        RateLimiter limiter = REDIS.backend(ticker)
                .limiter(Limit.of("waited", Algorithm.FIXED_WINDOW).rate("9/s").build(), RedisLimitOptions.DEFAULTS);
        limiter.tryAcquire("k", 9);
        limiter.reserve("k", 6, Duration.ofSeconds(1).toNanos());
        assertThat(limiter.reserve("k", 1, 0).decision().retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(limiter.reserve("k", 4, 0).decision().retryAfter()).isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    void aRefusedKeyCostsRedisNothingUntilItsRetryAfter() {
        RedisBackend backend = REDIS.backend(ticker);
        RateLimiter limiter = backend.limiter(
                Limit.of("deny", Algorithm.TOKEN_BUCKET).rate("10/s").burst(1).build(), RedisLimitOptions.DEFAULTS);
        limiter.tryAcquire("k", 1);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.REDIS);
        for (int i = 0; i < 100; i++) {
            Decision decision = limiter.reserve("k", 1, 0).decision();
            assertThat(decision.source()).isEqualTo(Source.DENY_CACHE);
            assertThat(decision.retryAfter()).isEqualTo(Duration.ofMillis(100).minusNanos(ticker.nanos()));
        }
        ticker.advance(Duration.ofMillis(100));
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
        limiter.reserve("k", 1, 0);
        limiter.reset("k");
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
    }
}
