package io.ratelimited.benchmarks;

import io.ratelimited.benchmarks.Plot.Style;
import io.ratelimited.benchmarks.Results.Result;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Prints the tables of the guide from results, and draws its plot: {@code Tables RESULTS PLOT}. */
public final class Tables {

    private static final String[] ALGORITHMS = {
        "TOKEN_BUCKET",
        "GCRA",
        "SMOOTH_BURSTY",
        "LEAKY_BUCKET",
        "FIXED_WINDOW",
        "WARM_UP",
        "SLIDING_WINDOW",
        "SLIDING_LOG"
    };
    private static final List<String> LIMITS = List.of("1", "4", "16", "64");
    private static final List<String> KEYS =
            List.of("1", "10", "100", "1000", "10000", "100000", "1000000", "10000000");

    private final Results results;

    private Tables(Results results) {
        this.results = results;
    }

    /** Takes the directory of the results and the file to draw into. */
    public static void main(String[] args) throws IOException {
        Path directory = Path.of(args[0]);
        Tables tables = new Tables(new Results(directory));
        tables.decide();
        tables.keyed();
        tables.settle();
        tables.spring();
        callCost(directory.resolve("call-cost.txt"));
        tables.requests();
        tables.growth(Path.of(args[1]));
        newKeys(directory.resolve("growth.txt"));
        startUp(directory.resolve("start-up.txt"));
        redis(directory.resolve("redis.txt"));
        webFlux(directory.resolve("webflux.txt"));
    }

    private void decide() {
        if (!results.has("Decide")) {
            return;
        }
        heading(
                "Deciding, one limiter",
                "admitted, 1 thread",
                "refused, 1 thread",
                "admitted, 2 threads",
                "refused, 2 threads",
                "B/op admitted / refused");
        decideRow("floor: clock and CAS, or clock and read", "floor");
        for (String algorithm : ALGORITHMS) {
            decideRow("**" + algorithm + "**", "ours", "algorithm=" + algorithm);
        }
        decideRow("**CONCURRENCY**, reserved and released", "oursConcurrency");
        decideRow("**ADAPTIVE**, reserved and released", "oursAdaptive");
        decideRow("Resilience4j atomic", "peerResilience4j");
        decideRow("Failsafe bursty", "peerFailsafe");
        decideRow("Bucket4j lock-free", "peerBucket4j");
        decideRow("Guava", "peerGuava");
        decideRow("Guava, warm-up", "peerGuavaWarmUp");
        decideRow("Sentinel QPS rule", "peerSentinel");
    }

    private void decideRow(String what, String method, String... parameters) {
        StringBuilder row = new StringBuilder(first(what, "Decide", method));
        for (int threads = 1; threads <= 2; threads++) {
            for (String outcome : List.of("outcome=admitted", "outcome=refused")) {
                row.append(" | ")
                        .append(ratio(
                                results.find("Decide", method, threads, and(parameters, outcome)),
                                results.find("Decide", "floor", threads, outcome)));
            }
        }
        System.out.println(row + " | "
                + bytes(results.find("Decide", method, 1, and(parameters, "outcome=admitted"))) + " / "
                + bytes(results.find("Decide", method, 1, and(parameters, "outcome=refused"))) + " |");
    }

    private static String[] and(String[] parameters, String one) {
        String[] more = Arrays.copyOf(parameters, parameters.length + 1);
        more[parameters.length] = one;
        return more;
    }

