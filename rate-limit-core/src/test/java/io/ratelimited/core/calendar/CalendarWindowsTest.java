package io.ratelimited.core.calendar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("once")
class CalendarWindowsTest {

    @ParameterizedTest
    @CsvSource({
        "WEEK,, MONDAY",
        "WEEK, MONDAY, MONDAY",
        "WEEK, ' sunday ', SUNDAY",
        "MONTH,, 1",
        "MONTH, 15, 15",
        "MONTH, 05, 5",
        "MONTH, 31, 31",
        "YEAR,, 01-01",
        "YEAR, 04-01, 04-01",
        "YEAR, 02-29, 02-29",
        "YEAR, 12-31, 12-31",
    })
    void theFirstDayReadsAsItIsWritten(CalendarPeriod period, String text, String written) {
        CalendarWindows windows = CalendarWindows.of(period, text, ZoneOffset.UTC);
        assertThat(windows.startsOn()).isEqualTo(written);
        assertThat(CalendarWindows.of(period, written, ZoneOffset.UTC)).isEqualTo(windows);
    }

    @ParameterizedTest
    @CsvSource({
        "WEEK, 15",
        "WEEK, MON",
        "WEEK, ''",
        "WEEK, 04-01",
        "MONTH, 0",
        "MONTH, 32",
        "MONTH, -1",
        "MONTH, MONDAY",
        "MONTH, 04-01",
        "MONTH, 015",
        "YEAR, 15",
        "YEAR, 4-1",
        "YEAR, 02-30",
        "YEAR, 04-31",
        "YEAR, 13-01",
        "YEAR, 00-01",
        "YEAR, 01-00",
        "YEAR, MONDAY",
    })
    void aDayThatThePeriodDoesNotHaveIsRefusedWithOneThatItHas(CalendarPeriod period, String text) {
        String example = switch (period) {
            case WEEK -> "must be a day of the week, from MONDAY to SUNDAY, for a rate per week";
            case MONTH -> "must be a day from 1 to 31 for a rate per month";
            case YEAR -> "must be a month and day such as 04-01 for a rate per year";
        };
        assertThatThrownBy(() -> CalendarWindows.of(period, text, ZoneOffset.UTC))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("is " + text + ", but " + example);
    }

    @Test
    void onlyAYearBeginsInAMonth() {
        assertThatThrownBy(() -> new CalendarWindows(CalendarPeriod.MONTH, 2, 1, ZoneOffset.UTC))
                .isInstanceOf(DateTimeException.class)
                .hasMessage("only a year starts in a month: 2");
    }

    @ParameterizedTest
    @CsvSource({
        "MONTH, 1, 2026-02-10T00:00:00Z, 28",
        "MONTH, 1, 2028-02-10T00:00:00Z, 29",
        "MONTH, 31, 2026-02-28T00:00:00Z, 31", // until the end of March
        "MONTH, 31, 2026-02-27T23:59:59Z, 28",
        "MONTH, 30, 2028-02-29T00:00:00Z, 30",
        "YEAR, 01-01, 2026-06-01T00:00:00Z, 365",
        "YEAR, 01-01, 2028-06-01T00:00:00Z, 366",
        "YEAR, 02-29, 2027-02-28T00:00:00Z, 366", // until February 29
        "YEAR, 02-29, 2028-02-28T23:59:59Z, 366",
        "YEAR, 02-29, 2028-02-29T00:00:00Z, 365",
        "WEEK, SUNDAY, 1969-12-31T00:00:00Z, 7",
    })
    void aWindowIsAsLongAsItsDays(CalendarPeriod period, String startsOn, Instant at, long days) {
        CalendarWindows windows = CalendarWindows.of(period, startsOn, ZoneOffset.UTC);
        assertThat(windows.length(at)).isEqualTo(Duration.ofDays(days));
    }
}
