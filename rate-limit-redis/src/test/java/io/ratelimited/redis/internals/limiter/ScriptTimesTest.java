package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisServers;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Prints how long Redis is held up by each script under the largest inputs that callers can choose, as {@code SLOWLOG} shows
 * it: the table of {@code docs/engineering/cluster.md}.
 */
@Tag("proof")
class ScriptTimesTest {

    /** {@code -Dscript.runs} chooses how many; the table has seven. */
    private static final int RUNS = Integer.getInteger("script.runs", 1);

    private static final int CALLERS = 256;
    private static final long HOUR = 3_600_000_000L;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();
    private RedisCommands<String, String> redis;
    private RedisLink link;

    @BeforeEach
    void connect() {
        redis = REDIS.closeLater(REDIS.client().connect()).sync();
        redis.configSet("slowlog-log-slower-than", "0");
        redis.configSet("slowlog-max-len", "4096");
        link = REDIS.closeLater(
                REDIS.connector().connect("").toCompletableFuture().join());
    }

    /** The median and the longest of some runs, each after the same preparation. */
    private void measure(String what, Runnable prepare, Runnable run) {
        long[] longest = new long[RUNS];
        for (int i = 0; i < RUNS; i++) {
            redis.flushall();
            prepare.run();
            redis.slowlogReset();
            run.run();
            longest[i] = longestScript();
        }
        Arrays.sort(longest);
        System.out.printf(
                Locale.ROOT, "SCRIPT %s: %.1f ms, %.1f%n", what, longest[RUNS / 2] / 1e3, longest[RUNS - 1] / 1e3);
    }

    private long longestScript() {
        long longest = 0;
        for (Object entry : redis.slowlogGet(4096)) {
            List<?> fields = (List<?>) entry;
            if (((List<?>) fields.get(3))
                    .get(0)
                    .toString()
                    .toUpperCase(Locale.ROOT)
                    .startsWith("EVAL")) {
                longest = Math.max(longest, (Long) fields.get(2));
            }
        }
        assertThat(longest).isPositive();
        return longest;
    }

    private String now() {
        return ticker.epochNanos() / 1000 + RedisServers.OUTLIVES;
    }

    private void eval(Script script, String[] keys, ScriptArguments args) {
        link.eval(script, keys, args, false).toCompletableFuture().join();
    }

    private void decide(String operation, ScriptParameters limit, List<PermitRequest> calls) {
        eval(Script.DECIDE, new String[] {limit.fullName("rl:{k}")}, limit.arguments(operation, now(), calls));
    }

    private ScriptParameters limit(Algorithm algorithm, Consumer<Limit.Builder> more) {
        Limit.Builder limit = Limit.of("times", algorithm);
        more.accept(limit);
        return new ScriptParameters(limit.build(), ticker, new Nodes("node", 1));
    }

    /** Callers who ask for different numbers of permits, from one to a largest. */
    private static List<PermitRequest> different(long most, long maxWaitNanos) {
        return LongStream.rangeClosed(1, CALLERS)
                .mapToObj(i -> new PermitRequest(Math.max(1, most / CALLERS * i), maxWaitNanos))
                .toList();
    }

    private static List<PermitRequest> one(long permits) {
        return List.of(new PermitRequest(permits, 0));
    }

    private void fillSlots(ScriptParameters limit, int slots) {
        long slot = HOUR / slots;
        long here = ticker.epochNanos() / 1000 / slot;
        String key = limit.fullName("rl:{k}");
        redis.hset(key, Map.of("w", "0", "e", "1"));
        for (int i = 0; i < slots; i++) {
            redis.hset(key, Long.toString(here - i), "1000");
        }
    }

    @Test
    void slidingWindow() {
        for (int slots : List.of(10, 100, 1_000)) {
            ScriptParameters full = limit(
                    Algorithm.SLIDING_WINDOW, l -> l.rate(slots * 1_000L + "/h").slots(slots));
            ScriptParameters free = limit(
                    Algorithm.SLIDING_WINDOW, l -> l.rate("100000000000/h").slots(slots));
            measure("SLIDING_WINDOW, " + slots + " slots: one", () -> fillSlots(full, slots), () -> {
                decide("take", full, one(1));
            });
            measure("SLIDING_WINDOW, " + slots + " slots: 256 refused", () -> fillSlots(full, slots), () -> {
                decide("take", full, different(slots * 1_000L, 0));
            });
            measure("SLIDING_WINDOW, " + slots + " slots: 256 admitted", () -> fillSlots(free, slots), () -> {
                decide("take", free, different(slots * 1_000L, 0));
            });
            measure("SLIDING_WINDOW, " + slots + " slots: 256 that wait", () -> fillSlots(full, slots), () -> {
                decide("take", full, different(1_000, 2 * HOUR * 1_000));
            });
        }
    }

    private static final int BLOCK = 500;