    private void keyed() {
        if (!results.has("Keyed")) {
            return;
        }
        heading(
                "One limiter per key",
                "1 key",
                "10,000 keys",
                "1,000,000 keys",
                "10,000 keys, Zipf",
                "1,000,000 keys, Zipf",
                "B/op");
        Map<String, String> rows = new TreeMap<>(Map.of(
                "1 floor: Caffeine, clock and CAS", "floorCaffeine",
                "2 floor: ConcurrentHashMap, clock and CAS", "floorConcurrentHashMap",
                "3 **ours** (token bucket)", "ours",
                "4 Guava in Caffeine", "peerGuava",
                "5 Bucket4j in Caffeine", "peerBucket4j",
                "6 Resilience4j registry (never evicts)", "peerResilience4j",
                "7 Sentinel hot parameter", "peerSentinel"));
        rows.forEach((what, method) -> {
            StringBuilder row = new StringBuilder(first(what.substring(2), "Keyed", method));
            for (String[] column : new String[][] {
                {"keys=1", "distribution=uniform"},
                {"keys=10000", "distribution=uniform"},
                {"keys=1000000", "distribution=uniform"},
                {"keys=10000", "distribution=zipf"},
                {"keys=1000000", "distribution=zipf"}
            }) {
                row.append(" | ")
                        .append(ratio(
                                results.find("Keyed", method, 1, column),
                                results.find("Keyed", "floorCaffeine", 1, column)));
            }
            System.out.println(
                    row + " | " + bytes(results.find("Keyed", method, 1, "keys=10000", "distribution=uniform")) + " |");
        });
    }

    private void settle() {
        if (!results.has("Settle")) {
            return;
        }
        heading("Reserving and settling 4 permits", "token bucket", "sliding window", "B/op");
        Map<String, String> rows = new TreeMap<>(Map.of(
                "1 reserved", "reserved",
                "2 reserved twice", "reservedTwice",
                "3 settled for the same", "settledForTheSame",
                "4 settled for less", "settledForLess",
                "5 settled for more", "settledForMore"));
        rows.forEach((what, method) -> {
            StringBuilder row = new StringBuilder(first(what.substring(2), "Settle", method));
            for (String algorithm : List.of("algorithm=TOKEN_BUCKET", "algorithm=SLIDING_WINDOW")) {
                row.append(" | ")
                        .append(ratio(
                                results.find("Settle", method, 1, algorithm),
                                results.find("Settle", "reservedTwice", 1, algorithm)));
            }
            System.out.println(row + " | " + bytes(results.find("Settle", method, 1, "algorithm=TOKEN_BUCKET")) + " |");
        });
    }

    private void spring() {
        if (!results.has("Spring")) {
            return;
        }
        heading("Through Spring", "1 thread", "above the floor", "2 threads", "above the floor", "B/op", "above");
        springRow("a `MethodInterceptor` that only proceeds", "floorInterceptor");
        springRow("floor: an `@Around` that only proceeds", "floorAround");
        springRow("an `@Around` with a clock and one compare-and-set", "floorAroundCounting");
        springRow("an `@Around` that binds the annotation", "floorAroundBinding");
        springRow("**ours**, no key", "ours");
        springRow("**ours**, `key = \"#id\"`", "oursByParameter");
        springRow("**ours**, `key = \"#caller.id\"`", "oursByProperty");
        springRow("**ours**, `key = \"@tenants.of(#id)\"`", "oursByBean");
        springRow("**ours**, two limits", "oursTwice");
        springRow("**ours**, two limits with keys", "oursTwiceByKeys");
        springRow("**ours**, three limits", "oursThreeTimes");
        springRow("**ours**, `key` and `charge`", "oursReservedAndCharged");
        springRow("Spring `@ConcurrencyLimit`", "peerConcurrencyLimit");
        springRow("Spring `@Cacheable` hit, SpEL key", "peerCacheable");
        springRow("Sentinel `@SentinelResource`", "peerSentinel");
        springRow("Resilience4j `@RateLimiter` (no key)", "peerResilience4j");
        springRow("MarcGiffing `@RateLimiting`, SpEL key", "peerGiffing");
    }

    private void springRow(String what, String method) {
        Result one = results.find("Spring", method, 1);
        Result two = results.find("Spring", method, 2);
        Result floor = results.find("Spring", "floorAround", 1);
        System.out.println(first(what, "Spring", method) + " | " + nanos(one) + " | " + above(one, floor) + " | "
                + nanos(two) + " | "
                + above(two, results.find("Spring", "floorAround", 2)) + " | " + bytes(one) + " | "
                + (one == null || floor == null ? "" : String.format(Locale.ROOT, "%+.0f", one.bytes() - floor.bytes()))
                + " |");
    }

