package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import io.ratelimited.core.calendar.CalendarPeriod;
import io.ratelimited.core.calendar.NaiveCalendar;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Quotas per week, month and year, in memory. */
@Tag("once")
@Tag("slow")
class CalendarQuotaTest {

    private static final String START = "2026-01-20T12:00:00Z";

    static List<String> zones() {
        return NaiveCalendar.ZONES;
    }

    private static Limit.Builder limit(String rate) {
        return Limit.of("quota", Algorithm.FIXED_WINDOW).rate(rate);
    }

    /** 40 years: 31 days of a month, 7 of a week, and those of a year around leap days and moved clocks. */
    @ParameterizedTest
    @MethodSource("zones")
    void everyWindowOf40YearsBeginsAndEndsAsJavaTimeSays(String zone) {
        NaiveCalendar calendar = new NaiveCalendar(zone);
        for (CalendarPeriod period : CalendarPeriod.values()) {
            firstDays(period).forEach(startsOn -> {
                Limit limit = limit("3/" + period)
                        .zone(ZoneId.of(zone))
                        .startsOn(startsOn)
                        .build();
                checkEach(calendar, calendar.begins(period, startsOn), limit);
            });
        }
    }

    private static Stream<String> firstDays(CalendarPeriod period) {
        return switch (period) {
            case WEEK -> Stream.of(DayOfWeek.values()).map(DayOfWeek::name);
            case MONTH -> IntStream.rangeClosed(1, 31).mapToObj(Integer::toString);
            case YEAR -> Stream.of("01-01", "02-28", "02-29", "03-01", "04-01", "10-31", "11-01", "12-31");
        };
    }

    private static void checkEach(NaiveCalendar calendar, List<Instant> begins, Limit limit) {
        ManualTicker ticker = new ManualTicker(0, begins.get(0));
        RateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
        for (int i = 0; i + 1 < begins.size(); i++) {
            boolean admitted = limiter.tryAcquire(null, 3);
            Instant begin = begins.get(i);
            Instant end = begins.get(i + 1);
            boolean each =
                    Duration.between(begin, end).equals(limiter.peek(null, 1, 0).retryAfter());
            Instant moved = calendar.afterMove(begin, end);
            if (moved.isBefore(end)) {
                ticker.setWallClock(moved);
                each &= Duration.between(moved, end)
                        .equals(limiter.peek(null, 1, 0).retryAfter());
                limiter.tryAcquire(moved, 3);
                each &= Duration.between(moved, end)
                        .equals(limiter.peek(moved, 1, 0).reset());
            }
            ticker.setWallClock(end.minusNanos(1));
            Decision last = limiter.peek(null, 1, 0);
            each &= Duration.ofNanos(1).equals(last.retryAfter())
                    && Duration.ofNanos(1).equals(last.reset());
            if (!admitted || !each) {
                fail("%s is not from %s to %s", limit, begin, end);
            }
            ticker.setWallClock(end);
        }
    }

    /** Also where a limiter is made in the middle of a window, and of the hour that the clocks show twice. */
    @Test
    void clocksThatAreSetBackOverMidnightReopenNoWindow() {
        // At 00:01 of November 1 it is 23:01 of October 31 again.
        Instant midnight = Instant.parse("2009-11-01T02:30:00Z");
        ManualTicker ticker = new ManualTicker(0, midnight.plus(Duration.ofMinutes(30)));
        Limit limit = limit("3/month").zone(ZoneId.of("America/St_Johns")).build();
        RateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
        assertThat(limiter.tryAcquire(null, 3)).isTrue();
        assertThat(limiter.peek(null, 1, 0).retryAfter())
                .isEqualTo(
                        Duration.between(midnight.plus(Duration.ofMinutes(30)), Instant.parse("2009-12-01T03:30:00Z")));
    }

    @Test
    void aChangeOfTheNumberKeepsWhatWasSpent() {
        InMemoryRateLimiter limiter = spent(9);
        limiter.update(limiter.limit().toBuilder().rate("12/month").build());
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(3);
        limiter.update(limiter.limit().toBuilder().rate("5/month").build());
        assertThat(limiter.peek(null, 1, 0).remaining()).isZero();
        limiter.update(limiter.limit().toBuilder().startsOn("01").build());
        assertThat(limiter.peek(null, 1, 0).remaining()).as("the default").isZero();
    }

    @Test
    void anotherPeriodFirstDayOrZoneBeginsAnew() {
        List<Limit.Builder> others = List.of(
                limit("10/year"),
                limit("10/week"),
                limit("10/31d"),
                limit("10/month").startsOn("15"),
                limit("10/month").zone(ZoneId.of("Asia/Tokyo")));
        for (Limit.Builder other : others) {
            InMemoryRateLimiter limiter = spent(9);
            limiter.update(other.build());
            assertThat(limiter.peek(null, 1, 0).remaining())
                    .as(limiter.limit().toString())
                    .isEqualTo(10);
        }
    }

    private static InMemoryRateLimiter spent(long permits) {
        InMemoryRateLimiter limiter =
                new InMemoryRateLimiter(limit("10/month").build(), new ManualTicker(0, Instant.parse(START)), 10);
        assertThat(limiter.tryAcquire(null, permits)).isTrue();
        return limiter;
    }

    @Test
    void theLargestNumberFitsIntoTheLastWindowThatTheClockReaches() {
        for (String rate : List.of("302400000000000/week", "1000000000000000/month", "1000000000000000/year")) {
            long largest = Rate.parse(rate).permits();
            for (String at : List.of("1678-01-01T00:00:00Z", START, "2262-04-11T00:00:00Z")) {
                ManualTicker ticker = new ManualTicker(0, Instant.parse(at));
                RateLimiter limiter = new InMemoryRateLimiter(limit(rate).build(), ticker, 10);
                assertThat(limiter.tryAcquire(null, largest - 1)).isTrue();
                assertThat(limiter.tryAcquire(null, 1)).isTrue();
                assertThat(limiter.tryAcquire(null, 1)).as("%s at %s", rate, at).isFalse();
                assertThat(limiter.peek(null, 1, 0).retryAfter()).isPositive();
            }
        }
    }
}
