package io.ratelimited.core.calendar;

import java.time.Duration;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A calendar period, whose length in hours depends on its start. */
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

    /** Returns the period with this name; null if there is none. */
    public static @Nullable CalendarPeriod of(String name) {
        return Stream.of(values())
                .filter(period -> period.toString().equals(name))
                .findFirst()
                .orElse(null);
    }

    /**
     * Returns its maximum length in days of 24 hours: 7, 31, 366. For estimates only, because clock changes can lengthen it.
     */
    public Duration longest() {
        return longest;
    }

    /** Returns its number of months; 0 for a week. */
    public int months() {
        return months;
    }

    /** Returns the default of its first day, as in {@link CalendarWindows#startsOn}. */
    String firstDay() {
        return firstDay;
    }

    /** Returns the name as in a rate: {@code month}. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