    private void requests() {
        if (!results.has("Request")) {
            return;
        }
        heading("A request to Spring MVC", "1 thread", "above the floor", "B/op");
        Result floor = results.find("Request", "floorRequest", 1);
        for (String[] row : new String[][] {
            {"floor: no limit", "floorRequest"},
            {"**ours**, no key", "oursRequest"},
            {"**ours**, `key = \"#id\"`", "oursRequestByParameter"}
        }) {
            Result result = results.find("Request", row[1], 1);
            System.out.println(first(row[0], "Request", row[1]) + " | " + nanos(result) + " | " + above(result, floor)
                    + " | " + bytes(result) + " |");
        }
    }

    private void growth(Path file) throws IOException {
        if (!results.has("Limits")) {
            return;
        }
        heading("Calls to one of several limits in turn", LIMITS.toArray(String[]::new));
        growthRow(
                first("floor", "Limits", "floor"),
                LIMITS.stream().map(n -> results.find("Limits", "floor", 1, "limits=" + n)));
        growthRow(
                first("**ours**", "Limits", "ours"),
                LIMITS.stream().map(n -> results.find("Limits", "ours", 1, "limits=" + n)));
        heading("Calls of one of several keys", KEYS.toArray(String[]::new));
        growthRow(
                first("floor: Caffeine", "Keyed", "floorCaffeine"),
                KEYS.stream().map(n -> keyed("floorCaffeine", n)));
        growthRow(first("**ours**", "Keyed", "ours"), KEYS.stream().map(n -> keyed("ours", n)));
        List<String> perMethod = List.of("ours", "oursTwice", "oursThreeTimes");
        heading("Limits on one method", "1", "2", "3");
        growthRow(
                "| **ours** | `SpringBenchmark.ours`, `oursTwice`, `oursThreeTimes`",
                perMethod.stream().map(method -> results.find("Spring", method, 1)));
        Plot plot = new Plot(false);
        plot.panel("ns per call, by limits in turn", LIMITS)
                .line("floor", Style.FLOOR, points(LIMITS, n -> results.find("Limits", "floor", 1, "limits=" + n)))
                .line("ours", Style.OURS, points(LIMITS, n -> results.find("Limits", "ours", 1, "limits=" + n)));
        plot.panel("ns per call, by keys", KEYS)
                .line("floor", Style.FLOOR, points(KEYS, n -> keyed("floorCaffeine", n)))
                .line("ours", Style.OURS, points(KEYS, n -> keyed("ours", n)));
        plot.panel("ns per call, by limits per method", List.of("1", "2", "3"))
                .line("floor", Style.FLOOR, points(perMethod, method -> results.find("Spring", "floorAround", 1)))
                .line("ours", Style.OURS, points(perMethod, method -> results.find("Spring", method, 1)));
        Files.writeString(file, plot.svg("Nanoseconds per call as the work grows"));
    }

    /** Nanoseconds by label; not a number where a label was not measured. */
    private static List<Double> points(List<String> labels, Function<String, @Nullable Result> results) {
        return labels.stream()
                .map(results)
                .map(result -> result == null ? Double.NaN : result.nanos())
                .toList();
    }

    private @Nullable Result keyed(String method, String keys) {
        return results.find("Keyed", method, 1, "keys=" + keys, "distribution=uniform");
    }

    private static void growthRow(String what, Stream<@Nullable Result> row) {
        StringBuilder text = new StringBuilder(what);
        row.forEach(result -> text.append(" | ").append(nanos(result)));
        System.out.println(text + " |");
    }

    /** The lines that {@link CallCost} printed: a row, and nanoseconds and bytes of its floor and its own. */
    private static void callCost(Path file) throws IOException {
        if (!Files.exists(file)) {
            return;
        }
        heading("Processor time of a call", "ns of its floor", "above its floor", "÷ its floor", "B above");
        for (String line : Files.readAllLines(file)) {
            String[] row = line.split(" ", -1);
            if (row.length == 5 && !line.contains(",")) {
                double floor = Double.parseDouble(row[1]);
                double ours = Double.parseDouble(row[2]);
                System.out.printf(
                        Locale.ROOT,
                        "| %s | `CallCost %s` | %.0f | %+.0f | %.2f | %+.0f |%n",
                        row[0],
                        row[0],
                        floor,
                        ours - floor,
                        ours / floor,
                        Double.parseDouble(row[4]) - Double.parseDouble(row[3]));
            }
        }
    }

