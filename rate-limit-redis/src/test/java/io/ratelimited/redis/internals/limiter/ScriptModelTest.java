package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisServers;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.script.PermitCost;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * On random schedules every script decides what the Java step decides, to the microsecond. Without keys: a cell of Java
 * that nothing evicts.
 */
@Tag("once")
@Tag("slow")
class ScriptModelTest {

    private static final Nodes ONE = new Nodes("node", 1);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    @RegisterExtension
    static final RedisServers EMBEDDED = RedisServers.embedded();

    /** Rates of which a permit takes a whole number of nanoseconds: what Java counts in. */
    static Stream<Limit> limits() {
        return Stream.of(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/s").burst(7).build(),
                Limit.of("b", Algorithm.TOKEN_BUCKET).rate("400/ms").burst(1000).build(),
                Limit.of("c", Algorithm.TOKEN_BUCKET).rate("1/d").burst(3).build(),
                Limit.of("d", Algorithm.GCRA).rate("5/m").burst(5).build(),
                Limit.of("e", Algorithm.SMOOTH_BURSTY).rate("20/s").burst(5).build(),
                Limit.of("f", Algorithm.SMOOTH_BURSTY).rate("10/s").burst(0).build(),
                Limit.of("g", Algorithm.LEAKY_BUCKET).rate("100/s").burst(8).build(),
                Limit.of("h", Algorithm.LEAKY_BUCKET).rate("400/ms").burst(3).build(),
                Limit.of("i", Algorithm.WARM_UP)
                        .rate("7/s")
                        .warmup(Duration.ofSeconds(3))
                        .build(),
                Limit.of("j", Algorithm.WARM_UP)
                        .rate("100/s")
                        .warmup(Duration.ofMillis(777))
                        .coldFactor(5)
                        .build(),
                Limit.of("k", Algorithm.WARM_UP)
                        .rate("10/s")
                        .warmup(Duration.ZERO)
                        .build(),
                Limit.of("l", Algorithm.FIXED_WINDOW).rate("9/s").build(),
                Limit.of("m", Algorithm.FIXED_WINDOW)
                        .rate("9/d")
                        .zone(ZoneId.of("America/Santiago"))
                        .build(),
                Limit.of("n", Algorithm.FIXED_WINDOW)
                        .rate("9/7d")
                        .zone(ZoneId.of("Australia/Lord_Howe"))
                        .build(),
                Limit.of("t", Algorithm.FIXED_WINDOW)
                        .rate("9/h")
                        .zone(ZoneId.of("Australia/Lord_Howe"))
                        .build(),
                Limit.of("u", Algorithm.FIXED_WINDOW)
                        .rate("9/12h")
                        .zone(ZoneId.of("Europe/Berlin"))
                        .build(),
                Limit.of("v", Algorithm.FIXED_WINDOW)
                        .rate("9/h")
                        .zone(ZoneId.of("Asia/Kathmandu"))
                        .build(),
                Limit.of("z", Algorithm.FIXED_WINDOW)
                        .rate("9/month")
                        .startsOn("31")
                        .zone(ZoneId.of("America/Santiago"))
                        .build(),
                Limit.of("za", Algorithm.FIXED_WINDOW)
                        .rate("9/week")
                        .startsOn("SUNDAY")
                        .zone(ZoneId.of("Africa/Cairo"))
                        .build(),
                Limit.of("zb", Algorithm.FIXED_WINDOW).rate("9/year").build(),
                Limit.of("o", Algorithm.SLIDING_WINDOW).rate("9/s").build(),
                Limit.of("p", Algorithm.SLIDING_WINDOW).rate("30/m").slots(60).build(),
                Limit.of("q", Algorithm.SLIDING_WINDOW).rate("3/s").slots(1).build(),
                Limit.of("r", Algorithm.SLIDING_LOG).rate("9/s").build(),
                Limit.of("s", Algorithm.SLIDING_LOG).rate("300/m").build(),
                Limit.of("w", Algorithm.SMOOTH_BURSTY).rate("5/m").build(),
                Limit.of("x", Algorithm.SMOOTH_BURSTY).rate("5/2s").build());
    }

    @ParameterizedTest
    @MethodSource("limits")
    void decidesAsInMemory(Limit limit) {
        new Run(REDIS, limit, 1).go(100);
    }

