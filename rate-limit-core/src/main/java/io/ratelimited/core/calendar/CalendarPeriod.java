package io.ratelimited.core.calendar;

import java.time.Duration;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A period of the calendar, whose length in hours depends on when it starts. */
public enum CalendarPeriod {
    WEEK(7, 0, "MONDAY"),
    MONTH(31, 1, "1"),
    YEAR(366, 12, "01-01");

    private final Duration longest;
    private final int months;
    private final String firstDay;

    CalendarPeriod(int longest, int months, String firstDay) {
        this.longest = Duration.ofDays(longest);
        this.months = months;
        this.firstDay = firstDay;
    }

    /** The period of that name; null if there is none. */
    public static @Nullable CalendarPeriod of(String name) {
        return Stream.of(values())
                .filter(period -> period.toString().equals(name))
                .findFirst()
                .orElse(null);
    }

    /** The most days that it has, of 24 hours each: 7, 31, 366. For estimates: clocks that are moved may lengthen it. */
    public Duration longest() {
        return longest;
    }

    /** Returns how many months it is; 0 for a week. */
    public int months() {
        return months;
    }

    /** The day on which it starts if nothing else is stated, as in {@link CalendarWindows#startsOn}. */
    String firstDay() {
        return firstDay;
    }

    /** The name as in a rate: {@code month}. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