    /** The lines that {@link Growth} printed. */
    private static void newKeys(Path file) throws IOException {
        if (Files.exists(file)) {
            System.out.println("\nNew keys, by `Growth`:\n\n" + Files.readString(file));
        }
    }

    /** The lines that {@link RedisTurns} printed, by what they begin with. */
    private static void redis(Path file) throws IOException {
        if (!Files.exists(file)) {
            return;
        }
        Map<String, String[]> lines = new TreeMap<>();
        for (String line : Files.readAllLines(file)) {
            String[] words = line.split(" ", -1);
            lines.put(String.join(" ", Arrays.asList(words).subList(0, 5)), words);
        }
        List<String> rows = new ArrayList<>();
        for (String keys : List.of("1", "10000")) {
            for (String number : List.of("1", "16", "64")) {
                rows.add(number + " " + keys + " enough");
            }
        }
        List<String> threads = Stream.concat(rows.stream().map(row -> "threads " + row), Stream.of("threads 16 1 one"))
                .toList();
        heading(
                "Threads: decisions a second ÷ floor",
                "1 on 1 key",
                "16 on 1 key",
                "64 on 1 key",
                "1 on 10,000 keys",
                "16 on 10,000 keys",
                "64 on 10,000 keys",
                "16 on an exhausted key");
        redisRow(lines, "floor: a script that only returns, decisions a second", "floorScript", threads);
        redisRow(lines, "**ours**, token bucket", "tokenBucket", threads);
        redisRow(lines, "**ours**, two token buckets on a call", "twoLimits", threads);
        redisRow(lines, "Spring Cloud Gateway's script", "peerGateway", threads);
        redisRow(lines, "Redisson RRateLimiter", "peerRedisson", threads);
        redisRow(lines, "Bucket4j, Lettuce compare-and-swap", "peerBucket4j", threads);
        List<String> calls = rows.stream().map(row -> "async " + row).toList();
        heading(
                "Asynchronous calls: decisions a second ÷ floor",
                "1 on 1 key",
                "16 on 1 key",
                "64 on 1 key",
                "1 on 10,000 keys",
                "16 on 10,000 keys",
                "64 on 10,000 keys");
        redisRow(lines, "floor: a script that only returns, decisions a second", "floorScriptAsync", calls);
        redisRow(lines, "**ours**, a future", "tokenBucketAsync", calls);
        redisRow(lines, "**ours**, reactive", "tokenBucketReactiveAsync", calls);
        redisRow(lines, "Spring Cloud Gateway's script", "peerGatewayAsync", calls);
        redisRow(lines, "Redisson RRateLimiter", "peerRedissonAsync", calls);
        redisRow(lines, "Bucket4j, Lettuce compare-and-swap", "peerBucket4jAsync", calls);
        heading(
                "64 callers on 10,000 keys, µs",
                "p50, threads",
                "p99, threads",
                "p50, asynchronous",
                "p99, asynchronous");
        redisLatency(lines, "floor: a script that only returns", "floorScript", "floorScriptAsync");
        redisLatency(lines, "**ours**, blocking; a future", "tokenBucket", "tokenBucketAsync");
        redisLatency(lines, "**ours**, reactive", "", "tokenBucketReactiveAsync");
        redisLatency(lines, "Spring Cloud Gateway's script", "peerGateway", "peerGatewayAsync");
        heading(
                "Processor time of one call at a time on 1 key, µs",
                "server, 1 thread",
                "client, 1 thread",
                "server, asynchronous",
                "client, asynchronous");
        redisTime(lines, "floor: a script that only returns", "floorScript", "floorScriptAsync");
        redisTime(lines, "**ours**, blocking; a future", "tokenBucket", "tokenBucketAsync");
        redisTime(lines, "**ours**, reactive", "", "tokenBucketReactiveAsync");
        redisTime(lines, "Spring Cloud Gateway's script", "peerGateway", "peerGatewayAsync");
    }