    /** As many as the state of a key tells apart that end in any order, while the bucket refills. */
    @Test
    void manyCallsInFlightGiveBackAsInMemory() {
        Limit limit =
                Limit.of("y", Algorithm.TOKEN_BUCKET).rate("1/s").burst(2_570).build();
        Run run = new Run(REDIS, limit, 1);
        List<Run.Taken> open = new ArrayList<>();
        for (int call = 0; call < 257; call++) {
            open.add(run.take(10));
            run.ticker.advanceNanos(50_000_000);
        }
        open.remove(256);
        Collections.shuffle(open, run.random);
        for (Run.Taken call : open) {
            long used = run.random.nextInt(5);
            call.expected.settle(used);
            call.actual.settle(used);
            run.ticker.advanceNanos(1_000_000);
            Run.same("used " + used, run.model.peek(null, 1, 0), run.redis.peek(null, 1, 0));
        }
        run.backend.close();
    }

    /** So many calls that the script finds what leaves by blocks of them. */
    @Test
    void aLongLogDecidesAsInMemory() {
        longLog(7, 9);
    }

    @Test
    @Tag("proof")
    void manyLongLogsDecideAsInMemory() {
        for (long seed = 100; seed < 106; seed++) {
            longLog(seed, 25);
        }
    }

    private static void longLog(long seed, int rounds) {
        Limit limit = Limit.of("long", Algorithm.SLIDING_LOG).rate("4000/s").build();
        Run run = new Run(REDIS, limit, seed);
        for (int round = 0; round < rounds; round++) {
            int most = 1 + run.random.nextInt(700);
            for (int call = 0; call < most; call++) {
                run.ticker.advanceNanos(1_000L * run.random.nextInt(1 + run.random.nextInt(1_500)));
                run.reserve("long log " + seed, 1_000_000);
                while (run.taken.size() > 300 || (!run.taken.isEmpty() && run.random.nextInt(3) == 0)) {
                    Run.Taken pair = run.taken.remove(run.random.nextInt(run.taken.size()));
                    long cost = run.random.nextInt(5);
                    pair.expected.settle(cost);
                    pair.actual.settle(cost);
                }
            }
            for (int i = 0; i < 6; i++) {
                long permits = 1L + run.random.nextInt(4_000);
                Run.same("long log " + seed, run.model.peek(null, permits, 0), run.redis.peek(null, permits, 0));
            }
            run.ticker.advanceNanos(1_000L * run.random.nextInt(run.random.nextBoolean() ? 1_100_000 : 500_000));
        }
        run.backend.close();
    }

    @ParameterizedTest
    @MethodSource("limits")
    @Tag("proof")
    void decidesAsInMemoryOnALongSchedule(Limit limit) {
        new Run(REDIS, limit, 2).go(250);
    }

    /** On the other version of the server, if there is one. Its short form is {@link EmbeddedRedisContractTest}. */
    @ParameterizedTest
    @MethodSource("limits")
    @Tag("proof")
    void decidesAsInMemoryOnTheServerOfTheJar(Limit limit) {
        assumeFalse(RedisProcess.binary().equals(RedisProcess.embedded()), "the other tests use this server");
        new Run(EMBEDDED, limit, 4).go(250);
    }

    /** Also rates of which a permit takes no whole number of microseconds, or very many. */
    static Stream<Limit> awkwardLimits() {
        return Stream.concat(
                limits(),
                Stream.of(
                        Limit.of("A", Algorithm.TOKEN_BUCKET)
                                .rate("3/s")
                                .burst(8)
                                .build(),
                        Limit.of("B", Algorithm.GCRA).rate("7/ms").burst(1006).build(),
                        Limit.of("C", Algorithm.GCRA).rate("999983/d").build(),
                        Limit.of("D", Algorithm.TOKEN_BUCKET)
                                .rate("1/3650d")
                                .burst(3)
                                .build(),
                        Limit.of("E", Algorithm.TOKEN_BUCKET)
                                .rate("1000000000/s")
                                .build(),
                        Limit.of("F", Algorithm.TOKEN_BUCKET)
                                .rate("999999999/s")
                                .burst(900_000_000_000_000L)
                                .build()));
    }

