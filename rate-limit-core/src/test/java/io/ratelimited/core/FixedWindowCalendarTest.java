package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.zone.ZoneOffsetTransition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** FIXED_WINDOW follows the calendar of its zone. */
class FixedWindowCalendarTest {

    private static InMemoryRateLimiter limiter(String rate, String zone, ManualTicker ticker) {
        Limit limit = Limit.of("calendar", Algorithm.FIXED_WINDOW)
                .rate(rate)
                .zone(ZoneId.of(zone))
                .build();
        return new InMemoryRateLimiter(limit, ticker, 10);
    }

    private static ManualTicker at(String local, String zone) {
        return new ManualTicker(
                0, LocalDateTime.parse(local).atZone(ZoneId.of(zone)).toInstant());
    }

    @ParameterizedTest
    @CsvSource({
        // The day on which summer time begins, the day on which it ends, and a day of 24 hours.
        "Europe/Berlin, 2026-03-29, 23",
        "Europe/Berlin, 2026-10-25, 25",
        "Europe/Berlin, 2026-06-01, 24",
        "America/New_York, 2026-03-08, 23",
        "America/New_York, 2026-11-01, 25",
        "America/New_York, 2026-12-31, 24",
        "Asia/Kolkata, 2026-01-01, 24",
        // Midnight itself is skipped: the day begins at one.
        "America/Sao_Paulo, 2018-11-04, 23",
        "Pacific/Auckland, 1969-12-31, 24",
    })
    void aDayLastsFromMidnightToMidnightOfItsZone(String zone, String day, long hours) {
        Instant start = LocalDate.parse(day).atStartOfDay(ZoneId.of(zone)).toInstant();
        ManualTicker ticker = new ManualTicker(0, start.minusNanos(1));
        RateLimiter limiter = limiter("2/d", zone, ticker);
        assertThat(limiter.tryAcquire(null, 2)).isTrue();
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofNanos(1));
        ticker.advanceNanos(1);
        assertThat(limiter.tryAcquire(null, 2)).isTrue();
        Duration length = Duration.ofHours(hours);
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(length);
        assertThat(limiter.peek(null, 1, 0).reset()).isEqualTo(length);
        ticker.advance(length.minusNanos(1));
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
        ticker.advanceNanos(1);
        assertThat(limiter.tryAcquire(null, 2)).isTrue();
    }

    @Test
    void theHourThatComesTwiceIsTwoWindows() {
        ManualTicker ticker = at("2026-10-25T02:30:00", "Europe/Berlin");
        RateLimiter limiter = limiter("1/h", "Europe/Berlin", ticker);
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        ticker.advance(Duration.ofMinutes(29));
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
        ticker.advance(Duration.ofMinutes(1));
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        ticker.advance(Duration.ofHours(1));
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
    }

    @ParameterizedTest
    @CsvSource({
        "Asia/Kolkata, 2026-01-01T10:00:00",
        "UTC, 2026-01-01T10:00:00",
        "Europe/Berlin, 2026-01-01T10:00:00",
        // Another offset than in 1970.
        "Asia/Kathmandu, 2026-01-01T10:00:00",
        "Africa/Monrovia, 2026-01-01T10:00:00",
        // Summer time moves the clocks by half an hour.
        "Australia/Lord_Howe, 2026-01-01T10:00:00",
        "Australia/Lord_Howe, 2026-07-01T10:00:00",
    })
    void anHourBeginsOnTheHourOfItsZone(String zone, String local) {
        ManualTicker ticker = at(local, zone);
        RateLimiter limiter = limiter("1/h", zone, ticker);
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofHours(1));
    }

    @ParameterizedTest
    @CsvSource({
        "Europe/Berlin, 2026-07-01T12:00:00, 12h, 12",
        "Europe/Berlin, 2026-03-29T00:00:00, 12h, 11", // summer time begins
        "Europe/Berlin, 2026-10-25T00:00:00, 12h, 13", // and ends
        "America/Sao_Paulo, 2018-11-03T12:00:00, 12h, 12", // and begins at midnight
        "Asia/Kathmandu, 2026-01-01T18:00:00, 6h, 6",
    })
    void aPartOfADayBeginsWhereTheClocksOfItsZoneShowIt(String zone, String local, String period, long hours) {
        ManualTicker ticker = at(local, zone);
        RateLimiter limiter = limiter("1/" + period, zone, ticker);
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofHours(hours));
    }

    /** Two years, every window of them: it ends where it says, and begins at a round time or when clocks are moved. */
    @ParameterizedTest
    @CsvSource({
        "UTC, 6h",
        "Europe/Berlin, 1h",
        "Europe/Berlin, 12h",
        "Europe/Berlin, 1d",
        "Europe/Berlin, 45m",
        "America/New_York, 2h",
        "America/Santiago, 12h",
        "Atlantic/Azores, 1d",
        "Australia/Lord_Howe, 1h",
        "Australia/Lord_Howe, 1d",
        "Asia/Kathmandu, 3h",
        "Africa/Casablanca, 8h",
        "Pacific/Apia, 7d",
    })
    void everyWindowEndsWhenItSaysAndTheNextBeginsAtARoundTimeOfItsZone(String zone, String period) {
        ZoneId id = ZoneId.of(zone);
        ManualTicker ticker = new ManualTicker(0, Instant.parse("2025-01-15T03:07:11Z"));
        Instant end = Instant.parse("2027-01-15T00:00:00Z");
        RateLimiter limiter = limiter("3/" + period, zone, ticker);
        long seconds = Rate.parse("3/" + period).period().toSeconds();
        assertThat(limiter.tryAcquire(null, 3)).isTrue();
        while (true) {
            Duration left = limiter.peek(null, 1, 0).retryAfter();
            assertThat(left).isPositive().isLessThanOrEqualTo(Duration.ofSeconds(seconds + 3_600));
            ticker.advance(left.minusNanos(1));
            assertThat(limiter.tryAcquire(null, 1)).isFalse();
            ticker.advanceNanos(1);
            assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(3);
            assertThat(limiter.tryAcquire(null, 3)).isTrue();
            assertThat(limiter.tryAcquire(null, 1)).isFalse();
            Instant begin = Instant.EPOCH.plusNanos(ticker.epochNanos());
            if (begin.isAfter(end)) {
                break;
            }
            long local = begin.getEpochSecond() + id.getRules().getOffset(begin).getTotalSeconds();
            ZoneOffsetTransition last = id.getRules().previousTransition(begin.plusNanos(1));
            boolean moved = last != null && begin.equals(last.getInstant());
            if (seconds % 3_600 == 0 && !moved) {
                assertThat(local % seconds).as(begin.toString()).isZero();
            }
        }
    }

    /** Each window is counted once, even where the clocks show its beginning twice. */
    @Test
    void aWindowThatBeginsTwiceIsOne() {
        ManualTicker ticker = at("2026-10-25T02:16:00", "Europe/Berlin");
        RateLimiter limiter = limiter("2/45m", "Europe/Berlin", ticker);
        long granted = 0;
        for (int minute = 0; minute < 180; minute++) {
            granted += limiter.tryAcquire(null, 1) ? 1 : 0;
            ticker.advance(Duration.ofMinutes(1));
        }
        assertThat(granted).isBetween(8L, 10L);
    }

    /** Where clocks are set back into a window before, the one that has begun goes on, also for callers who come then. */
    @ParameterizedTest
    @CsvSource({
        "America/New_York, 2026-11-01T06:10:00Z, 90m, 2026-11-01T08:00:00Z",
        "Europe/Lisbon, 2026-10-25T01:10:00Z, 90m, 2026-10-25T03:00:00Z",
    })
    void aNewCallerHasOneBudgetInAWindowThatTheClocksShowTwice(String zone, Instant now, String period, Instant end) {
        RateLimiter limiter = limiter("2/" + period, zone, new ManualTicker(0, now));
        assertThat(limiter.tryAcquire("new", 2)).isTrue();
        assertThat(limiter.tryAcquire("new", 1)).isFalse();
        assertThat(limiter.peek("new", 1, 0).retryAfter()).isEqualTo(Duration.between(now, end));
    }

    /** The country moved its standard time by an hour: the seconds went on. */
    @Test
    void shortWindowsDoNotFollowANewStandardTime() {
        Instant moved = Instant.parse("2019-01-01T01:00:00Z");
        ManualTicker ticker = new ManualTicker(0, moved.minusMillis(1));
        RateLimiter limiter = limiter("2/s", "Africa/Sao_Tome", ticker);
        assertThat(limiter.tryAcquire("known", 2)).isTrue();
        assertThat(limiter.peek("known", 1, 0).retryAfter()).isEqualTo(Duration.ofMillis(1));
        ticker.advance(Duration.ofMillis(1));
        assertThat(limiter.tryAcquire("known", 2)).isTrue();
        assertThat(limiter.tryAcquire("new", 2)).isTrue();
        assertThat(limiter.tryAcquire("new", 1)).isFalse();
    }

    @Test
    void aClockThatStepsBackReopensNoWindow() {
        ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-02T00:00:10Z"));
        RateLimiter limiter = limiter("2/d", "UTC", ticker);
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        ticker.setWallClock(Instant.parse("2026-01-01T12:00:00Z"));
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
        assertThat(limiter.tryAcquire("other", 2)).isTrue();
        assertThat(limiter.tryAcquire("other", 1)).isFalse();
        ticker.setWallClock(Instant.parse("2026-01-02T12:00:00Z"));
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
        assertThat(limiter.tryAcquire("other", 1)).isFalse();
        ticker.setWallClock(Instant.parse("2026-01-03T00:00:00Z"));
        assertThat(limiter.tryAcquire(null, 2)).isTrue();
    }

    /** The reset is the first to read the clock, in the middle of making the map of keys. */
    @Test
    @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aClockThatStepsBackBeforeTheFirstKeyDecidesCallsOfKeys() {
        ManualTicker ticker = at("2026-01-31T23:00:00", "UTC");
        RateLimiter limiter = limiter("5/s", "UTC", ticker);
        ticker.setWallClock(Instant.parse("2025-04-06T23:00:00Z"));
        limiter.reset("k");
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(5);
        assertThat(limiter.tryAcquire("k", 5)).isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(limiter.tryAcquire("k", 5)).isTrue();
    }

    /** Cancelling what was reserved before a change is the first to read the clock, in the middle of replacing the cell. */
    @Test
    @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aClockThatStepsBackBeforeACancellationDecidesLaterCalls() {
        ManualTicker ticker = at("2026-01-31T23:00:00", "UTC");
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("calendar", Algorithm.SMOOTH_BURSTY).rate("10/s").build(), ticker, 10);
        Reservation before = limiter.reserve(null, 1, 0);
        limiter.update(Limit.of("calendar", Algorithm.FIXED_WINDOW).rate("5/s").build());
        assertThat(limiter.tryAcquire(null, 5)).isTrue();
        ticker.setWallClock(Instant.parse("2025-04-06T23:00:00Z"));
        before.cancel();
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(limiter.tryAcquire(null, 5)).isTrue();
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
    }

    @Test
    void aClockThatStepsForwardOpensTheWindowItShows() {
        ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));
        RateLimiter limiter = limiter("1/d", "UTC", ticker);
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        ticker.setWallClock(Instant.parse("2026-01-05T00:00:00Z"));
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        assertThat(limiter.tryAcquire(null, 1)).isFalse();
    }

    @Test
    void aChangeOfZoneBeginsAnew() {
        ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T23:30:00Z"));
        InMemoryRateLimiter limiter = limiter("10/d", "UTC", ticker);
        assertThat(limiter.tryAcquire(null, 9)).isTrue();
        limiter.update(
                limiter.limit().toBuilder().zone(ZoneId.of("Europe/Berlin")).build());
        assertThat(limiter.tryAcquire(null, 10)).isTrue();
        assertThat(limiter.peek(null, 1, 0).reset()).isEqualTo(Duration.ofMinutes(23 * 60 + 30));
    }
}