    private static void redisRow(Map<String, String[]> lines, String what, String name, List<String> columns) {
        int word = name.startsWith("floor") ? RedisTurns.PER_SECOND : RedisTurns.RATIO;
        StringBuilder row = new StringBuilder(first(what, "Redis", name));
        columns.forEach(column -> row.append(redisCell(lines, column + " " + name, word)));
        System.out.println(row + " |");
    }

    private static void redisLatency(Map<String, String[]> lines, String what, String blocking, String asynchronous) {
        String threads = "threads 64 10000 enough ";
        String calls = "async 64 10000 enough ";
        System.out.println(first(what, "Redis", asynchronous)
                + redisCell(lines, threads + blocking, RedisTurns.P50)
                + redisCell(lines, threads + blocking, RedisTurns.P99)
                + redisRatio(lines, threads + blocking, threads + "floorScript")
                + redisCell(lines, calls + asynchronous, RedisTurns.P50)
                + redisCell(lines, calls + asynchronous, RedisTurns.P99)
                + redisRatio(lines, calls + asynchronous, calls + "floorScriptAsync")
                + " |");
    }

    /** Of two p99, in brackets. */
    private static String redisRatio(Map<String, String[]> lines, String line, String floor) {
        String[] own = lines.get(line);
        String[] base = lines.get(floor);
        return own == null || base == null
                ? ""
                : String.format(
                        Locale.ROOT,
                        " (%.2f)",
                        Double.parseDouble(own[RedisTurns.P99]) / Double.parseDouble(base[RedisTurns.P99]));
    }

    private static void redisTime(Map<String, String[]> lines, String what, String blocking, String asynchronous) {
        String threads = "threads 1 1 enough ";
        String calls = "async 1 1 enough ";
        System.out.println(first(what, "Redis", asynchronous)
                + redisCell(lines, threads + blocking, RedisTurns.SERVER)
                + redisCell(lines, threads + blocking, RedisTurns.CLIENT)
                + redisCell(lines, calls + asynchronous, RedisTurns.SERVER)
                + redisCell(lines, calls + asynchronous, RedisTurns.CLIENT)
                + " |");
    }

    /** A word of a line as a cell; an empty cell where the line is missing. */
    private static String redisCell(Map<String, String[]> lines, String line, int word) {
        String[] words = lines.get(line);
        if (words == null) {
            return " | ";
        }
        double value = Double.parseDouble(words[word]);
        return " | "
                + String.format(Locale.ROOT, word == RedisTurns.RATIO ? "%.2f" : value < 100 ? "%.1f" : "%,.0f", value);
    }

    /** The lines that {@link WebFluxTurns} printed, by what they begin with. */
    private static void webFlux(Path file) throws IOException {
        if (!Files.exists(file)) {
            return;
        }
        Map<String, String[]> lines = new TreeMap<>();
        for (String line : Files.readAllLines(file)) {
            String[] words = line.split(" ", -1);
            lines.put(words[0] + " " + words[1], words);
        }
        heading(
                "A WebFlux endpoint under a limit on Redis, µs",
                "p50, 1 connection",
                "p99, 1 connection",
                "p50, 16 connections",
                "p99, 16 connections",
                "p50, 256 connections",
                "p99, 256 connections");
        webFluxRow(lines, "floor: no limit", "floor", false);
        webFluxRow(lines, "**ours**, an annotated method", "annotation", false);
        webFluxRow(lines, "**ours**, a route", "route", false);
        webFluxRow(lines, "a script that only returns", "script", false);
        webFluxRow(lines, "Spring Cloud Gateway's filter", "gateway", false);
        webFluxRow(lines, "**ours**, an annotated method ÷ Gateway's filter", "annotation", true);
        webFluxRow(lines, "**ours**, a route ÷ Gateway's filter", "route", true);
    }

