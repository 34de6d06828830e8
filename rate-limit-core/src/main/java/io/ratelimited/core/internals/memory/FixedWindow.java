package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import io.ratelimited.core.calendar.CalendarWindows;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.time.Instant;
import java.time.zone.ZoneRules;
import org.jspecify.annotations.Nullable;

/**
 * A counter per window of the calendar. One word: the index of the last window anyone has a permit in, and how many are
 * taken there. A call that waits takes its permits in the first later window with room for all of them.
 */
class FixedWindow extends Cell {

    private static final VarHandle WORD;
    private static final long RETIRED = Long.MIN_VALUE;

    static {
        try {
            WORD = MethodHandles.lookup().findVarHandle(FixedWindow.class, "word", long.class);
        } catch (ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    private final Parameters parameters;
    /** Index of a window above {@code parameters.bits} bits of permits taken in it; {@link #RETIRED}. */
    private volatile long word;

    private FixedWindow(Parameters parameters, long word) {
        this.parameters = parameters;
        this.word = word;
    }

    /** A cell that continues another one with other numbers of the same limit. */
    private static final class Continuing extends FixedWindow {

        private final FixedWindow origin;

        private Continuing(Parameters parameters, long word, FixedWindow origin) {
            super(parameters, word);
            this.origin = origin;
        }

        @Override
        FixedWindow origin() {
            return origin;
        }

        @Override
        Cell compacted() {
            return copy();
        }
    }

    /** The first of the cells that continue one another: what was taken in one of them is in the last, and comes back to it. */
    FixedWindow origin() {
        return this;
    }

    @Override
    final boolean hasOriginOf(Cell other) {
        return other instanceof FixedWindow that && origin() == that.origin();
    }

    @Override
    final Parameters parameters() {
        return parameters;
    }

    @Override
    long reserve(long permits, long now, long maxWait, @Nullable Grant into) {
        while (true) {
            long before = word;
            long wait = peek(before, permits, now, maxWait);
            if (wait < 0) {
                return wait;
            }
            long after = parameters.wordAfter(before, permits, now);
            if (WORD.compareAndSet(this, before, after)) {
                if (into != null) {
                    into.mark(after >> parameters.bits);
                    if (wait > 0 && after >> parameters.bits != before >> parameters.bits) {
                        into.more(before);
                    }
                }
                return wait;
            }
        }
    }

    /** Looks at the calendar once, if the call goes in the window of the last look-up. */
    @Override
    long take(long permits, long now) {
        Parameters p = parameters;
        Parameters.Window window = p.current;
        long before = word;
        long start = before >> p.bits < window.index ? window.index << p.bits : before;
        return before != RETIRED
                        && p.change() == null
                        && now - window.start >= 0
                        && now - window.end < 0
                        && start >> p.bits == window.index
                        && permits <= p.permits - p.taken(start)
                        && WORD.compareAndSet(this, before, start + permits)
                ? 0
                : reserve(permits, now, 0, null);
    }

    @Override
    long peek(long permits, long now, long maxWait) {
        return peek(word, permits, now, maxWait);
    }

    private long peek(long before, long permits, long now, long maxWait) {
        if (before == RETIRED || parameters.change() != null) {
            return MOVED;
        }
        if (permits > parameters.permits) {
            return NEVER;
        }
        long wait = parameters.nanosTo(parameters.wordAfter(before, permits, now) >> parameters.bits, now);
        return wait > Math.max(0, maxWait) ? ~(wait - maxWait) : wait;
    }

    /**
     * Permits of the last window are refunded; windows behind it are closed, until the waiting call that has opened it is
     * the last to leave it. In a window whose count is at its largest after an enormous charge, the count may be too small
     * already.
     */
    @Override
    boolean giveBack(Grant grant, long permits, long now) {
        long before = word;
        while (before != RETIRED
                && before >> parameters.bits == grant.mark()
                && parameters.taken(before) != parameters.maxTaken
                && !WORD.compareAndSet(this, before, parameters.without(before, grant, permits))) {
            before = word;
        }
        return before != RETIRED;
    }

    /** In the present window, or in the last one that a waiting call was granted; the count may exceed the limit. */
    @Override
    boolean charge(long permits, long now) {
        while (true) {
            long before = word;
            if (before == RETIRED || parameters.change() != null) {
                return false;
            }
            long current = parameters.advance(before, now);
            long counted = Math.min(permits, parameters.maxTaken - parameters.taken(current));
            if (WORD.compareAndSet(this, before, current + counted)) {
                return true;
            }
        }
    }

    @Override
    long stamp() {
        return word;
    }

    @Override
    long remaining(long now) {
        long current = parameters.advance(word, now);
        return parameters.nanosTo(current >> parameters.bits, now) == 0
                ? Math.max(0, parameters.permits - parameters.taken(current))
                : 0;
    }

    @Override
    long nanosToInitial(long now) {
        return nanosToInitial(word, now);
    }

    /** A later window of which all permits were refunded still closes the windows before it. */
    private long nanosToInitial(long before, long now) {
        long current = parameters.advance(before, now);
        return parameters.nanosTo((current >> parameters.bits) + (parameters.taken(current) == 0 ? 0 : 1), now);
    }

    @Override
    Cell retire() {
        return new Continuing(parameters, (long) WORD.getAndSet(this, RETIRED), origin());
    }

    @Override
    boolean retireIfInitial(long now) {
        for (long before = word; before != RETIRED && nanosToInitial(before, now) == 0; before = word) {
            if (WORD.compareAndSet(this, before, RETIRED)) {
                return true;
            }
        }
        return false;
    }

    @Override
    Cell copy() {
        return new FixedWindow(parameters, word);
    }

    @Override
    boolean covers(Cell other) {
        return word >= ((FixedWindow) other).word;
    }

    @Override
    void absorb(Cell other) {
        long that = ((FixedWindow) other).word;
        for (long v = word; v < that && !WORD.compareAndSet(this, v, that); ) {
            v = word;
        }
    }

    /** The calendar of one limit. */
    static final class Parameters extends CellParameters {

        private static final long DAY = Duration.ofDays(1).toNanos();
        private static final long SECOND = 1_000_000_000L;
        /** In the year 2262. */
        private static final long LAST_SECOND = Long.MAX_VALUE / SECOND;

        private final long permits;
        private final int bits;
        /** The largest count of a window. */
        private final long maxTaken;

        private final long period;
        /** The windows of a week, month or year; null for a period of fixed length. */
        private final @Nullable CalendarWindows calendar;

        private final ZoneRules rules;
        /** The standard offset of 1970, from which windows are numbered, whatever became standard later. */
        private final long standard;
        /** The window of the last look-up, which the next look-up almost always finds, too. */
        private volatile Window current = new Window(0, 0, 0);
        /** The window that the wall clock showed when it had stepped back and these parameters took over; else null. */
        private @Nullable Window steppedBackTo;

        /** A window's index and its first and last instant plus one, in nanoseconds since 1970. */
        private record Window(long index, long start, long end) {}

        Parameters(Limit limit) {
            super(limit);
            this.permits = limit.rate().permits();
            this.period = limit.rate().period().toNanos();
            this.calendar = limit.calendar();
            // The bits above these hold the index of a window until the year 2262. The permits of the limit fit into
            // these, because Algorithm.flaw refuses more than half a permit a nanosecond.
            this.bits = Long.SIZE - 1 - Long.numberOfLeadingZeros(period);
            this.maxTaken = (1L << bits) - 1;
            this.rules = limit.zone().getRules();
            this.standard = rules.getStandardOffset(Instant.EPOCH).getTotalSeconds() * SECOND;
        }

        private Window windowAt(long now) {
            Window window = current;
            if (now - window.start < 0 || now - window.end >= 0) {
                long index = index(now);
                long end = start(index + 1);
                // Clocks that are set back show a part of the window before once more: by less than two periods.
                for (int ahead = 0; ahead < 2 && now - end >= 0; ahead++) {
                    index++;
                    end = start(index + 1);
                }
                window = new Window(index, start(index), end);
                current = window;
            }
            return window;
        }

        private long index(long now) {
            return calendar == null ? Math.floorDiv(now + offset(now), period) : calendar.index(instant(now));
        }

        /**
         * Nanoseconds by which the windows are ahead of those of UTC: the offset of the zone, without the full periods by
         * which its clocks have been moved since 1970. So an hour that comes twice is two windows.
         */
        private long offset(long now) {
            long total = rules.getOffset(instant(now)).getTotalSeconds() * SECOND;
            return standard + (total - standard) % period;
        }

        /** The first instant of a window. If the clocks skip it, the window starts when they are moved. */
        private long start(long index) {
            if (calendar != null) {
                long seconds = calendar.start(index).getEpochSecond();
                return Math.max(-LAST_SECOND, Math.min(LAST_SECOND, seconds)) * SECOND;
            }
            long local = index * period;
            long before = local - offset(local - DAY);
            long start = local - offset(before);
            if (start >= before) {
                return start;
            }
            Instant moved = rules.previousTransition(instant(before + 1)).getInstant();
            return Math.max(start, moved.getEpochSecond() * SECOND);
        }

        private static Instant instant(long nanos) {
            return Instant.ofEpochSecond(Math.floorDiv(nanos, SECOND), Math.floorMod(nanos, SECOND));
        }

        /** Nanoseconds until a window starts. */
        private long nanosTo(long index, long now) {
            Window window = windowAt(now);
            if (index == window.index) {
                return 0;
            }
            return Math.max(0, (index == window.index + 1 ? window.end : start(index)) - now);
        }

        private long taken(long word) {
            return word & maxTaken;
        }

        /** The word as of now: a later window is empty, an earlier time changes nothing (I2). */
        private long advance(long word, long now) {
            long window = windowAt(now).index;
            return window > word >> bits ? window << bits : word;
        }

        /** The word after a call of at most the permits of a window. */
        private long wordAfter(long word, long permits, long now) {
            long current = advance(word, now);
            return taken(current) + permits <= this.permits
                    ? current + permits
                    : (((current >> bits) + 1) << bits) + permits;
        }

        /** The word without permits of a grant in its window. */
        private long without(long word, Grant grant, long permits) {
            return taken(word) == permits && grant.more() instanceof Long opened ? opened : word - permits;
        }

        @Override
        Cell full(long now) {
            return new FixedWindow(this, windowAt(now).index << bits);
        }

        @Override
        void goBackTo(long at) {
            super.goBackTo(at);
            steppedBackTo = windowAt(at);
        }

        /** After a step back, a cell more than a window ahead goes on in the present one, with what is taken. */
        @Override
        Cell resume(Cell before, long at) {
            FixedWindow known = (FixedWindow) before;
            long word = known.word;
            Window back = steppedBackTo;
            if (back != null && start(word >> bits) - at > period) {
                return new FixedWindow(this, (back.index << bits) + taken(word));
            }
            return known.parameters().whole() == whole()
                    ? new Continuing(this, word, known.origin())
                    : new FixedWindow(this, word);
        }

        @Override
        long idleNanos() {
            return period;
        }
    }
}
