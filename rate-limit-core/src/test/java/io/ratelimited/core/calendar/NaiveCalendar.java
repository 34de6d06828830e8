package io.ratelimited.core.calendar;

import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.MonthDay;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.zone.ZoneOffsetTransition;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/** Begins of windows by looking at each day, and at each minute where the clocks of a zone are moved. */
public final class NaiveCalendar {

    /**
     * Among them: midnights that do not exist or come twice, clocks that are set back over midnight (St. John's) or by half an
     * hour, and a day that was left out (Apia).
     */
    public static final List<String> ZONES = List.of(
            "UTC",
            "Europe/Berlin",
            "America/Sao_Paulo",
            "Africa/Cairo",
            "Asia/Beirut",
            "America/St_Johns",
            "Pacific/Apia",
            "Australia/Lord_Howe",
            "America/Santiago",
            "Asia/Kathmandu");

    private static final LocalDate FROM = LocalDate.of(1990, 1, 1);
    private static final LocalDate TO = LocalDate.of(2030, 1, 1);

    private final ZoneId zone;
    private final Map<LocalDate, Instant> midnights = new HashMap<>();

    public NaiveCalendar(String zone) {
        this.zone = ZoneId.of(zone);
    }

    /** The begins of all windows of 40 years. */
    public List<Instant> begins(CalendarPeriod period, String startsOn) {
        Predicate<LocalDate> begins = switch (period) {
            case WEEK -> day -> day.getDayOfWeek() == DayOfWeek.valueOf(startsOn);
            case MONTH -> day -> isDayOrLast(day, Integer.parseInt(startsOn));
            case YEAR -> {
                MonthDay first = MonthDay.parse("--" + startsOn);
                yield day -> day.getMonth() == first.getMonth() && isDayOrLast(day, first.getDayOfMonth());
            }
        };
        List<Instant> all = new ArrayList<>();
        for (LocalDate day = FROM; day.isBefore(TO); day = day.plusDays(1)) {
            if (begins.test(day)) {
                all.add(midnights.computeIfAbsent(day, this::midnight));
            }
        }
        return all;
    }

    /** An instant of a window shortly after its clocks were moved; its end if they are not. */
    public Instant afterMove(Instant begin, Instant end) {
        ZoneOffsetTransition next = zone.getRules().nextTransition(begin);
        Instant after = next == null ? end : next.getInstant().plusSeconds(1_200);
        return after.isBefore(end) ? after : end;
    }

    private static boolean isDayOrLast(LocalDate day, int wanted) {
        boolean last = day.plusDays(1).getDayOfMonth() == 1;
        return day.getDayOfMonth() == wanted || (last && day.getDayOfMonth() < wanted);
    }

    /** The first minute at which the clocks show the day or a later one. */
    private Instant midnight(LocalDate day) {
        // No clock is 15 hours ahead.
        Instant early = day.atStartOfDay().toInstant(ZoneOffset.UTC).minus(Duration.ofHours(15));
        Instant late = early.plus(Duration.ofDays(2));
        ZoneOffsetTransition next = zone.getRules().nextTransition(early);
        if (next == null || next.getInstant().isAfter(late)) {
            return ZonedDateTime.of(day, LocalTime.MIDNIGHT, zone).toInstant();
        }
        Instant minute = early;
        while (minute.atZone(zone).toLocalDate().isBefore(day)) {
            minute = minute.plusSeconds(60);
        }
        return minute;
    }
}