    /** So many calls of one permit, of which some have left the window. */
    private void fillLog(ScriptParameters limit, int calls, int gone) {
        long now = ticker.epochNanos() / 1000;
        String key = limit.fullName("rl:{k}");
        int open = (calls - 1) % BLOCK + 1;
        redis.rpush(key, "0 0 " + calls + " " + calls + " 0 " + Math.min(BLOCK, calls) + " " + open + " 0");
        for (int from = 0; from < calls; from += 10_000) {
            redis.rpush(
                    key,
                    IntStream.range(from, Math.min(calls, from + 10_000))
                            .mapToObj(i -> (i < gone ? now - 2 * HOUR + i : now - calls + i) + " 1 " + i
                                    + (i % BLOCK == BLOCK - 1 ? "/" + BLOCK : ""))
                            .toArray(String[]::new));
        }
    }

    private void log(String what, int calls, int gone, String rate, String operation, List<PermitRequest> asked) {
        ScriptParameters limit = limit(Algorithm.SLIDING_LOG, l -> l.rate(rate));
        measure("SLIDING_LOG, " + what, () -> fillLog(limit, calls, gone), () -> decide(operation, limit, asked));
    }

    private void slidingLog(int many) {
        String full = many + "/h";
        String free = "1000000000000/h";
        List<PermitRequest> all = one(many);
        List<PermitRequest> middle =
                List.of(PermitRequest.refund(1, (ticker.epochNanos() / 1000 - many / 2) + " " + many / 2));
        log(many + " calls: one that fits", many, 0, free, "take", one(1));
        log(many + " calls: one that waits", many, 0, full, "take", List.of(new PermitRequest(1, 2 * HOUR * 1_000)));
        log(many + " calls: all permits refused", many, 0, full, "take", all);
        log(many + " calls, the limit lowered to 1", many, 0, "1/h", "take", one(1));
        log(many + " calls: 256 refused", many, 0, full, "take", different(many, 0));
        log(many + " calls: 256 that wait", many, 0, full, "take", different(many / 200, 2 * HOUR * 1_000));
        log(many + " calls, all but ten have left: one", many, many - 10, full, "take", one(1));
        log(many + " calls, half have left: all permits", many, many / 2, full, "take", all);
        log(many + " calls, half have left: a peek", many, many / 2, full, "peek", all);
        log(many + " calls: give back in the middle", many, 0, full, "take", middle);
        log(many + " calls: charge 2^52", many, 0, full, "charge", one(Long.MAX_VALUE));
        ScriptParameters limit = limit(Algorithm.SLIDING_LOG, l -> l.rate(full));
        redis.flushall();
        fillLog(limit, many, 0);
        redis.slowlogReset();
        redis.del(limit.fullName("rl:{k}"));
        System.out.printf("SCRIPT reset of a SLIDING_LOG of %d calls: %s us%n", many, redis.slowlogGet(1));
    }

    @Test
    void slidingLogs() {
        ScriptParameters empty = limit(Algorithm.SLIDING_LOG, l -> l.rate("1000000000/h"));
        measure("SLIDING_LOG, empty: 1,000,000 permits", () -> {}, () -> decide("take", empty, one(1_000_000)));
        measure("SLIDING_LOG, empty: charge 2^52", () -> {}, () -> decide("charge", empty, one(Long.MAX_VALUE)));
        slidingLog(10_000);
        slidingLog(1_000_000);
    }

    @Test
    @EnabledIfSystemProperty(
            named = "times.calls",
            matches = "\\d+",
            disabledReason = "-Dtimes.calls=3000000 prints the last rows of the table")
    void anEnormousLog() {
        slidingLog(Integer.getInteger("times.calls"));
    }

    @Test
    void others() {
        for (Algorithm algorithm :
                List.of(Algorithm.FIXED_WINDOW, Algorithm.WARM_UP, Algorithm.TOKEN_BUCKET, Algorithm.LEAKY_BUCKET)) {
            ScriptParameters limit = limit(algorithm, l -> {
                l.rate("100000/h");
                if (algorithm == Algorithm.WARM_UP) {
                    l.warmup(Duration.ofMinutes(10));
                }
            });
            measure(
                    algorithm + ": 256 different",
                    () -> {},
                    () -> decide("take", limit, different(1_000, HOUR * 1_000)));
        }
        ScriptParameters flight = limit(Algorithm.CONCURRENCY, l -> l.maxConcurrent(1_000_000));
        measure("CONCURRENCY: 1,000,000 permits", () -> {}, () -> decide("take", flight, one(1_000_000)));
        measure("CONCURRENCY: 10,000 calls that have lapsed", () -> lapsed(flight, 10_000), () -> {
            decide("take", flight, one(1));
        });
        ScriptParameters given = limit(Algorithm.TOKEN_BUCKET, l -> l.rate("1000000/h"));
        measure("TOKEN_BUCKET: 64 keys", () -> {}, () -> {
            ScriptArguments args = new ScriptArguments().add(now()).add("take v");
            given.appendTo(args);
            given.append(args, one(1).get(0), 1);
            String[] keys = IntStream.range(0, 64)
                    .mapToObj(i -> given.fullName("rl:{k}" + i))
                    .toArray(String[]::new);
            eval(Script.DECIDE, keys, args);
        });
    }

