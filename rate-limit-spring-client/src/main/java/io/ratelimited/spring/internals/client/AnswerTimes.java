package io.ratelimited.spring.internals.client;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.util.List;
import java.util.Locale;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The spellings that servers have for times. Each gives a time from now, in nanoseconds; 0 for a text that is none, or a time
 * of more than a year, which no server can mean. A time that is 0 or over is {@link #SOON}.
 */
final class AnswerTimes {

    /** Longest time in seconds: less than any date since 1971. */
    private static final long LONGEST_SECONDS = Duration.ofDays(366).toSeconds();

    private static final long NANOS = 1_000_000_000L;

    /** Servers count in whole seconds, and some round down: what is there in 0 of them is there in one at the latest. */
    private static final long SOON = NANOS;

    private static final long MILLIS = 1_000;
    private static final Pattern NUMBER = Pattern.compile("(\\d{1,15})(?:\\.(\\d{1,9}))?");
    private static final Pattern DURATION = Pattern.compile(
            "(?=\\d)(?:(\\d{1,9})d)?(?:(\\d{1,9})h)?(?:(\\d{1,9})m(?!s))?(?:(\\d{1,9}(?:\\.\\d{1,9})?)s)?"
                    + "(?:(\\d{1,9})(?:\\.\\d{1,9})?ms)?");
    private static final long[] SECONDS_OF_UNIT = {86_400, 3_600, 60};

    /** The formats of RFC 9110, 5.6.7: that of today, that of RFC 850, and that of asctime. */
    private static final List<DateTimeFormatter> DATES = List.of(
            DateTimeFormatter.RFC_1123_DATE_TIME,
            new DateTimeFormatterBuilder()
                    .appendPattern("EEEE, dd-MMM-")
                    .appendValueReduced(ChronoField.YEAR, 2, 2, 1980)
                    .appendPattern(" HH:mm:ss 'GMT'")
                    .toFormatter(Locale.US)
                    .withZone(ZoneOffset.UTC),
            DateTimeFormatter.ofPattern("EEE MMM ppd HH:mm:ss yyyy", Locale.US).withZone(ZoneOffset.UTC));

    private AnswerTimes() {}

    /** {@code Retry-After}: seconds, perhaps with a fraction, or a date. */
    static long retryAfter(@Nullable String value, long nowMillis) {
        Matcher number = matcher(NUMBER, value);
        if (number.matches()) {
            return ofSeconds(number);
        }
        OptionalLong date = date(value);
        return date.isPresent() ? until(date.getAsLong(), nowMillis) : 0;
    }

    /**
     * A reset: as {@code Retry-After}, or seconds or milliseconds since 1970, a duration as {@code 1m30s}, or a time of ISO
     * 8601. They cannot be confused, since no window is longer than a year.
     */
    static long reset(@Nullable String value, long nowMillis) {
        Matcher number = matcher(NUMBER, value);
        if (number.matches()) {
            long whole = Long.parseLong(number.group(1));
            if (whole <= LONGEST_SECONDS) {
                return ofSeconds(number);
            }
            return until(whole < nowMillis / 10 ? whole * MILLIS + fraction(number) / 1_000_000 : whole, nowMillis);
        }
        Matcher duration = matcher(DURATION, value);
        if (duration.matches()) {
            return ofDuration(duration);
        }
        OptionalLong date = date(value);
        return date.isPresent() ? until(date.getAsLong(), nowMillis) : retryAfter(value, nowMillis);
    }

    /** A number of milliseconds. */
    static long millis(@Nullable String value) {
        Matcher number = matcher(NUMBER, value);
        long millis = number.matches() ? Long.parseLong(number.group(1)) : 0;
        return millis <= LONGEST_SECONDS * MILLIS ? millis * (NANOS / MILLIS) : 0;
    }

    /** Whole seconds. */
    static long seconds(long seconds) {
        return seconds >= 0 && seconds <= LONGEST_SECONDS ? soon(seconds * NANOS) : 0;
    }

    /** A date of HTTP or a time of ISO 8601, in milliseconds since 1970. */
    static OptionalLong date(@Nullable String value) {
        if (value == null || value.isEmpty()) {
            return OptionalLong.empty();
        }
        for (DateTimeFormatter format : DATES) {
            try {
                return OptionalLong.of(
                        ZonedDateTime.parse(value, format).toInstant().toEpochMilli());
            } catch (DateTimeException | ArithmeticException ex) {
                // Another of the formats, or none.
            }
        }
        try {
            return OptionalLong.of(OffsetDateTime.parse(value).toInstant().toEpochMilli());
        } catch (DateTimeException | ArithmeticException ex) {
            return OptionalLong.empty();
        }
    }

    private static Matcher matcher(Pattern pattern, @Nullable String value) {
        return pattern.matcher(value == null ? "" : value);
    }

    private static long ofSeconds(Matcher number) {
        long whole = Long.parseLong(number.group(1));
        return whole < LONGEST_SECONDS ? soon(whole * NANOS + fraction(number)) : seconds(whole);
    }

    /** The fraction of a number, in billionths. */
    private static long fraction(Matcher number) {
        String digits = number.group(2);
        return digits == null ? 0 : Long.parseLong((digits + "00000000").substring(0, 9));
    }

    private static long ofDuration(Matcher duration) {
        long seconds = 0;
        for (int unit = 0; unit < SECONDS_OF_UNIT.length; unit++) {
            String number = duration.group(unit + 1);
            seconds += number == null ? 0 : Long.parseLong(number) * SECONDS_OF_UNIT[unit];
        }
        Matcher rest = matcher(NUMBER, duration.group(4));
        long nanos = millis(duration.group(5));
        if (rest.matches()) {
            seconds += Long.parseLong(rest.group(1));
            nanos += fraction(rest);
        }
        return seconds < LONGEST_SECONDS && nanos < LONGEST_SECONDS * NANOS - seconds * NANOS
                ? soon(seconds * NANOS + nanos)
                : 0;
    }

    private static long until(long epochMillis, long nowMillis) {
        long millis = epochMillis - nowMillis;
        return Math.abs(millis) <= LONGEST_SECONDS * MILLIS ? soon(millis * (NANOS / MILLIS)) : 0;
    }

    private static long soon(long nanos) {
        return nanos > 0 ? nanos : SOON;
    }
}