    /** @param toGateway the ratio to Gateway's filter alone, instead of microseconds and the ratio to the floor */
    private static void webFluxRow(Map<String, String[]> lines, String what, String kind, boolean toGateway) {
        StringBuilder row = new StringBuilder("| " + what + " | `WebFluxTurns " + kind + "`");
        for (String number : List.of("1", "16", "256")) {
            String[] words = lines.get(number + " " + kind);
            for (int i = 0; i < 2; i++) {
                row.append(" | ");
                if (words != null && toGateway) {
                    row.append(
                            String.format(Locale.ROOT, "%.2f", Double.parseDouble(words[WebFluxTurns.TO_GATEWAY + i])));
                } else if (words != null) {
                    row.append(String.format(
                            Locale.ROOT,
                            "%,.0f (%.2f)",
                            Double.parseDouble(words[WebFluxTurns.P50 + i]),
                            Double.parseDouble(words[WebFluxTurns.TO_FLOOR + i])));
                }
            }
        }
        System.out.println(row + " |");
    }

    /** Medians of the lines that {@link StartUp} printed. */
    private static void startUp(Path file) throws IOException {
        if (!Files.exists(file)) {
            return;
        }
        heading(
                "Start-up",
                "ms without",
                "ms with an idle aspect",
                "ms with",
                "processor ms without",
                "processor ms with an idle aspect",
                "processor ms with",
                "classes added to the idle aspect's",
                "beans added",
                "heap added, kB",
                "other memory added, kB");
        for (String methods : List.of("0", "10", "1000")) {
            double[] without = medians(file, methods + " without ");
            double[] with = medians(file, methods + " with ");
            double[] aspect = medians(file, methods + " aspect ");
            System.out.printf(
                    Locale.ROOT,
                    "| %s methods | `StartUp` | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f"
                            + " |%n",
                    methods,
                    without[0],
                    aspect[0],
                    with[0],
                    without[4],
                    aspect[4],
                    with[4],
                    with[5] - aspect[5],
                    with[1] - without[1],
                    (with[2] - without[2]) / 1024,
                    (with[3] - without[3]) / 1024);
        }
    }

    private static double[] medians(Path file, String prefix) throws IOException {
        List<double[]> starts = Files.readAllLines(file).stream()
                .filter(line -> line.startsWith(prefix))
                .map(line -> Arrays.stream(line.substring(prefix.length()).split(" "))
                        .mapToDouble(Double::parseDouble)
                        .toArray())
                .toList();
        double[] medians = new double[6];
        for (int i = 0; i < medians.length; i++) {
            int column = i;
            medians[i] = starts.stream()
                    .mapToDouble(start -> start[column])
                    .sorted()
                    .skip((starts.size() - 1) / 2)
                    .findFirst()
                    .orElse(Double.NaN);
        }
        return medians;
    }

    private static void heading(String title, String... columns) {
        System.out.println("\n| " + title + " | benchmark | " + String.join(" | ", columns) + " |");
        System.out.println("|---|---|" + "---:|".repeat(columns.length));
    }

    private static String first(String what, String suite, String method) {
        return "| " + what + " | `" + suite + "Benchmark." + method + "`";
    }

    private static String ratio(@Nullable Result result, @Nullable Result floor) {
        return result == null || floor == null
                ? nanos(result)
                : String.format(Locale.ROOT, "%s (%.2f)", nanos(result), result.nanos() / floor.nanos());
    }

    private static String nanos(@Nullable Result result) {
        return result == null
                ? ""
                : String.format(Locale.ROOT, result.nanos() < 100 ? "%.1f" : "%,.0f", result.nanos());
    }

    private static String above(@Nullable Result result, @Nullable Result floor) {
        return result == null || floor == null
                ? ""
                : String.format(Locale.ROOT, "%+,.0f", result.nanos() - floor.nanos());
    }

    private static String bytes(@Nullable Result result) {
        return result == null ? "" : String.format(Locale.ROOT, "%.0f", result.bytes());
    }
}
