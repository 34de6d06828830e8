package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Ticker;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The time of one limiter: a clock that steps back is held at the newest time that was read. The system's monotonic
 * clock, which never steps back by itself, is recorded only every {@link #GRAIN}, so that the record is not contended;
 * every other clock at each new time, of which the system's wall clock has one a millisecond. A wall clock that steps back
 * by more than a window of the calendar is followed: held, one wrong reading would close windows for years.
 *
 * <p>A caller may decide by a time that is no longer the newest, because others read the clock after it and were decided
 * first. {@link #newest} shows by how much. Thread-safe.
 */
final class SteadyClock {

    /** Nanoseconds by which the newest time of the system's monotonic clock may be ahead of the record. */
    static final long GRAIN = 100_000;

    /** Nanoseconds by which two readings of the system's wall clock may differ though it has not been set. */
    private static final long RESOLUTION_OF_CALENDAR = 1_000_000;

    /** The time of a wall clock that has not stepped back far. */
    static final long NOT_BACK = Long.MIN_VALUE;

    /** Compared by identity, which is cheaper than checking the class of a ticker. */
    private static final Ticker SYSTEM = Ticker.system();

    private static final VarHandle LATEST;
    private static final VarHandle LATEST_OF_CALENDAR;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            LATEST = lookup.findVarHandle(SteadyClock.class, "latest", long.class);
            LATEST_OF_CALENDAR = lookup.findVarHandle(SteadyClock.class, "latestOfCalendar", long.class);
        } catch (ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    private final Ticker ticker;
    private final long grain;
    private final long begin;
    private long latest;
    private long latestOfCalendar;
    /** The longest step back of the wall clock that it is held for, in nanoseconds. */
    private volatile long longestHold = Long.MAX_VALUE;

    private volatile Runnable followBack = () -> {};

    SteadyClock(Ticker ticker) {
        this.ticker = ticker;
        this.grain = ticker == SYSTEM ? GRAIN : 0;
        this.begin = ticker.nanos();
        this.latest = begin;
        this.latestOfCalendar = ticker.epochNanos();
    }

    Ticker ticker() {
        return ticker;
    }

    /** The wall-clock time or the monotonic time. */
    long now(boolean calendar) {
        return now(calendar, read(calendar));
    }

    /** Monotonic nanoseconds since this clock was made, 0 or more. */
    long sinceBegin() {
        return Math.max(0, read(false) - begin);
    }

    /** Reads the wall clock or the monotonic clock; it may have stepped back. */
    long read(boolean calendar) {
        return calendar ? ticker.epochNanos() : ticker == SYSTEM ? SYSTEM.nanos() : ticker.nanos();
    }

    /** Returns the time for a reading that was {@link #read} a moment ago. */
    long now(boolean calendar, long read) {
        return calendar ? calendar(read) : nanos(read);
    }

    /**
     * States for how long a step back of the wall clock is held.
     *
     * @param longest in nanoseconds
     * @param follow called, until {@link #setBack}, by anyone who sees a longer one
     */
    void holdCalendar(long longest, Runnable follow) {
        followBack = follow;
        longestHold = longest;
    }

    /** Returns the wall-clock time if the clock has stepped back by more than is held; else {@link #NOT_BACK}. */
    long steppedBackTo() {
        long newest = (long) LATEST_OF_CALENDAR.getVolatile(this);
        // A reading that was slow to arrive here is no step back: this one is later than the newest.
        long shown = ticker.epochNanos();
        return newest - shown > longestHold ? shown : NOT_BACK;
    }

    /** Lets the wall-clock time go on from an earlier one. */
    void setBack(long now) {
        LATEST_OF_CALENDAR.setVolatile(this, now);
    }

    /** Nanoseconds until the wall-clock time, which is held while the clock is behind it, goes on; 0 for less than it can show. */
    long held() {
        long newest = (long) LATEST_OF_CALENDAR.getVolatile(this);
        // This reading is later than the newest, unless the clock has stepped back.
        long behind = newest - ticker.epochNanos();
        return behind < RESOLUTION_OF_CALENDAR ? 0 : behind;
    }

    /** The newest time that another caller may have read. */
    long newest(boolean calendar) {
        return calendar ? (long) LATEST_OF_CALENDAR.getVolatile(this) : (long) LATEST.getVolatile(this) + grain;
    }

    private long nanos(long now) {
        long ahead = now - latest;
        if (ahead > grain) {
            return record(LATEST, now);
        }
        return ahead < 0 ? now - ahead : now;
    }

    private long calendar(long now) {
        long ahead = now - latestOfCalendar;
        if (ahead > 0) {
            return record(LATEST_OF_CALENDAR, now);
        }
        return -ahead > longestHold ? followedBack() : now - ahead;
    }

    private long followedBack() {
        followBack.run();
        return (long) LATEST_OF_CALENDAR.getVolatile(this);
    }

    /** The newest time; a record never goes back. */
    private long record(VarHandle record, long now) {
        while (true) {
            long seen = (long) record.getVolatile(this);
            if (now - seen <= 0) {
                return seen;
            }
            if (record.compareAndSet(this, seen, now)) {
                return now;
            }
        }
    }
}
