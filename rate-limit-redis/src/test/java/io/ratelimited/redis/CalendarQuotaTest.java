package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.fail;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.calendar.CalendarPeriod;
import io.ratelimited.core.calendar.NaiveCalendar;
import io.ratelimited.core.testing.ManualTicker;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.List;
import java.util.Random;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Quotas per week, month and year, as the script computes their windows. */
@Tag("once")
@Tag("slow")
class CalendarQuotaTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static final Duration MICRO = Duration.ofNanos(1_000);

    static List<String> zones() {
        return NaiveCalendar.ZONES;
    }

    /** Of 40 years: one window in about 200, drawn at random among those of every first day, and those that begin as the clocks are moved. */
    @ParameterizedTest
    @MethodSource("zones")
    void windowsBeginAndEndAsJavaTimeSays(String zone) {
        Random random = new Random(zone.hashCode());
        check(zone, window -> random.nextInt(200) == 0);
    }

    /** One window in {@code -Dcalendar.part} of 40 years, with 1 all of them. */
    @ParameterizedTest
    @MethodSource("zones")
    @Tag("proof")
    void manyWindowsOf40YearsBeginAndEndAsJavaTimeSays(String zone) {
        int part = Integer.getInteger("calendar.part", 8);
        Random random = new Random();
        check(zone, window -> random.nextInt(part) == 0);
    }

    private static void check(String zone, IntPredicate wanted) {
        NaiveCalendar calendar = new NaiveCalendar(zone);
        ManualTicker ticker = RedisServers.ticker();
        RedisBackend backend = REDIS.backend(ticker);
        Stream.of(CalendarPeriod.values())
                .forEach(period -> firstDays(period).forEach(startsOn -> {
                    Limit limit = Limit.of("quota from " + startsOn + " every " + period, Algorithm.FIXED_WINDOW)
                            .rate("3/" + period)
                            .zone(ZoneId.of(zone))
                            .startsOn(startsOn)
                            .build();
                    List<Instant> begins = calendar.begins(period, startsOn);
                    ticker.setWallClock(begins.get(0));
                    checkEach(calendar, begins, ticker, backend.limiter(limit, RedisLimitOptions.DEFAULTS), wanted);
                }));
    }

    private static Duration left(RateLimiter limiter, String key) {
        limiter.reserve(key, 3, 0);
        return limiter.peek(key, 1, 0).reset();
    }

    private static Stream<String> firstDays(CalendarPeriod period) {
        return switch (period) {
            case WEEK -> Stream.of(DayOfWeek.values()).map(DayOfWeek::name);
            case MONTH -> IntStream.rangeClosed(1, 31).mapToObj(Integer::toString);
            case YEAR -> Stream.of("01-01", "02-28", "02-29", "03-01", "04-01", "10-31", "11-01", "12-31");
        };
    }

    /** The first and the last microsecond of a window, the first of the next one, and when the clocks have been moved. */
    private static void checkEach(
            NaiveCalendar calendar,
            List<Instant> begins,
            ManualTicker ticker,
            RateLimiter limiter,
            IntPredicate wanted) {
        Instant now = begins.get(0);
        for (int i = 0; i + 1 < begins.size(); i++) {
            Instant begin = begins.get(i);
            Instant end = begins.get(i + 1);
            Instant moved = calendar.afterMove(begin, end);
            boolean soon = Duration.between(begin, moved).compareTo(Duration.ofHours(2)) < 0;
            if (!wanted.test(i) && !soon) {
                continue;
            }
            ticker.advance(Duration.between(now, begin));
            Decision first = limiter.reserve("k", 3, 0).decision();
            boolean holds = true;
            now = begin;
            if (moved.isBefore(end)) {
                ticker.advance(Duration.between(begin, moved));
                now = moved;
                Duration left = Duration.between(moved, end);
                // The window of the other caller is seen for the first time.
                holds = left.equals(left(limiter, "k")) && left.equals(left(limiter, "late"));
            }
            ticker.advance(Duration.between(now, end).minus(MICRO));
            Decision last = limiter.peek("k", 1, 0);
            ticker.advance(MICRO);
            now = end;
            Decision next = limiter.peek("k", 1, 0);
            if (!holds
                    || !first.admitted()
                    || !first.reset().equals(Duration.between(begin, end))
                    || !MICRO.equals(last.retryAfter())
                    || !MICRO.equals(last.reset())
                    || next.remaining() != 3) {
                fail("%s from %s to %s: %s, %s, %s", limiter.limit(), begin, end, first, last, next);
            }
        }
    }
}
