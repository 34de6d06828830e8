package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.fields.ResponseLimits.Quota;
import io.ratelimited.spring.internals.web.LimitHeaders;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is read off the fields of answers, and what is ignored. */
class ResponseHeadersTest {

    private static final Instant NOW = Instant.parse("2026-03-01T12:00:00Z");
    private static final long SECOND = 1_000_000_000L;

    private static ResponseLimits read(int status, String... fields) {
        return readAt(NOW, status, fields);
    }

    private static ResponseLimits readAt(Instant now, int status, String... fields) {
        Map<String, List<String>> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (int i = 0; i < fields.length; i += 2) {
            all.computeIfAbsent(fields[i], name -> new ArrayList<>()).add(fields[i + 1]);
        }
        return ResponseHeaders.read(status, all::get, now.toEpochMilli());
    }

    private static Quota quota(String... fields) {
        assertThat(read(200, fields).quotas()).hasSize(1);
        return read(200, fields).quotas().get(0);
    }

    @ParameterizedTest
    @ValueSource(strings = {":aGk=:", ":aGk:", "::", "@-5", "%\"\"", "%\"a \\%c3%a9\"", "?1", "-1.5", "a/b"})
    void otherTypesOfStructuredFieldsAreReadOver(String value) {
        assertThat(quota("RateLimit", "\"a\";x=" + value + ";r=1;t=5").remaining())
                .isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                ":a:",
                ":aG*=:",
                ":aGk",
                "@1.5",
                "@",
                "@a",
                "%",
                "%a",
                "%\"%c3\"",
                "%\"%C3%A9\"",
                "%\"%zz\"",
                "%\"é\"",
                "%\"%c\"",
                "%\"a"
            })
    void aListWithAMalformedValueStatesNothing(String value) {
        assertThat(read(200, "RateLimit", "\"a\";r=1;t=5;x=" + value).quotas()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(ints = {429, 503})
    void retryAfterIsSeconds(int status) {
        assertThat(read(status, "Retry-After", "30").retryAfterNanos()).isEqualTo(30 * SECOND);
    }

    @Test
    void retryAfterIsADate() {
        assertThat(read(429, "Retry-After", "Sun, 01 Mar 2026 12:00:45 GMT").retryAfterNanos())
                .isEqualTo(45 * SECOND);
    }

    /** The two obsolete formats of RFC 9110 that a recipient must accept. */
    @ParameterizedTest
    @ValueSource(strings = {"Sunday, 01-Mar-26 12:00:45 GMT", "Sun Mar  1 12:00:45 2026"})
    void retryAfterIsADateInAnOldFormat(String date) {
        assertThat(read(429, "Retry-After", date).retryAfterNanos()).isEqualTo(45 * SECOND);
    }

    @Test
    void milliSecondsAreMoreExactThanSeconds() {
        assertThat(read(429, "Retry-After", "2", "retry-after-ms", "1250").retryAfterNanos())
                .isEqualTo(1_250_000_000);
        assertThat(read(429, "Retry-After", "2", "retry-after-ms", "soon").retryAfterNanos())
                .isEqualTo(2 * SECOND);
    }

    @ParameterizedTest
    @CsvSource({
        "1m30s, 90000",
        "20ms, 20",
        "6m0s, 360000",
        "1h, 3600000",
        "1d2h3m4.5s, 93784500",
        "1s20ms, 1020",
        "2026-03-01T12:00:30Z, 30000",
        "2026-03-01T13:00:30+01:00, 30000",
        "1772366430.5, 30500",
        "1.25, 1250"
    })
    void aResetIsWrittenInManyWays(String reset, long millis) {
        assertThat(quota("X-RateLimit-Remaining", "7", "X-RateLimit-Reset", reset)
                        .resetNanos())
                .isEqualTo(millis * 1_000_000);
    }

    /** Each paragraph of the page: a service, the page where its answer is written down, its fields, and what they say. */
    @ParameterizedTest
    @MethodSource("answersOfServices")
    void theAnswersOfServicesAreReadRight(ServiceAnswer of) {
        ResponseLimits answer = readAt(of.now, of.status, of.fields.toArray(String[]::new));
        StringBuilder read = new StringBuilder("pause " + answer.retryAfterNanos() / 1_000_000);
        for (Quota quota : answer.quotas()) {
            read.append("; ").append(quota.remaining()).append(" of ").append(quota.quota());
            read.append(", window ").append(quota.windowNanos() < 0 ? -1 : quota.windowNanos() / 1_000_000);
            read.append(", reset ").append(quota.resetNanos() / 1_000_000);
            read.append(quota.ofCalls() ? "" : ", not of calls");
        }
        assertThat(read).hasToString(of.expected);
    }

    @Test
    void theAnswersOfTwentyServicesHaveValuesOfAPublicPage() throws IOException {
        List<ServiceAnswer> answers = answersOfServices();
        assertThat(answers)
                .allSatisfy(answer -> assertThat(answer.source)
                        .matches("(recorded|documented|names) in https://[^ ]+( \\(.+\\))?(; .+)?"));
        assertThat(answers.stream()
                        .filter(answer -> !answer.source.startsWith("names"))
                        .map(ServiceAnswer::service)
                        .distinct())
                .hasSizeGreaterThanOrEqualTo(20);
        assertThat(answers.stream()
                        .filter(answer -> answer.source.startsWith("recorded"))
                        .map(ServiceAnswer::service)
                        .distinct())
                .hasSizeGreaterThanOrEqualTo(8);
    }

    private record ServiceAnswer(
            String name, String source, int status, Instant now, List<String> fields, String expected) {

        private String service() {
            return name.split(",", 2)[0];
        }

        @Override
        public String toString() {
            return name;
        }
    }

    static List<ServiceAnswer> answersOfServices() throws IOException {
        try (InputStream page = ResponseHeadersTest.class.getResourceAsStream("answers-of-services.txt")) {
            String text = new String(page.readAllBytes(), StandardCharsets.UTF_8);
            return Stream.of(text.split("\n\n+"))
                    .filter(answer -> !answer.startsWith("#"))
                    .map(answer -> {
                        List<String> lines = answer.strip().lines().toList();
                        String[] fields = lines.subList(2, lines.size() - 1).stream()
                                .flatMap(line -> Stream.of(line.split(": ", 2)))
                                .toArray(String[]::new);
                        String[] first = lines.get(0).split(" / ", -1);
                        return new ServiceAnswer(
                                first[0],
                                lines.get(1),
                                Integer.parseInt(first[1]),
                                first.length > 2 ? Instant.parse(first[2]) : NOW,
                                List.of(fields),
                                lines.get(lines.size() - 1).substring(2));
                    })
                    .toList();
        }
    }

    @Test
    void aDateIsReadByTheClockOfTheServer() {
        assertThat(read(429, "Retry-After", "Sun, 01 Mar 2026 11:00:45 GMT", "Date", "Sun, 01 Mar 2026 11:00:00 GMT")
                        .retryAfterNanos())
                .isEqualTo(45 * SECOND);
    }

    @Test
    void retryAfterOfOtherAnswersIsIgnored() {
        assertThat(read(200, "Retry-After", "30")).isSameAs(ResponseLimits.SILENT);
        assertThat(read(301, "Retry-After", "30")).isSameAs(ResponseLimits.SILENT);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-1",
                "",
                " ",
                "1.5.5",
                "1.",
                "1e3",
                "+3",
                "99999999999",
                "9999999999999999999999",
                "soon",
                "0x10",
                "٣",
                "Sun, 01 Mar 2025 11:59:59 GMT",
                "Sun, 01 Mar 9999 12:00:00 GMT",
                "Mon, 99 Foo 2026 99:00:00 GMT",
                "30, 40"
            })
    void nonsenseInRetryAfterIsIgnored(String value) {
        assertThat(read(429, "Retry-After", value)).isSameAs(ResponseLimits.SILENT);
    }

    @Test
    void twoOfThemAreIgnored() {
        assertThat(read(429, "Retry-After", "30", "Retry-After", "60")).isSameAs(ResponseLimits.SILENT);
        assertThat(read(200, "X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "30", "X-RateLimit-Reset", "60"))
                .isSameAs(ResponseLimits.SILENT);
        assertThat(read(200, "RateLimit", "\"a\";r=1;t=5, \"a\";r=2;t=6")).isSameAs(ResponseLimits.SILENT);
    }

    @Test
    void theDraftTellsEachQuota() {
        ResponseLimits answer = read(
                200,
                "RateLimit-Policy",
                "\"burst\";q=100;w=60, \"daily\";q=1000;w=86400;pk=:c2VjcmV0:",
                "RateLimit",
                "\"burst\";r=50;t=30",
                "ratelimit",
                "daily;r=9");
        assertThat(answer.quotas())
                .containsExactly(
                        new Quota("burst", 100, 50, 60 * SECOND, 30 * SECOND),
                        new Quota("daily", 1000, 9, 86_400 * SECOND, 86_400 * SECOND));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\"a\";r=-1;t=5",
                "\"a\";r=1;t=-5",
                "\"a\";r=1;t=99999999999",
                "\"a\";r=1",
                "\"a\";t=5",
                "\"a\";r=1.5;t=5",
                "\"a\";r=x;t=5",
                "\"a\";r=\"1\";t=5",
                "\"a;r=1;t=5",
                "a;r=1;t=5,",
                "limit=10, remaining=5",
                "\"a\";r=1;t=9999999999999999",
                "(\"a\");r=1;t=5",
                "",
                "\"ä\";r=1;t=5",
                "\"a\";r=1;t=5;"
            })
    void nonsenseInTheDraftIsIgnored(String value) {
        assertThat(read(200, "RateLimit", value)).isSameAs(ResponseLimits.SILENT);
    }

    @Test
    void callsInFlightAndBytesAreNoPace() {
        assertThat(read(
                        200,
                        "RateLimit-Policy",
                        "\"a\";q=5;w=1;qu=\"concurrent-requests\", \"b\";q=5;w=1;qu=\"content-bytes\"",
                        "RateLimit",
                        "\"a\";r=0, \"b\";r=0;t=5"))
                .isSameAs(ResponseLimits.SILENT);
    }

    @Test
    void whatThisLibraryWritesIsRead() {
        ManualTicker ticker = new ManualTicker();
        Limit limit = Limit.of("a \"b\" ü", Algorithm.TOKEN_BUCKET)
                .rate("2/m")
                .burst(10)
                .build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
        LimitHeaders fields = new LimitHeaders();
        fields.decided(limit, limiter.reserve(null, 3, 0).decision());
        List<String> written = new ArrayList<>();
        fields.write(
                new LimitHeaders.Style(HeaderStyle.STANDARD, ticker),
                (name, value) -> written.addAll(List.of(name, value)));
        assertThat(quota(written.toArray(String[]::new)))
                .isEqualTo(new Quota("a \"b\" %C3%BC", 10, 7, 300 * SECOND, 90 * SECOND));
        written.clear();
        fields.write(
                new LimitHeaders.Style(HeaderStyle.LEGACY, ticker),
                (name, value) -> written.addAll(List.of(name, value)));
        assertThat(quota(written.toArray(String[]::new)))
                .isEqualTo(new Quota("x-ratelimit-", 10, 7, Quota.UNKNOWN, 90 * SECOND));
    }

    @ParameterizedTest
    @CsvSource({
        "30, 30", // seconds from now
        "3600, 3600",
        "1772366430, 30", // seconds since 1970
        "1772366430000, 30", // milliseconds since 1970
        "1775000000, 2633600"
    })
    void theDialectsOfAResetAreToldApart(String reset, long seconds) {
        assertThat(quota("X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", reset))
                .isEqualTo(new Quota("x-ratelimit-", 60, 7, Quota.UNKNOWN, seconds * SECOND));
        assertThat(quota("x-rate-limit-remaining", "7", "x-rate-limit-reset", reset)
                        .resetNanos())
                .isEqualTo(seconds * SECOND);
    }

    @Test
    void aResetSince1970IsReadByTheClockOfTheServer() {
        assertThat(quota(
                                "X-RateLimit-Remaining",
                                "7",
                                "X-RateLimit-Reset",
                                "1772366430",
                                "Date",
                                "Sun, 01 Mar 2026 12:00:20 GMT")
                        .resetNanos())
                .isEqualTo(10 * SECOND);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-30",
                "",
                "soon",
                "1000000000",
                "40000000",
                "9999999999",
                "999999999999999",
                "12.",
                "5m5h",
                "2025-02-27T11:59:59Z",
                "2026-03-01T12:00:30",
                "99999999999999999999"
            })
    void nonsenseInADialectIsIgnored(String reset) {
        assertThat(read(200, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset))
                .isSameAs(ResponseLimits.SILENT);
    }

    /** Servers write whole seconds, and some round down. What is over has begun anew, or does so now. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "0",
                "0.0",
                "0s",
                "0ms",
                "0m0s",
                "1772366400",
                "1772366399",
                "1772366399000",
                "1741000000",
                "2026-03-01T11:59:59Z",
                "Sun, 01 Mar 2026 11:59:59 GMT"
            })
    void aResetThatIsDueIsWithinASecond(String reset) {
        assertThat(quota("X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset))
                .isEqualTo(new Quota("x-ratelimit-", 60, 0, Quota.UNKNOWN, SECOND));
    }

    @Test
    void aResetOfTheDraftThatIsDueIsWithinASecond() {
        assertThat(quota("RateLimit-Policy", "\"a\";q=60;w=60", "RateLimit", "\"a\";r=0;t=0"))
                .isEqualTo(new Quota("a", 60, 0, 60 * SECOND, SECOND));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "0.0", "Sun, 01 Mar 2026 12:00:00 GMT", "Sun, 01 Mar 2026 11:59:59 GMT"})
    void aPauseThatIsDueLastsASecond(String retryAfter) {
        assertThat(read(429, "Retry-After", retryAfter).retryAfterNanos()).isEqualTo(SECOND);
    }

    /** As services do that limit nobody, or not this caller. */
    @Test
    void aSuccessOfAQuotaOfZeroIsIgnored() {
        String[] zeros = {"X-RateLimit-Limit", "0", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0"};
        assertThat(read(200, zeros)).isSameAs(ResponseLimits.SILENT);
        assertThat(read(429, zeros).quotas()).containsExactly(new Quota("x-ratelimit-", 0, 0, Quota.UNKNOWN, SECOND));
    }

    @Test
    void aDialectWithoutRemainingOrResetIsIgnored() {
        assertThat(read(200, "X-RateLimit-Limit", "60", "X-RateLimit-Reset", "30"))
                .isSameAs(ResponseLimits.SILENT);
        assertThat(read(200, "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0"))
                .isSameAs(ResponseLimits.SILENT);
        assertThat(read(200, "X-RateLimit-Remaining", "-1", "X-RateLimit-Reset", "30"))
                .isSameAs(ResponseLimits.SILENT);
    }

    @Test
    void randomTextsNeverFailAndStayInRange() {
        Random random = new Random(33);
        String alphabet = "\"\\;=,:?@%()*-. 0123456789rtqwRateLimitABCxyzü\u0000\t";
        String[] names = {
            "Retry-After", "RateLimit", "RateLimit-Policy", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Date"
        };
        String[] seeds = {"\"a\";r=1;t=5", "\"a\";q=5;w=10", "1772366430", "Sun, 01 Mar 2026 12:00:45 GMT", "30"};
        int understood = 0;
        for (int i = 0; i < 4_000; i++) {
            String[] fields = new String[2 * names.length];
            for (int f = 0; f < names.length; f++) {
                fields[2 * f] = names[f].toLowerCase(Locale.ROOT);
                StringBuilder value = new StringBuilder(seeds[random.nextInt(seeds.length)]);
                for (int changes = random.nextInt(3); changes > 0; changes--) {
                    value.insert(
                            random.nextInt(value.length() + 1), alphabet.charAt(random.nextInt(alphabet.length())));
                    value.deleteCharAt(random.nextInt(value.length()));
                }
                fields[2 * f + 1] = value.toString();
            }
            ResponseLimits answer = read(429, fields);
            long year = Duration.ofDays(366).toNanos();
            assertThat(answer.retryAfterNanos()).isBetween(0L, year);
            for (Quota quota : answer.quotas()) {
                understood++;
                assertThat(quota.remaining()).isNotNegative();
                assertThat(quota.resetNanos()).isBetween(1L, year);
                assertThat(quota.windowNanos()).isBetween(-1L, year);
                assertThat(quota.quota()).isGreaterThanOrEqualTo(-1);
            }
        }
        assertThat(understood).isPositive();
    }
}
