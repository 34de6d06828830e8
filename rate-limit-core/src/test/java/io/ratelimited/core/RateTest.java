package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.calendar.CalendarPeriod;
import java.time.Duration;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RateTest {

    @ParameterizedTest
    @CsvSource({
        "100/s, 100, PT1S, 100/s",
        "5/m, 5, PT1M, 5/m",
        "5/min, 5, PT1M, 5/m",
        "1000/h, 1000, PT1H, 1000/h",
        "5000/d, 5000, PT24H, 5000/d",
        "20/500ms, 20, PT0.5S, 20/500ms",
        "100/PT1M, 100, PT1M, 100/m",
        "100/pt1m30s, 100, PT1M30S, 100/90s",
        "7/P1D, 7, PT24H, 7/d",
        "3/7d, 3, PT168H, 3/7d",
        "1/10us, 1, PT0.00001S, 1/10us",
        "1/10µs, 1, PT0.00001S, 1/10us",
        "10/ns, 10, PT0.000000001S, 10/ns",
        "' 100 / s ', 100, PT1S, 100/s",
        "0/s, 0, PT1S, 0/s",
        "60/60s, 60, PT1M, 60/m",
        "1000000000000000/3650d, 1000000000000000, PT87600H, 1000000000000000/3650d",
    })
    void aRateIsANumberPerPeriodAndReadsAsItIsWritten(String text, long permits, Duration period, String written) {
        Rate rate = Rate.parse(text);
        assertThat(rate).isEqualTo(new Rate(permits, period));
        assertThat(rate).hasToString(written);
        assertThat(Rate.parse(rate.toString())).isEqualTo(rate);
    }

    @ParameterizedTest
    @CsvSource({
        "0.5/s, write 30/m",
        "1.5/s, write 90/m",
        "0.1/m, write 6/h",
        "0.25/500ms, write 30/m",
        "2.0/s, write 2/s",
        "0.0001/m, write a whole number per longer period",
        "0.5/x, write a whole number per longer period"
    })
    void aRateThatIsNoWholeNumberIsRefusedWithOneThatIs(String text, String remedy) {
        assertThatThrownBy(() -> Rate.parse(text))
                .isInstanceOf(InvalidLimitException.class)
                .hasMessageStartingWith("rate is \"" + text + "\", but must be ")
                .hasMessageEndingWith("; " + remedy);
    }

    @ParameterizedTest
    @CsvSource({
        "5/minute, 5/m",
        "10/sec, 10/s",
        "5/day, 5/d",
        "5 per minute, 5/m",
        "100 per 30 seconds, 100/30s",
        "20/500 millis, 20/500ms",
        "3 an hour, 3/h",
        "7/Hours, 7/h",
        "1000 per month, 1000/month",
        "2/weeks, 2/week",
        "5/2weeks, 5/14d",
        "5 per 1 month, 5/month"
    })
    void aRateInWordsIsRejectedWithTheTextToWrite(String text, String written) {
        assertThatThrownBy(() -> Rate.parse(text))
                .isInstanceOf(InvalidLimitException.class)
                .hasMessageStartingWith("rate is \"" + text + "\", but must be ")
                .hasMessageEndingWith("; write " + written);
        assertThat(Rate.parse(written)).isNotNull();
    }

    /** Months and years take no number, periods are neither empty nor too long, and numbers too large. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "5/2months",
                "5/2month",
                "5 per 2 years",
                "5/0 minutes",
                "5/9999 weeks",
                "5/99999999999999999999 weeks",
                "99999999999999999999 per second"
            })
    void noTextIsNamedThatIsNoRateEither(String text) {
        assertThatThrownBy(() -> Rate.parse(text))
                .isInstanceOf(InvalidLimitException.class)
                .hasMessageEndingWith("per week, month or year, or \"unlimited\"");
    }

    @ParameterizedTest
    @CsvSource({
        "1000000/month, 1000000, MONTH, P31D",
        "' 5 / week ', 5, WEEK, P7D",
        "0/year, 0, YEAR, P366D",
        "1000000000000000/month, 1000000000000000, MONTH, P31D",
    })
    void aRatePerWeekMonthOrYearHasNoPeriodOfFixedLength(
            String text, long permits, CalendarPeriod calendar, Duration longest) {
        Rate rate = Rate.parse(text);
        assertThat(rate).isEqualTo(new Rate(permits, calendar)).isNotEqualTo(new Rate(permits, longest));
        assertThat(rate.period()).isEqualTo(longest);
        assertThat(rate).hasToString(permits + "/" + calendar.name().toLowerCase(Locale.ROOT));
        assertThat(Rate.parse(rate.toString())).isEqualTo(rate);
    }

    @Test
    void theEstimateOfACalendarPeriodIsItsLongest() {
        assertThatThrownBy(() -> new Rate(1, Duration.ofDays(30), CalendarPeriod.MONTH))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("rate is 1 per PT720H, but per month must have its longest period");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "0.1/44444444444444444444m",
                "",
                " ",
                "100",
                "100/",
                "/s",
                "s",
                "-1/s",
                "1.5/s",
                "100/x",
                "100/ss",
                "100 per s",
                "1e3/s",
                "100//s",
                "100/s/s",
                "99999999999999999999/s",
                "1/99999999999999999999d",
                "1/2month",
                "1/months",
                "1/Month",
                "1/9223372036854775807d",
                "infinite",
                "100/PT"
            })
    void whatIsNoRateIsShownWithWhatWouldBeOne(String text) {
        assertThatThrownBy(() -> Rate.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("rate")
                .hasMessageContaining("\"" + text + "\"")
                .hasMessageContaining("100/s, 5/m, 20/500ms or 100/PT1M, per week, month or year, or");
    }

    /** A pattern that shares them among its parts in every way would take hours. */
    @ParameterizedTest
    @CsvSource({
        "B5/s, true",
        "5B/s, true",
        "5/Bs, true",
        "5/sB, true",
        "5/sBx, false",
        "5 perBx, false",
        "0.5/sBx, false",
        "B, false"
    })
    @Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
    void aMillionBlanksAreReadOnce(String pattern, boolean valid) {
        String text = pattern.replace("B", " ".repeat(1_000_000));
        if (valid) {
            assertThat(Rate.parse(text)).isEqualTo(Rate.parse("5/s"));
        } else {
            assertThatThrownBy(() -> Rate.parse(text)).isInstanceOf(InvalidLimitException.class);
        }
        assertThat(CallerLimit.of(text).burst()).isNull();
        assertThat(CallerLimit.of("5/s" + text + " burst 7").burst()).isEqualTo(7);
    }

    @ParameterizedTest
    @CsvSource({
        "1/0s, 'rate is \"1/0s\", but must have a period from 1ns to 3650d'",
        "1/PT-1S, 'rate is \"1/PT-1S\", but must have a period from 1ns to 3650d'",
        "1/3651d, 'rate is \"1/3651d\", but must have a period from 1ns to 3650d'",
        "1000000000000001/d, 'rate is \"1000000000000001/d\", but must be at most 10^15 permits, and at most 10 permits per nanosecond'",
        "10000000001/s, 'rate is \"10000000001/s\", but must be at most 10^15 permits, and at most 10 permits per nanosecond'",
        "9223372036854775807/s, 'rate is \"9223372036854775807/s\", but must be at most 10^15 permits, and at most 10 permits per nanosecond'",
        "11/ns, 'rate is \"11/ns\", but must be at most 10^15 permits, and at most 10 permits per nanosecond'",
    })
    void aRateOutOfRangeIsRefusedWithTheRange(String text, String message) {
        assertThatThrownBy(() -> Rate.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }

    @Test
    void negativePermitsAreRefused() {
        assertThatThrownBy(() -> new Rate(-1, Duration.ofSeconds(1)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("rate is -1 per PT1S, but must be 0 (closed) or more permits");
    }

    @Test
    void closedAndUnlimitedAreRates() {
        assertThat(Rate.parse("unlimited")).isSameAs(Rate.UNLIMITED);
        assertThat(Rate.parse(" Unlimited ")).isSameAs(Rate.UNLIMITED);
        assertThat(Rate.UNLIMITED).hasToString("unlimited");
        assertThat(Rate.UNLIMITED.isUnlimited()).isTrue();
        assertThat(Rate.UNLIMITED.isClosed()).isFalse();
        assertThat(Rate.parse("0/s").isClosed()).isTrue();
        assertThat(Rate.parse("1/s").isClosed()).isFalse();
        assertThat(Rate.parse("1/s").isUnlimited()).isFalse();
    }
}
