package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.fields.HeaderStyle;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LimitHeadersTest {

    private static final long BYTES = 320;

    private final LimitHeaders fields = new LimitHeaders();
    private final ManualTicker ticker = new ManualTicker();

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "TOKEN_BUCKET   | 100/s      | 200  | 200 | 2",
                "TOKEN_BUCKET   | 5/m        |      | 5   | 60",
                "TOKEN_BUCKET   | 3/s        | 10   | 10  | 4",
                "GCRA           | 20/500ms   |      | 20  | 1",
                "LEAKY_BUCKET   | 10/s       | 25   | 1   | 1",
                "LEAKY_BUCKET   | 5/m        |      | 1   | 12",
                "FIXED_WINDOW   | 5000/d     |      | 5000 | 86400",
                "SLIDING_WINDOW | 100/PT1M   |      | 100 | 60",
                "SLIDING_LOG    | 5/100ms    |      | 5   | 1",
                "SMOOTH_BURSTY  | 50/s       |      | 51  | 2",
                "SMOOTH_BURSTY  | 50/s       | 0    | 1   | 1",
                "SMOOTH_BURSTY  | 5/s        | 20   | 21  | 5",
                "SMOOTH_BURSTY  | 3/2s       |      | 2   | 2",
                "SMOOTH_BURSTY  | 6/m        |      | 1   | 10",
                "TOKEN_BUCKET   | 1000000000000000/3650d | 1000000000000000 | 999999999999999 | 315360000"
            })
    void quotaIsWhatMayGoAtOnceAndTheWindowRefillsIt(
            Algorithm algorithm, String rate, Long burst, long quota, long window) {
        Limit.Builder limit = Limit.of("x", algorithm).rate(rate);
        fields.applies((burst == null ? limit : limit.burst(burst)).build());

        assertThat(policies().get("x")).isEqualTo(Map.of("q", quota, "w", window));
    }

    /** In Berlin, whose clocks are moved in March and October. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "10/month | 2026-01-31T22:59:59.999999999Z | 2678400 | 1",
                "10/month | 2026-01-31T23:00:00Z | 2419200 | 2419200", // of February
                "10/month | 2026-02-28T22:59:58.5Z | 2419200 | 2",
                "10/month | 2026-03-15T00:00:00Z | 2674800 | 1461600", // an hour less
                "10/month | 2026-10-15T00:00:00Z | 2682000 | 1465200", // an hour more
                "10/year  | 2028-01-01T00:00:00Z | 31622400 | 31618800",
                "10/week  | 2026-06-01T00:00:00Z | 604800 | 597600"
            })
    void windowOfTheCalendarIsAsLongAsThePresentOne(String rate, Instant now, long window, long left) {
        Limit limit = Limit.of("x", Algorithm.FIXED_WINDOW)
                .rate(rate)
                .zone(ZoneId.of("Europe/Berlin"))
                .build();
        ticker.setWallClock(now);
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
        fields.decided(limit, limiter.reserve(null, 1, 0).decision());

        assertThat(policies().get("x")).isEqualTo(Map.of("q", 10L, "w", window));
        assertThat(states().get("x")).isEqualTo(Map.of("r", 9L, "t", left));
    }

    @Test
    void aClosedQuotaOfTheCalendarHasNoWindow() {
        fields.applies(Limit.of("x", Algorithm.FIXED_WINDOW).rate("0/month").build());

        assertThat(policies().get("x")).isEqualTo(Map.of("q", 0L));
    }

    @Test
    void aWarmUpGrantsOneCallAtATime() {
        fields.applies(Limit.of("x", Algorithm.WARM_UP)
                .rate("50/s")
                .warmup(Duration.ofSeconds(10))
                .build());

        assertThat(policies().get("x")).isEqualTo(Map.of("q", 1L, "w", 1L));
    }

    /** Of every algorithm, but calls in flight, which begin with all that they have. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "TOKEN_BUCKET   | 5/s   | 20",
                "GCRA           | 5/s   | 20",
                "LEAKY_BUCKET   | 5/s   | 20",
                "SMOOTH_BURSTY  | 5/s   |",
                "SMOOTH_BURSTY  | 5/s   | 0",
                "SMOOTH_BURSTY  | 5/m   |",
                "SMOOTH_BURSTY  | 3/2s  |",
                "WARM_UP        | 5/s   |",
                "FIXED_WINDOW   | 5/s   |",
                "SLIDING_WINDOW | 5/s   |",
                "SLIDING_LOG    | 5/s   |"
            })
    void whatIsLeftOfARestedLimitIsItsQuota(Algorithm algorithm, String rate, Long burst) {
        Limit.Builder builder = Limit.of("x", algorithm).rate(rate);
        if (burst != null) {
            builder.burst(burst);
        }
        if (algorithm == Algorithm.WARM_UP) {
            builder.warmup(Duration.ofSeconds(10));
        }
        Limit limit = builder.build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
        limiter.tryAcquire(null, 1);
        ticker.advance(Duration.ofHours(1));
        long quota = QuotaPolicy.of(limit).quota();
        Decision rested = limiter.peek(null, 1, 0);
        assertThat(rested.remaining()).isEqualTo(quota);
        assertThat(rested.reset()).isZero();
        for (int calls = 0; calls <= quota; calls++) {
            Decision decision =
                    limiter.reserve(null, 1, Duration.ofHours(1).toNanos()).decision();
            assertThat(decision.remaining()).isLessThan(quota);
        }
        assertThat(limiter.peek(null, 1, 0).remaining()).isZero();
    }

    @Test
    void callsInFlightHaveAUnitAndNoWindow() {
        Limit limit = Limit.of("x", Algorithm.CONCURRENCY).maxConcurrent(20).build();
        fields.decided(limit, new InMemoryRateLimiter(limit).reserve(null, 1, 0).decision());

        assertThat(policies().get("x")).isEqualTo(Map.of("q", 20L, "qu", "concurrent-requests"));
        assertThat(states().get("x")).isEqualTo(Map.of("r", 19L));
    }

    @Test
    void aClosedLimitHasNoQuotaAndNoWindow() {
        fields.applies(Limit.of("x", Algorithm.TOKEN_BUCKET).rate("0/s").build());

        assertThat(policies().get("x")).isEqualTo(Map.of("q", 0L));
    }

    @Test
    void anUnlimitedLimitIsNotToldOf() {
        Limit limit = Limit.of("x", Algorithm.TOKEN_BUCKET).rate("unlimited").build();
        fields.decided(limit, admitted("x", Long.MAX_VALUE, Duration.ZERO));

        assertThat(written(HeaderStyle.STANDARD)).isEmpty();
        assertThat(written(HeaderStyle.LEGACY)).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({
        "search, search",
        "'say \"hi\" \\o/', 'say \"hi\" \\o/'",
        "größe, gr%C3%B6%C3%9Fe",
        "50%, 50%25",
        "'OrderController.place(String,int)#2', 'OrderController.place(String,int)#2'"
    })
    void namesAreStrings(String name, String told) {
        fields.applies(Limit.of(name, Algorithm.TOKEN_BUCKET).rate("1/s").build());

        assertThat(policies()).containsOnlyKeys(told);
    }

    @Test
    void controlCharactersOfANameDoNotEndTheLine() {
        fields.applies(Limit.of("a\r\nSet-Cookie: b", Algorithm.TOKEN_BUCKET)
                .rate("1/s")
                .build());

        assertThat(policies()).containsOnlyKeys("a%0D%0ASet-Cookie: b");
    }

    @Test
    void theLastDecisionOfALimitCounts() {
        Limit limit = bucket("x");
        fields.decided(limit, admitted("x", 4, Duration.ofSeconds(1)));
        fields.decided(limit, admitted("x", 3, Duration.ofSeconds(2)));
        fields.applies(limit);

        assertThat(states()).isEqualTo(Map.of("x", Map.of("r", 3L, "t", 2L)));
    }

    @Test
    void timesAreRoundedUp() {
        fields.decided(bucket("x"), admitted("x", 4, Duration.ofNanos(1_000_000_001)));

        assertThat(states().get("x")).containsEntry("t", 2L);
    }

    @Test
    void noTimeIsLaterThanTheRetryAfterOfTheSameLimit() {
        fields.decided(bucket("daily"), admitted("daily", 4, Duration.ofHours(5)));
        fields.decided(bucket("soon"), admitted("soon", 4, Duration.ofMillis(1)));
        fields.decided(bucket("x"), refused("x", Duration.ofMillis(1100), Duration.ofSeconds(30)));
        fields.decided(bucket("y"), refused("y", Duration.ofSeconds(20), Duration.ofSeconds(30)));

        assertThat(states())
                .isEqualTo(Map.of(
                        "daily", Map.of("r", 4L, "t", 18_000L),
                        "soon", Map.of("r", 4L, "t", 1L),
                        "x", Map.of("r", 0L, "t", 2L),
                        "y", Map.of("r", 0L, "t", 20L)));
    }

    @Test
    void theTimeIsThatOfTheWholeQuotaAndOfARefusedCallThatOfTheCall() {
        ManualTicker ticker = new ManualTicker();
        Limit limit = Limit.of("x", Algorithm.TOKEN_BUCKET).rate("4/m").build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
        fields.decided(limit, limiter.reserve(null, 4, 0).decision());
        assertThat(states().get("x")).isEqualTo(Map.of("r", 0L, "t", 60L));
        fields.decided(limit, limiter.reserve(null, 1, 0).decision());
        assertThat(states().get("x")).isEqualTo(Map.of("r", 0L, "t", 15L));

        ticker.advance(Duration.ofSeconds(15));
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        ticker.advance(Duration.ofSeconds(60));
        assertThat(limiter.tryAcquire(null, 4)).isTrue();
    }

    @Test
    void retryAfterIsAtLeastASecondAndAbsentWhenNobodyKnows() {
        assertThat(LimitHeaders.retryAfter(refused("x", Duration.ofNanos(1), Duration.ZERO)))
                .isEqualTo(1);
        assertThat(LimitHeaders.retryAfter(refused("x", Duration.ofNanos(1_000_000_001), Duration.ZERO)))
                .isEqualTo(2);
        assertThat(LimitHeaders.retryAfter(refused("x", null, Duration.ZERO))).isNull();
        assertThat(LimitHeaders.retryAfter(admitted("x", 1, Duration.ZERO))).isNull();
    }

    @Test
    void theOldFieldsTellOfTheTightestLimit() {
        fields.decided(bucket("wide"), admitted("wide", 4, Duration.ofSeconds(3)));
        fields.decided(bucket("tight"), admitted("tight", 2, Duration.ofSeconds(2)));

        assertThat(written(HeaderStyle.LEGACY))
                .isEqualTo(Map.of("X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "2", "X-RateLimit-Reset", "2"));
    }

    @Test
    void theOldFieldsTellOfTheLimitThatRefused() {
        fields.decided(bucket("spent"), admitted("spent", 0, Duration.ofSeconds(3)));
        fields.decided(bucket("heavy"), refused("heavy", Duration.ofSeconds(1), Duration.ofSeconds(4), 3));

        assertThat(written(HeaderStyle.LEGACY))
                .isEqualTo(Map.of("X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "1"));
    }

    @Test
    void ofSeveralLimitsThatRefusedTheOldFieldsHaveTheLongestTime() {
        fields.decided(bucket("soon"), refused("soon", Duration.ofSeconds(1), Duration.ofSeconds(4)));
        fields.decided(bucket("late"), refused("late", Duration.ofSeconds(9), Duration.ofSeconds(9)));
        fields.decided(bucket("sooner"), refused("sooner", Duration.ofMillis(1), Duration.ofSeconds(2)));

        assertThat(written(HeaderStyle.LEGACY)).containsEntry("X-RateLimit-Reset", "9");
    }

    @Test
    void aLoneRetryAtTheTimeToldIsAdmitted() {
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket("x"), ticker, 10);
        limiter.reserve(null, 5, 0);
        Decision refusal = limiter.reserve(null, 3, 0).decision();
        Long seconds = LimitHeaders.retryAfter(refusal);

        ticker.advance(Duration.ofSeconds(seconds == null ? 0 : seconds));

        assertThat(limiter.tryAcquire(null, 3)).isTrue();
    }

    /** Of a response with one limit: its entry, and one text a field. What is the same in every response is kept. */
    @Test
    void theFieldsOfADecisionAllocateLittle() {
        Limit limit = bucket("search");
        Decision decision = admitted("search", 4, Duration.ofSeconds(3));
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        LimitHeaders.Style standard = new LimitHeaders.Style(HeaderStyle.STANDARD, ticker);
        long fewest = Long.MAX_VALUE;
        for (int round = 0; round < 10; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 1_000; i++) {
                LimitHeaders response = new LimitHeaders();
                response.decided(limit, decision);
                response.write(standard, (name, value) -> {});
            }
            fewest = Math.min(fewest, (threads.getCurrentThreadAllocatedBytes() - before) / 1_000);
        }
        assertThat(fewest).isLessThanOrEqualTo(BYTES);
    }

    private static Limit bucket(String name) {
        return Limit.of(name, Algorithm.TOKEN_BUCKET).rate("5/m").build();
    }

    private static Decision admitted(String limit, long remaining, Duration reset) {
        return new Decision(limit, true, Duration.ZERO, null, false, remaining, reset, Decision.Source.MEMORY);
    }

    private static Decision refused(String limit, Duration retryAfter, Duration reset) {
        return refused(limit, retryAfter, reset, 0);
    }

    private static Decision refused(String limit, Duration retryAfter, Duration reset, long remaining) {
        return new Decision(limit, false, Duration.ZERO, retryAfter, false, remaining, reset, Decision.Source.MEMORY);
    }

    private Map<String, String> written(HeaderStyle style) {
        Map<String, String> written = new TreeMap<>();
        fields.write(new LimitHeaders.Style(style, ticker), written::put);
        return written;
    }

    private Map<String, Map<String, Object>> policies() {
        return StructuredList.parse(written(HeaderStyle.STANDARD).get("RateLimit-Policy"));
    }

    private Map<String, Map<String, Object>> states() {
        return StructuredList.parse(written(HeaderStyle.STANDARD).get("RateLimit"));
    }
}