    private void lapsed(ScriptParameters limit, int calls) {
        for (int from = 0; from < calls; from += 1_000) {
            Object[] members = IntStream.range(from, from + 1_000)
                    .boxed()
                    .flatMap(i -> Stream.<Object>of((double) i, "call" + i + "#3"))
                    .toArray();
            redis.zadd(limit.fullName("rl:{k}"), members);
        }
        redis.zadd(limit.fullName("rl:{k}"), 9007199254740992.0 - 2 * calls, "+");
    }

    /** Limits of one caller that a call asks together. */
    @Test
    void severalLimits() {
        for (int count : List.of(3, 10)) {
            for (Algorithm algorithm :
                    List.of(Algorithm.TOKEN_BUCKET, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG)) {
                ScriptParameters limit = limit(algorithm, l -> {
                    l.rate("1000000/h");
                    if (algorithm == Algorithm.SLIDING_WINDOW) {
                        l.slots(1_000);
                    }
                });
                String[] keys = IntStream.range(0, count)
                        .mapToObj(i -> limit.fullName("rl:{k}" + (i == 0 ? "" : i)))
                        .toArray(String[]::new);
                measure(
                        count + " limits " + algorithm,
                        () -> {
                            if (algorithm == Algorithm.SLIDING_WINDOW) {
                                fillSlots(limit, 1_000);
                            } else if (algorithm == Algorithm.SLIDING_LOG) {
                                fillLog(limit, 100_000, 50_000);
                            }
                            for (int i = 1; i < count; i++) {
                                redis.copy(keys[0], keys[i]);
                            }
                        },
                        () -> {
                            ScriptArguments args = new ScriptArguments()
                                    .add(now())
                                    .add("take "
                                            + String.valueOf(limit.letter()).repeat(count));
                            for (int i = 0; i < count; i++) {
                                limit.appendTo(args);
                            }
                            for (int i = 0; i < count; i++) {
                                limit.append(args, one(900_000).get(0), 1);
                            }
                            eval(Script.DECIDE, keys, args);
                        });
            }
        }
    }

    private static final String[] RECORD = {"rl:{r}:changes", "rl:{r}:latest"};

    private void change(Object... parts) {
        ScriptArguments args = new ScriptArguments().add(now());
        for (Object part : parts) {
            args.add(part.toString());
        }
        eval(Script.CHANGES, RECORD, args);
    }

    /** So many callers with a budget. */
    private void budgets(int many) {
        for (int i = 0; i < many; i += 100) {
            List<Object> parts = new ArrayList<>(List.of("restore", 0));
            for (int k = i; k < i + 100; k++) {
                Collections.addAll(
                        parts, "c" + "x".repeat(22) + (10_000 + k) + ":search", k + 1 + " 0 0 ann rate=" + k + "%2Fh");
            }
            change(parts.toArray());
        }
    }

    @Test
    void recordOfAFleet() {
        String version = "1000000000000000";
        measure("changes: a page of 10,000", () -> budgets(10_000), () -> change("read", 0, 0));
        measure("changes: restore of 100", () -> {}, () -> budgets(100));
        measure("changes: a write among 10,000", () -> budgets(10_000), () -> {
            change("write", version, "cnew:search", 0, 0, "ann rate=1/h", "clong:search", "cago:search");
        });
        long[] last = new long[1];
        measure(
                "changes: the latest 100 of 10,000",
                () -> {
                    budgets(9_900);
                    last[0] = Long.parseLong(redis.hget(RECORD[0], "version"));
                    for (int i = 0; i < 100; i++) {
                        change("write", last[0], "cnew" + i + ":search", 0, 0, "ann rate=1/h");
                    }
                },
                () -> change("read", last[0], 0));
        measure(
                "heartbeat: 1,000 nodes",
                () -> {
                    for (int i = 0; i < 1_000; i++) {
                        redis.zadd("rl:{n}:nodes", ticker.epochNanos() / 1000.0, "node" + i);
                    }
                },
                () -> eval(
                        Script.HEARTBEAT,
                        new String[] {"rl:{n}:nodes", "rl:{n}:changes2"},
                        new ScriptArguments().add(now()).add("me").add(10_000_000)));
        measure(
                "pauses: 1,000",
                () -> {
                    for (int i = 0; i < 1_000; i++) {
                        redis.zadd("rl:{p}:pauses", ticker.epochNanos() / 1000.0 + HOUR, "pause" + i);
                    }
                },
                () -> eval(
                        Script.PAUSES,
                        new String[] {"rl:{p}:pauses"},
                        new ScriptArguments()
                                .add(now())
                                .add("one")
                                .add(1_000_000)
                                .add(1_000)));
    }
}
