package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import io.ratelimited.core.calendar.CalendarPeriod;
import java.time.Instant;
import java.time.LocalDate;
import java.time.YearMonth;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

/** The counter per window of UTC, a period or a month: a list of grants with the window each one fell into. */
final class WindowTwin implements Twin {

    /** @param before the last window before this one, if the call has opened it and has to wait; else this one */
    private record Grant(long window, long permits, long before) {}

    private final long limit;
    private final long period;
    private final boolean monthly;
    private final List<Grant> grants = new ArrayList<>();
    /** Windows before this one are closed. */
    private long last;

    WindowTwin(Limit limit, long now) {
        this.limit = limit.rate().permits();
        this.period = limit.rate().period().toNanos();
        this.monthly = limit.rate().calendar() == CalendarPeriod.MONTH;
        this.last = window(now);
    }

    private long window(long now) {
        return monthly ? ChronoUnit.MONTHS.between(YearMonth.of(0, 1), month(now)) : Math.floorDiv(now, period);
    }

    private static YearMonth month(long now) {
        return YearMonth.from(Instant.EPOCH.plusNanos(now).atZone(ZoneOffset.UTC));
    }

    private long start(long window) {
        return monthly
                ? ChronoUnit.NANOS.between(
                        LocalDate.EPOCH.atStartOfDay(),
                        YearMonth.of(0, 1).plusMonths(window).atDay(1).atStartOfDay())
                : window * period;
    }

    private long taken(long window) {
        return grants.stream()
                .filter(grant -> grant.window == window)
                .mapToLong(Grant::permits)
                .sum();
    }

    private long windowFor(long permits, long now) {
        long window = Math.max(last, window(now));
        while (taken(window) + permits > limit) {
            window++;
        }
        return window;
    }

    @Override
    public long decide(long permits, long now, long maxWait) {
        return permits > limit ? Cell.NEVER : Twin.outcome(Math.max(0, start(windowFor(permits, now)) - now), maxWait);
    }

    @Override
    public void grant(long permits, long now) {
        long before = last;
        last = windowFor(permits, now);
        grants.add(new Grant(last, permits, last > window(now) ? before : last));
    }

    @Override
    public void charge(long permits, long now) {
        last = Math.max(last, window(now));
        grants.add(new Grant(last, permits, last));
    }

    @Override
    public void giveBack(int grant, long permits, long now) {
        Grant before = grants.get(grant);
        if (before.window == last) {
            grants.set(grant, new Grant(last, before.permits - permits, before.before));
            last = taken(last) == 0 ? before.before : last;
        }
    }

    @Override
    public long remaining(long now) {
        long window = window(now);
        return last > window ? 0 : Math.max(0, limit - taken(window));
    }
}
