package io.ratelimited.core.calendar;

import java.time.DateTimeException;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.Month;
import java.time.YearMonth;
import java.time.ZoneId;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Windows of a week, month or year, each from midnight of its first day in a time zone. If clocks skip that midnight, the
 * window starts at the clock change; if they show it twice, at the first one. Immutable.
 *
 * @param period the period of a window
 * @param month in which a year starts, from 1 to 12; 1 for other periods
 * @param day on which a window starts: of the week, from 1 (Monday) to 7, or of the month, from 1 to 31; in a shorter month,
 *     its last day
 * @param zone time zone of the midnight
 */
public record CalendarWindows(CalendarPeriod period, int month, int day, ZoneId zone) {

    private static final YearMonth FIRST_MONTH = YearMonth.of(1970, 1);
    /** The day of the week of 1970-01-01, a Thursday. */
    private static final int FIRST_WEEKDAY = 4;

    private static final int DAYS = 7;
    private static final Pattern DAY_OF_MONTH = Pattern.compile("\\d{1,2}");
    private static final Pattern DAY_OF_YEAR = Pattern.compile("(\\d{2})-(\\d{2})");

    /** @throws DateTimeException if the period cannot start on such a day */
    public CalendarWindows {
        if (period != CalendarPeriod.YEAR && month != 1) {
            throw new DateTimeException("only a year starts in a month: " + month);
        }
        int last = period == CalendarPeriod.WEEK
                ? DAYS
                : period == CalendarPeriod.MONTH ? 31 : Month.of(month).maxLength();
        if (day < 1 || day > last) {
            throw new DateTimeException("a " + period + " has no such day: " + day);
        }
        zone = zone.normalized();
    }

    /**
     * Returns the windows of a period with a first day.
     *
     * @param startsOn a day of the week ({@code MONDAY}, the default), of the month ({@code 15}; default 1) or of the year
     *     ({@code 04-01}; default 01-01); null for the default
     * @throws IllegalArgumentException if the period has no such day; the message shows the valid values, and ends with the
     *     value
     */
    public static CalendarWindows of(CalendarPeriod period, @Nullable String startsOn, ZoneId zone) {
        String text = startsOn == null ? period.firstDay() : startsOn.strip();
        try {
            switch (period) {
                case WEEK -> {
                    int day = DayOfWeek.valueOf(text.toUpperCase(Locale.ROOT)).getValue();
                    return new CalendarWindows(period, 1, day, zone);
                }
                case MONTH -> {
                    if (DAY_OF_MONTH.matcher(text).matches()) {
                        return new CalendarWindows(period, 1, Integer.parseInt(text), zone);
                    }
                }
                case YEAR -> {
                    Matcher date = DAY_OF_YEAR.matcher(text);
                    if (date.matches()) {
                        return new CalendarWindows(
                                period, Integer.parseInt(date.group(1)), Integer.parseInt(date.group(2)), zone);
                    }
                }
            }
        } catch (IllegalArgumentException | DateTimeException ex) {
            throw noDay(period, text, ex);
        }
        throw noDay(period, text, null);
    }

    private static IllegalArgumentException noDay(CalendarPeriod period, String text, @Nullable Exception cause) {
        String days = switch (period) {
            case WEEK -> "a day of the week, from MONDAY to SUNDAY,";
            case MONTH -> "a day from 1 to 31";
            case YEAR -> "a month and day such as 04-01";
        };
        return new IllegalArgumentException(
                "is " + text + ", but must be " + days + " for a rate per " + period, cause);
    }

    /** Returns the first day as text: {@code MONDAY}, {@code 15}, {@code 04-01}. */
    public String startsOn() {
        return switch (period) {
            case WEEK -> DayOfWeek.of(day).name();
            case MONTH -> Integer.toString(day);
            case YEAR -> String.format(Locale.ROOT, "%02d-%02d", month, day);
        };
    }

    /** Returns the number of the window of an instant, counted from about 1970. */
    public long index(Instant instant) {
        long index = index(LocalDate.ofInstant(instant, zone));
        // Clocks that are set back over midnight show the day before once more.
        return instant.isBefore(start(index + 1)) ? index : index + 1;
    }

    private long index(LocalDate date) {
        if (period == CalendarPeriod.WEEK) {
            return Math.floorDiv(date.toEpochDay() - day + FIRST_WEEKDAY, DAYS);
        }
        boolean begun = date.getDayOfMonth() >= Math.min(day, date.lengthOfMonth());
        long months = (date.getYear() - FIRST_MONTH.getYear()) * 12L + date.getMonthValue() - month - (begun ? 0 : 1);
        return Math.floorDiv(months, period.months());
    }

    /** Returns the first instant of a window. */
    public Instant start(long index) {
        return firstDay(index).atStartOfDay(zone).toInstant();
    }

    private LocalDate firstDay(long index) {
        if (period == CalendarPeriod.WEEK) {
            return LocalDate.ofEpochDay(index * DAYS + day - FIRST_WEEKDAY);
        }
        YearMonth first = FIRST_MONTH.plusMonths(index * period.months() + month - 1);
        return first.atDay(Math.min(day, first.lengthOfMonth()));
    }

    /** Returns the length of the window of an instant. */
    public Duration length(Instant instant) {
        long index = index(instant);
        return Duration.between(start(index), start(index + 1));
    }
}
