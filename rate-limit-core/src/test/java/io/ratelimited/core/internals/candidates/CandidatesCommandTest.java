package io.ratelimited.core.internals.candidates;

import static io.ratelimited.core.Algorithm.ADAPTIVE;
import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Algorithm.WARM_UP;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@Tag("slow")
class CandidatesCommandTest {

    private static final Path RECORDED = Path.of("src/test/resources/access-log/recorded.log.gz");

    @TempDir
    private Path folder;

    private String run(String... args) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        PrintStream stream = new PrintStream(out, true, StandardCharsets.UTF_8);
        CandidatesCommand.run(args, stream, stream);
        return out.toString(StandardCharsets.UTF_8).replace("\r\n", "\n");
    }

    private String runOn(List<String> lines, String... options) throws Exception {
        Path file = Files.write(folder.resolve("access.log"), lines);
        String[] args = new String[options.length + 2];
        args[0] = "candidates";
        System.arraycopy(options, 0, args, 1, options.length);
        args[args.length - 1] = file.toString();
        return run(args).replace(folder + "/", "");
    }

    @Test
    void saysWhatRealLimitsRejectOfARecordedLog() throws Exception {
        String text = run("candidates", "--key", "host", "--rate", "40/m,5/m,20/m,60/m,10/m", RECORDED.toString());
        for (int rate : new int[] {5, 10, 20, 40, 60}) {
            Limit limit =
                    Limit.of("real", Algorithm.TOKEN_BUCKET).rate(rate + "/m").build();
            ManualTicker ticker = new ManualTicker();
            InMemoryRateLimiter real = new InMemoryRateLimiter(limit, ticker, 10_000);
            AccessLog log = new AccessLog("host", "time");
            int rejected = 0;
            try (InputStream stream = new GZIPInputStream(Files.newInputStream(RECORDED));
                    BufferedReader reader = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
                for (AccessLog.Call call : reader.lines()
                        .map(log::read)
                        .sorted(java.util.Comparator.comparingLong(AccessLog.Call::epochNanos))
                        .toList()) {
                    long gap = call.epochNanos() - ticker.epochNanos();
                    ticker.advance(Duration.ofNanos(Math.max(0, gap)));
                    rejected += real.tryAcquire(call.key(), 1) ? 0 : 1;
                }
            }
            assertThat(text)
                    .containsPattern("(?m)^" + rate + "/m rejects " + CandidateReport.percent(rejected / 10_000.0));
        }
        assertThat(text)
                .startsWith("10000 calls from 2015-05-17T10:05:00Z to 2015-05-20T21:05:59Z\n")
                .endsWith("the smallest below 1 % is 40/m\n");
    }

    @Test
    void readsTheCommonAndTheCombinedFormat() {
        AccessLog log = new AccessLog("user", "time");
        long at = Instant.parse("2026-10-10T11:55:36Z").getEpochSecond() * 1_000_000_000L;
        assertThat(log.read("10.0.0.1 - ann [10/Oct/2026:13:55:36 +0200] \"GET /a?q=\\\"b HTTP/1.1\" 200 2326"))
                .isEqualTo(new AccessLog.Call(at, "ann"));
        assertThat(log.read("::1 - - [10/Oct/2026:11:55:36 +0000] \"-\" 400 - \"http://a/\" \"curl \\\"8\" 12 more"))
                .isEqualTo(new AccessLog.Call(at, null));
        assertThat(new AccessLog("agent", "time")
                        .read("::1 - - [10/Oct/2026:11:55:36 +0000] \"-\" 400 - \"-\" \"curl/8\""))
                .isEqualTo(new AccessLog.Call(at, "curl/8"));
    }

    @Test
    void readsJsonLines() {
        AccessLog log = new AccessLog("request.remote_ip", "ts");
        assertThat(
                        log.read(
                                "{\"a\": [1, {}, []], \"ts\":1760097336.5, \"request\":{\"remote_ip\":\"1\\u002e2\\\"\"}, \"z\":null}"))
                .isEqualTo(new AccessLog.Call(1_760_097_336_500_000_000L, "1.2\""));
        for (String time : List.of(
                "1760097336500",
                "1760097336500000",
                "1760097336500000000",
                "\"2025-10-10T13:55:36.5+02:00\"",
                "\"2025-10-10T11:55:36.5Z\"",
                "\"2025-10-10T13:55:36.5+0200\"",
                "1.7600973365E9")) {
            assertThat(log.read("{\"ts\":" + time + "}"))
                    .isEqualTo(new AccessLog.Call(1_760_097_336_500_000_000L, null));
        }
        for (String bad : List.of(
                "{",
                "{\"ts\"}",
                "{\"ts\":}",
                "{\"ts\":\"x\"}",
                "{\"ts\":tomorrow}",
                "{\"a\":1}",
                "{\"ts\":\"\\u00",
                "[".repeat(9),
                "{\"ts\":" + "[".repeat(99_999),
                "{\"ts\":1760097336 \"a\":1}",
                "{\"ts\":99999999999999999999999999}",
                "{\"ts\":1e999}",
                "{\"ts\":1760097336}}",
                "{\"ts\":1760097336}\"a\":1",
                "{\"ts\":1760097336}{}",
                "1.2.3.4 - -")) {
            assertThatThrownBy(() -> log.read(bad)).as(bad).isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void namesTheLinesThatItCannotRead() throws Exception {
        assertThat(runOn(
                        List.of(
                                "10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1",
                                "",
                                "Restarting\u0007",
                                "10.0.0.1 - - [99/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1"),
                        "--rate",
                        "1/m"))
                .isEqualTo("""
                        access.log, line 3: it is neither in the Common Log Format nor a JSON object: Restarting?
                        access.log, line 4: its time is 99/Oct/2026:13:55:36 +0000, but must be as in 10/Oct/2026:13:55:36 +0200, \
                        2026-10-10T13:55:36Z, or a number since 1970: 10.0.0.1 - - [99/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1
                        Skipped 2 lines that could not be read. [RL-292]
                        1 call from 2026-10-10T13:55:36Z to 2026-10-10T13:55:36Z
                        1/m rejects 0 %
                        the smallest below 1 % is 1/m
                        """);
    }

    @Test
    void readsTheStandardInputAndTriesNineStepsForAuto() {
        String line = "{\"ts\": 1760097336.5, \"request\": {\"remote_ip\": \"10.0.0.1\"}}\n";
        InputStream before = System.in;
        System.setIn(new ByteArrayInputStream(line.repeat(8).getBytes(StandardCharsets.UTF_8)));
        try {
            assertThat(run("candidates", "--time", "ts", "--key", "request.remote_ip", "--rate", "auto", "-"))
                    .startsWith("8 calls from 2025-10-10T11:55:36.500Z to 2025")
                    .contains("2/m rejects 75 % (1 caller): 10.0.0.1 (6)\n", "100/m rejects 0 %\n")
                    .endsWith("the smallest below 1 % is 25/m\n");
        } finally {
            System.setIn(before);
        }
    }

    /** Otherwise the result would be that of one limit for all calls, which nobody asked for. */
    @Test
    void aKeyThatNoLineHasIsAMistake() throws Exception {
        String line = "{\"time\": 1760097336, \"user\": \"%s\"}";
        List<String> lines = List.of(line.formatted("-"), line.formatted("ann"));
        assertThat(runOn(lines, "--key", "usr", "--rate", "1/m"))
                .isEqualTo("--key is usr, but no line has a value of such a field."
                        + " Correct it, or omit it to try one limit for all calls.\n");
        assertThat(runOn(lines.subList(0, 1), "--key", "user", "--rate", "1/m")).contains("no line has a value");
        assertThat(runOn(lines, "--key", "user", "--rate", "1/m")).startsWith("2 calls from");
    }

    @Test
    void noControlCharacterOfALogReachesTheTerminal() throws Exception {
        String escape = "\u001b[2J";
        assertThat(runOn(
                        List.of(
                                "{\"time\": \"" + escape + "\"}",
                                "{\"" + escape + "\": 1}",
                                "{\"time\": 1760097336, \"user\": \"" + escape + "\"}",
                                "{\"time\": 1760097336, \"user\": \"" + escape + "\"}"),
                        "--rate",
                        "1/m",
                        "--key",
                        "user"))
                .contains("1/m rejects 50 % (1 caller): ?[2J (1)")
                .doesNotContain("\u001b");
    }

    /** With the mark, the first caller of a log in the Common Log Format would be another one than in the lines below. */
    @Test
    void aByteOrderMarkIsNoPartOfTheFirstLine() throws Exception {
        String line = "10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1";
        assertThat(runOn(List.of("\uFEFF" + line, line), "--key", "host", "--rate", "1/m"))
                .contains("1/m rejects 50 % (1 caller): 10.0.0.1 (1)\n")
                .doesNotContain("Skipped");
        assertThat(runOn(List.of("\uFEFF{\"time\": 1760097336}"), "--rate", "1/m"))
                .startsWith("1 call from 2025-10-10T11:55:36Z to 2025-10-10T11:55:36Z\n");
    }

    @Test
    void filesThatAreNotInTheOrderOfTheirTimesAreReported() throws Exception {
        String line = "10.0.0.1 - - [%02d/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1\n";
        Path newer = Files.writeString(
                folder.resolve("access.log"), line.formatted(11).repeat(10_000));
        Path older = Files.writeString(
                folder.resolve("access.log.1"), line.formatted(10).repeat(2) + "Restarting\n");
        assertThat(run("candidates", "--rate", "1/m", newer.toString(), older.toString()))
                .contains("Skipped 1 line that could not be read. [RL-292]\n");
        Files.writeString(newer, line.formatted(11).repeat(10_001));
        assertThat(run("candidates", "--rate", "1/m", newer.toString(), older.toString()))
                .contains(", 2 of them too late to be sorted: name the oldest file first\n");
        assertThat(run("candidates", "--rate", "1/m", older.toString(), newer.toString()))
                .doesNotContain("too late");
    }

    /** Servers write a line when the response has ended. */
    @Test
    void sortsLinesByTheirTime() throws Exception {
        String line = "10.0.0.%d - - [10/Oct/2026:13:%02d:00 +0000] \"GET / HTTP/1.1\" 200 1";
        List<String> lines =
                List.of(line.formatted(1, 59), line.formatted(1, 0), line.formatted(1, 1), line.formatted(1, 30));
        assertThat(runOn(lines, "--key", "host", "--rate", "1/m,2/h", "--algorithm", "sliding-log"))
                .contains("2/h rejects 50 % (1 caller): 10.0.0.1 (2)\n", "1/m rejects 0 %\n");
    }

    @Test
    void mistakesInTheArgumentsAreNamed() throws Exception {
        assertThat(run("candidates", "--rate", "1/m"))
                .startsWith("Usage: java -jar rate-limit-core.jar candidates --rate");
        assertThat(run()).startsWith("Usage");
        assertThat(run("candidates", "--rat", "1/m", "a")).startsWith("The option --rat is unknown");
        assertThat(run("candidates", "--rate", "1/m", "no.log")).contains("cannot be read: no.log");
        assertThat(run("candidates", "--rate", "1", "no.log")).contains("rate is \"1\", but must be");
        assertThat(run("candidates", "--rate", "1/m", "--algorithm", "x", "a"))
                .contains("must be one of [TOKEN_BUCKET");
        for (String percent : List.of("x", "200", "100.1", "-1", "0", "0.0", "NaN", "5%", "1e-1")) {
            assertThat(run("candidates", "--rate", "1/m", "--below", percent, "a"))
                    .isEqualTo("--below is " + percent
                            + ", but must be a percentage above 0, at most 100. Write it as in 0.5.\n");
        }
        for (String percent : List.of("100", "99.9", "0.01", "5")) {
            assertThat(runOn(List.of(), "--rate", "1/m", "--below", percent)).isEqualTo("There are no calls.\n");
        }
        assertThat(run("candidates", "--rate", "1/m", folder.toString())).startsWith(folder + " cannot be read: ");
        Path noArchive = Files.writeString(folder.resolve("no.gz"), "10.0.0.1 - -");
        assertThat(run("candidates", "--rate", "1/m", noArchive.toString()))
                .startsWith(noArchive + " cannot be read: Not in GZIP format. Check its name, permissions and format.");
        assertThat(runOn(List.of(), "--rate", "1/m")).isEqualTo("There are no calls.\n");
    }

    @ParameterizedTest
    @MethodSource("io.ratelimited.core.Algorithm#all")
    void triesEveryAlgorithmThatItOffers(Algorithm algorithm) throws Exception {
        String offered = run("candidates", "--rate", "1/m", "--algorithm", "x", "a");
        String name = algorithm.name().toLowerCase(Locale.ROOT).replace('_', '-');
        String text = runOn(List.of(), "--rate", "1/m", "--algorithm", name);
        boolean isOffered = offered.contains(algorithm.name());
        assertThat(isOffered).isEqualTo(!Set.of(WARM_UP, CONCURRENCY, ADAPTIVE).contains(algorithm));
        assertThat(text)
                .isEqualTo(isOffered ? "There are no calls.\n" : offered.replace(" is x,", " is " + name + ","));
    }

    /** No library is there: neither that of caches nor that of annotations. */
    @Test
    void needsTheClassesOfTheCoreAlone() throws Exception {
        URL core = Objects.requireNonNull(
                CandidatesCommand.class.getProtectionDomain().getCodeSource().getLocation());
        try (URLClassLoader alone = new URLClassLoader(new URL[] {core}, ClassLoader.getPlatformClassLoader())) {
            Class<?> command = alone.loadClass(CandidatesCommand.class.getName());
            var run = command.getDeclaredMethod("run", String[].class, PrintStream.class, PrintStream.class);
            run.setAccessible(true);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            String[] args = {"candidates", "--rate", "10/m", "--algorithm", "fixed-window", RECORDED.toString()};
            Object code = run.invoke(null, args, new PrintStream(out), new PrintStream(out));
            assertThat(out.toString(StandardCharsets.UTF_8)).startsWith("10000 calls");
            assertThat(code).isEqualTo(0);
        }
    }
}