    /**
     * Callers of one key who are decided together are told what they would have been told alone, and what they give back
     * does the same: equal callers, of whom the script is told once, and others; while the clock steps back, too.
     */
    @ParameterizedTest
    @MethodSource("awkwardLimits")
    void callsDecidedTogetherAreDecidedAsOneAfterAnother(Limit limit) {
        decidedTogether(limit, 8);
    }

    @ParameterizedTest
    @MethodSource("awkwardLimits")
    @Tag("proof")
    void callsDecidedTogetherAreDecidedAsOneAfterAnotherAtLength(Limit limit) {
        decidedTogether(limit, 80);
    }

    private static void decidedTogether(Limit limit, int steps) {
        Pair pair = new Pair(limit);
        Random random = new Random(limit.name().charAt(0));
        long period = Math.min(limit.rate().period().toNanos() / 1000, 10 * 86_400_000_000L);
        for (int step = 0; step < steps; step++) {
            pair.ticker.advanceNanos(1000 * (long) (random.nextDouble() * period / 2));
            if (random.nextInt(15) == 0) {
                long back = 1000 * (long) (random.nextDouble() * period / 2);
                pair.ticker.setWallClock(Instant.EPOCH.plusNanos(pair.ticker.epochNanos() - back));
            }
            boolean equal = random.nextBoolean();
            int count = random.nextInt(10) == 0 ? 256 : 1 + random.nextInt(12);
            List<PermitRequest> calls = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                calls.add(equal && i > 0 ? calls.get(0) : pair.call(random, period));
            }
            List<ScriptReply> verdicts = pair.ask(limit.name() + " step " + step, calls);
            int given = random.nextInt(count);
            if (verdicts.get(given).admitted() && random.nextInt(3) == 0) {
                pair.giveBack(1 + random.nextLong(calls.get(given).permits()), verdicts.get(given));
            }
            if (random.nextInt(10) == 0) {
                pair.charge(random.nextInt(10) == 0 ? Long.MAX_VALUE >> random.nextInt(50) : 1L + random.nextInt(9));
            }
        }
    }

    /** What other parameters have left is converted once, before the first; a window is counted by another number. */
    @ParameterizedTest
    @MethodSource("awkwardLimits")
    void callsDecidedTogetherFindWhatAnotherLimitHasLeft(Limit limit) {
        Random random = new Random(limit.name().charAt(0));
        long period = limit.rate().period().toNanos() / 1000;
        Rate rate = limit.rate();
        Limit faster = limit.toBuilder()
                .rate(new Rate(3 * rate.permits(), rate.period(), rate.calendar()))
                .build();
        for (Limit before : List.of(limit, faster)) {
            Pair pair = new Pair(before);
            pair.ask("before", List.of(pair.call(random, period), pair.call(random, period)));
            pair.limiter.update(before.equals(limit) ? faster : limit);
            PermitRequest call = pair.call(random, period);
            pair.ask("after " + before, Collections.nCopies(5, call));
            pair.ask("later after " + before, Collections.nCopies(5, call));
            REDIS.server().ask(commands -> commands.flushall());
        }
    }

    /** What is left of a bucket is rounded, and never up: turns of two limits on one key, while no time passes, add nothing. */
    @Test
    void turnsOfTwoLimitsAddNoPermits() {
        Random random = new Random(31);
        Limit most = bucket("999999999/s", 900_000_000_000_000L);
        Pair pair = new Pair(most);
        turns(pair, most, bucket("999999998/s", 900_000_000_000_000L), 900_000_000_000L, random);
        turns(pair, most, bucket("1/3650d", 3), 900_000_000_000L, random);
        for (int i = 0; i < 40; i++) {
            Limit one = bucket(random);
            turns(pair, one, bucket(random), random.nextLong(one.burst()), random);
        }
    }

    private static void turns(Pair pair, Limit one, Limit other, long taken, Random random) {
        ScriptParameters[] parameters = {
            new ScriptParameters(one, pair.ticker, ONE), new ScriptParameters(other, pair.ticker, ONE)
        };
        String key = "rl:{" + one + other + "}";
        pair.limiter
                .ask(key, "take", parameters[0], List.of(new PermitRequest(taken + 1, 0)))
                .join();
        pair.ticker.advanceNanos(1_000 * random.nextLong(10_000_000));
        List<PermitRequest> call = List.of(new PermitRequest(1, 0));
        long[] untilFull = new long[2];
        for (int turn = 0; turn < 12; turn++) {
            ScriptReply reply =
                    pair.limiter.ask(key, "ask", parameters[turn % 2], call).join()[0];
            long reset = reply.decision().reset().toNanos();
            assertThat(reset).as("turn %d of %s and %s", turn, one, other).isGreaterThanOrEqualTo(untilFull[turn % 2]);
            untilFull[turn % 2] = reset;
        }
    }

    private static Limit bucket(Random random) {
        String period = List.of("ms", "s", "m", "h", "d").get(random.nextInt(5));
        return bucket(1 + random.nextInt(1_000) + "/" + period, 1L + random.nextInt(1 + random.nextInt(1_000)));
    }

    private static Limit bucket(String rate, long burst) {
        return Limit.of("turns", Algorithm.TOKEN_BUCKET).rate(rate).burst(burst).build();
    }

    static Stream<Limit> buckets() {
        return awkwardLimits().filter(limit -> new ScriptParameters(limit, RedisServers.ticker(), ONE).isMergeable());
    }

    /** Keys that one command asks about are decided as each is alone, and stored alike; also while the clock steps back. */
    @ParameterizedTest
    @MethodSource("buckets")
    void keysAskedAboutTogetherAreDecidedAsEachAlone(Limit limit) {
        askedAboutTogether(limit, 25);
    }

    @ParameterizedTest
    @MethodSource("buckets")
    @Tag("proof")
    void keysAskedAboutTogetherAreDecidedAsEachAloneAtLength(Limit limit) {
        askedAboutTogether(limit, 250);
    }

    private static void askedAboutTogether(Limit limit, int steps) {
        ManualTicker ticker = RedisServers.ticker();
        GuardedConnection connection =
                RedisServers.context(REDIS.backend(ticker)).connection();
        ScriptParameters parameters = new ScriptParameters(limit, ticker, ONE);
        KeyPairs keys = new KeyPairs();
        Random random = new Random(limit.name().charAt(0));
        long period = Math.min(limit.rate().period().toNanos() / 1000, 10 * 86_400_000_000L);
        for (int step = 0; step < steps; step++) {
            ticker.advanceNanos(1000 * (long) (random.nextDouble() * period / 4));
            if (random.nextInt(15) == 0) {
                long back = 1000 * (long) (random.nextDouble() * period / 2);
                ticker.setWallClock(Instant.EPOCH.plusNanos(ticker.epochNanos() - back));
            }
            boolean foreign = random.nextInt(8) == 0;
            PermitRequest call = new PermitRequest(1L + random.nextInt(2), (long) (random.nextInt(3) * period * 500.0));
            ScriptArguments args =
                    parameters.arguments("take", connection.time(), Collections.nCopies(1 + step % 3, call));
            List<Integer> asked = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                if (random.nextInt(3) > 0) {
                    asked.add(i);
                    if (foreign && random.nextInt(4) == 0) {
                        keys.storeNoBucket(i);
                    }
                }
            }
            keys.ask(limit.name() + " step " + step, args, asked);
        }
        assertThat(keys.decidedTogether).isGreaterThan(3 * steps);
    }

    /** Under several limits the fast path decides as the family does, and stores the same; also while the clock steps back. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 7})
    void severalLimitsAreDecidedOnTheFastPathAsWithoutIt(int count) {
        severalLimits(count, 5);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7})
    @Tag("proof")
    void severalLimitsAreDecidedOnTheFastPathAsWithoutItAtLength(int count) {
        severalLimits(count, 40);
    }

    private static void severalLimits(int count, int rounds) {
        ManualTicker ticker = RedisServers.ticker();
        GuardedConnection connection =
                RedisServers.context(REDIS.backend(ticker)).connection();
        List<Limit> buckets = new ArrayList<>(buckets().toList());
        KeyPairs keys = new KeyPairs();
        Random random = new Random(count);
        for (int round = 0; round < rounds; round++) {
            Collections.shuffle(buckets, random);
            List<ScriptParameters> limits = buckets.stream()
                    .limit(count)
                    .map(limit -> new ScriptParameters(limit, ticker, ONE))
                    .toList();
            long period = buckets.get(random.nextInt(count)).rate().period().toNanos();
            for (int step = 0; step < 25; step++) {
                ticker.advanceNanos((long) (random.nextDouble()
                        * Math.min(period, Duration.ofDays(10).toNanos())
                        / 4));
                if (random.nextInt(15) == 0) {
                    ticker.setWallClock(Instant.EPOCH.plusNanos(ticker.epochNanos() - period / 8));
                }
                if (random.nextInt(15) == 0) {
                    keys.storeNoBucket(random.nextInt(count));
                }
                PermitRequest call = new PermitRequest(1L + random.nextInt(2), random.nextInt(3) * period / 2);
                keys.ask("round " + round + " step " + step, connection.time(), limits, call);
            }
            REDIS.server().ask(commands -> commands.flushall());
        }
        assertThat(keys.decidedTogether).as("decided on the fast path").isGreaterThan(16 * rounds);
        assertThat(keys.admitted).as("admitted").isBetween(rounds, 24 * rounds);
    }

    /** Keys that are asked about together, and a twin of each that is asked about alone. */
    private static final class KeyPairs {

        private static final String TOGETHER = "rl:{together}:";
        private static final String ALONE = "rl:{alone}:";

        private final RedisLink link = REDIS.closeLater(
                REDIS.connector().connect("").toCompletableFuture().join());
        private final RedisCommands<String, String> commands =
                REDIS.closeLater(REDIS.client().connect()).sync();
        private int decidedTogether;
        private int admitted;

        private void ask(String where, ScriptArguments args, List<Integer> asked) {
            if (asked.size() < 2) {
                return;
            }
            List<Object> together =
                    eval(args, asked.stream().map(i -> TOGETHER + i).toArray(String[]::new));
            assertThat(together).as(where).hasSameSizeAs(asked);
            for (int i = 0; i < asked.size(); i++) {
                String key = TOGETHER + asked.get(i);
                String twin = ALONE + asked.get(i);
                Object reply = together.get(i);
                if (reply.equals(-1L)) {
                    assertThat(commands.dump(key)).as(where).isEqualTo(commands.dump(twin));
                    reply = eval(args, key);
                } else {
                    decidedTogether++;
                }
                assertThat(reply).as(where).isEqualTo(eval(args, twin));
                assertThat(commands.dump(key)).as(where).isEqualTo(commands.dump(twin));
            }
        }

        private void ask(String where, String time, List<ScriptParameters> limits, PermitRequest call) {
            ScriptArguments fast = new ScriptArguments().add(time).add("take " + "v".repeat(limits.size()));
            // A window beside the buckets, with room for every call, is decided by the families.
            ScriptParameters window = new ScriptParameters(
                    Limit.of("beside", Algorithm.SLIDING_LOG).rate("1000000/d").build(), RedisServers.ticker(), ONE);
            ScriptArguments all = new ScriptArguments().add(time).add("take " + "v".repeat(limits.size()) + "q");
            limits.forEach(limit -> limit.appendTo(fast));
            limits.forEach(limit -> limit.appendTo(all));
            window.appendTo(all);
            limits.forEach(limit -> limit.append(fast, call, 1));
            limits.forEach(limit -> limit.append(all, call, 1));
            window.append(all, call, 1);
            String[] together = new String[limits.size()];
            String[] twins = new String[limits.size() + 1];
            Arrays.setAll(together, i -> TOGETHER + i);
            Arrays.setAll(twins, i -> ALONE + i);
            List<Object> reply = eval(fast, together);
            List<Object> longReply = eval(all, twins);
            boolean admits = true;
            for (int i = 0; i < limits.size(); i++) {
                ScriptReply decided = decided(longReply.get(i), call, limits.get(i));
                admits = admits && decided.admitted();
                Object own = limits.size() == 1 ? reply : reply.get(i);
                assertThat(decided(own, call, limits.get(i)).toString())
                        .as(where)
                        .isEqualTo(decided.toString());
                assertThat(commands.dump(together[i])).as(where).isEqualTo(commands.dump(twins[i]));
                assertThat(commands.pttl(together[i])).as(where).isCloseTo(commands.pttl(twins[i]), within(1000L));
            }
            // The family also says what has been returned.
            List<?> first = reply.get(0) instanceof List<?> own ? own : reply;
            decidedTogether += first.size() <= 6 ? 1 : 0;
            admitted += admits ? 1 : 0;
        }

        @SuppressWarnings("unchecked") // Arrays of a script are lists of what they hold.
        private static ScriptReply decided(Object reply, PermitRequest call, ScriptParameters limit) {
            return limit.read((List<Object>) reply, List.of(call))[0];
        }

        private List<Object> eval(ScriptArguments args, String... keys) {
            return link.eval(Script.DECIDE, keys, args, false)
                    .toCompletableFuture()
                    .join();
        }

        private void storeNoBucket(int i) {
            for (String key : List.of(TOGETHER + i, ALONE + i)) {
                commands.del(key);
                commands.hset(key, "no", "bucket");
            }
        }
    }

    /** Two keys of one limit that are asked for the same: one for all calls at once, one for each alone. */
    private static final class Pair {

        private static final String TOGETHER = "rl:{together}";
        private static final String ALONE = "rl:{alone}";

        private final ManualTicker ticker = RedisServers.ticker();
        private final RedisRateLimiter limiter;

        private Pair(Limit limit) {
            LimiterContext context = RedisServers.context(REDIS.backend(ticker));
            this.limiter = new RedisRateLimiter(context, limit, "", failure -> null, 0, 1_000_000);
        }

        private PermitRequest call(Random random, long period) {
            return new PermitRequest(1L + random.nextInt(2), (long) (random.nextInt(3) * period * 500.0));
        }

        private List<ScriptReply> ask(String where, List<PermitRequest> calls) {
            List<ScriptReply> together = ask(TOGETHER, calls, where);
            List<ScriptReply> alone = new ArrayList<>();
            for (PermitRequest call : calls) {
                alone.addAll(ask(ALONE, List.of(call), where));
            }
            assertThat(texts(together)).as(where).isEqualTo(texts(alone));
            assertThat(REDIS.server().<String>ask(commands -> commands.type(key(TOGETHER))))
                    .isEqualTo(REDIS.server().<String>ask(commands -> commands.type(key(ALONE))));
            return together;
        }

        /** A mark is compared by what it tells the script. */
        private static List<String> texts(List<ScriptReply> verdicts) {
            return verdicts.stream().map(ScriptReply::toString).toList();
        }

        private List<ScriptReply> ask(String key, List<PermitRequest> calls, String where) {
            ScriptReply[] verdicts =
                    limiter.ask(key, "take", limiter.parameters(), calls).join();
            assertThat(verdicts)
                    .as(where)
                    .allMatch(verdict -> verdict.outcome() == ScriptReply.UNKNOWN
                            || verdict.outcome() == ScriptReply.NEVER
                            || Math.abs(verdict.outcome()) <= 2 * PermitCost.FAR * 1000);
            return List.of(verdicts);
        }

        private String key(String name) {
            return limiter.parameters().fullName(name);
        }

        private void giveBack(long permits, ScriptReply verdict) {
            limiter.giveBack(TOGETHER, permits, verdict, 0);
            limiter.giveBack(ALONE, permits, verdict, 0);
        }

        private void charge(long permits) {
            limiter.charge(TOGETHER, permits);
            limiter.charge(ALONE, permits);
        }
    }

    /** One schedule. */
    private static final class Run {

        private final ManualTicker ticker = RedisServers.ticker();
        private final Random random;
        private final long seed;
        private final Limit limit;
        private final RateLimiter model;
        private final RedisBackend backend;
        private final RateLimiter redis;
        private final List<Taken> taken = new ArrayList<>();
        private boolean undoneWhileItWaited;

        private record Taken(Reservation expected, Reservation actual, long instant) {}

        private Run(RedisServers servers, Limit limit, long seed) {
            this.seed = seed;
            this.random = new Random(seed);
            this.limit = limit;
            ticker.advance(Duration.ofDays(random.nextInt(300)));
            this.model = new InMemoryRateLimiter(limit, ticker, 10);
            servers.server().ask(commands -> commands.flushall());
            this.backend = servers.backend(ticker);
            this.redis = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
        }

        /** Closed afterwards: a heartbeat of this schedule, at another time, would say when the cluster of the next one began. */
        private void go(int steps) {
            try {
                decide(steps);
            } finally {
                backend.close();
            }
        }

        private void decide(int steps) {
            long period = limit.rate().period().toNanos() / 1000;
            for (int step = 0; step < steps; step++) {
                String where = limit.name() + " seed " + seed + " step " + step;
                switch (random.nextInt(10)) {
                    case 0 -> ticker.advanceNanos(1000 * (long) (random.nextDouble() * period * 2));
                    case 1, 2 -> ticker.advanceNanos(1000 * (long) (random.nextDouble() * period / 10));
                    case 3 -> {
                        if (!taken.isEmpty()) {
                            Taken pair = taken.remove(random.nextInt(taken.size()));
                            undoneWhileItWaited |= pair.instant > ticker.nanos();
                            pair.expected.cancel();
                            pair.actual.cancel();
                            if (hasGivenBackMore()) {
                                return;
                            }
                        }
                    }
                    case 4 -> {
                        // Exactly at the promised time.
                        Decision next = model.peek(null, 1, 0);
                        if (next.retryAfter() != null) {
                            ticker.advanceNanos(micros(next.retryAfter()));
                        }
                    }
                    case 5 -> same(where, model.peek(null, 2, 0), redis.peek(null, 2, 0));
                    case 6 -> {
                        if (!taken.isEmpty()) {
                            Taken pair = taken.remove(random.nextInt(taken.size()));
                            long cost = cost();
                            undoneWhileItWaited |= cost == 0 && pair.instant > ticker.nanos();
                            pair.expected.settle(cost);
                            pair.actual.settle(cost);
                            if (hasGivenBackMore()) {
                                return;
                            }
                            same(where + " settled for " + cost, model.peek(null, 1, 0), redis.peek(null, 1, 0));
                        }
                    }
                    default -> reserve(where, period);
                }
            }
        }

        /**
         * Redis forgets the time of a call that was undone while it waited; a cell in memory takes it for a use. So Redis may
         * give back more from then on, as {@code docs/engineering/charging.md} says.
         */
        private boolean hasGivenBackMore() {
            return undoneWhileItWaited
                    && limit.algorithm().family() == Algorithm.Family.BUCKET
                    && redis.peek(null, 1, 0).reset().toNanos()
                            < micros(model.peek(null, 1, 0).reset());
        }

        /** Less than was reserved, the same, more, and rarely far more. */
        private long cost() {
            long most = Math.min(300, limit.rate().permits());
            return random.nextInt(20) == 0 ? random.nextLong(3 * most) : random.nextInt(6);
        }

        private Taken take(long permits) {
            return new Taken(model.reserve(null, permits, 0), redis.reserve(null, permits, 0), ticker.nanos());
        }

        private void reserve(String where, long period) {
            long permits = 1L + random.nextInt(4);
            long maxWait = random.nextBoolean() ? 0 : 1000 * (long) (random.nextDouble() * period * 1.5);
            Reservation expected = model.reserve(null, permits, maxWait);
            Reservation actual = redis.reserve(null, permits, maxWait);
            same(where + " permits " + permits + " maxWait " + maxWait, expected.decision(), actual.decision());
            if (!expected.isRefused()) {
                taken.add(new Taken(expected, actual, ticker.nanos() + expected.waitNanos()));
            }
        }

        private static void same(String where, Decision expected, Decision actual) {
            assertThat(actual.admitted()).as(where).isEqualTo(expected.admitted());
            assertThat(actual.never()).as(where).isEqualTo(expected.never());
            assertThat(actual.waitTime().toNanos()).as(where).isEqualTo(micros(expected.waitTime()));
            if (expected.retryAfter() == null) {
                assertThat(actual.retryAfter()).as(where).isNull();
            } else {
                assertThat(actual.retryAfter().toNanos()).as(where).isEqualTo(micros(expected.retryAfter()));
            }
            if (actual.source() == Source.REDIS) {
                assertThat(actual.remaining()).as(where).isEqualTo(expected.remaining());
                assertThat(actual.reset().toNanos()).as(where).isEqualTo(micros(expected.reset()));
            }
        }

        /** Rounded up to the microsecond. */
        private static long micros(Duration duration) {
            return (duration.toNanos() + 999) / 1000 * 1000;
        }
    }
}
