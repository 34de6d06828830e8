package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import org.junit.jupiter.api.Test;
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
    @CsvSource({"Asia/Kolkata, 2026-01-01T10:00:00", "UTC, 2026-01-01T10:00:00", "Europe/Berlin, 2026-01-01T10:00:00"})
    void anHourBeginsOnTheHourOfItsZone(String zone, String local) {
        ManualTicker ticker = at(local, zone);
        RateLimiter limiter = limiter("1/h", zone, ticker);
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        assertThat(limiter.peek(null, 1, 0).retryAfter()).isEqualTo(Duration.ofHours(1));
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
    void aChangeOfZoneKeepsTheShare() {
        ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T23:30:00Z"));
        InMemoryRateLimiter limiter = limiter("10/d", "UTC", ticker);
        assertThat(limiter.tryAcquire(null, 9)).isTrue();
        limiter.update(
                limiter.limit().toBuilder().zone(ZoneId.of("Europe/Berlin")).build());
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(1);
        assertThat(limiter.peek(null, 1, 0).reset()).isEqualTo(Duration.ofMinutes(23 * 60 + 30));
    }
}
