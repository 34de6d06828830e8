package io.ratelimited.core.internals.memory;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What calls of one key were charged. What a call had reserved counts at the instant of its grant, whenever the call ends, and what
 * it has cost beyond that at the instant of its end:
 *
 * <ul>
 *   <li>H1 {@link #state} is the cell of a key that has seen these charges in the order of their instants, and nothing else. So a
 *       charge that the limit has given back since its grant counts nothing.
 *   <li>H2 At most twice as many instants are kept as the limit has permits, which is as many as calls are granted within the time
 *       that it needs to give all of them back, and at most {@value #MOST}. The oldest become one cell. What is charged at an
 *       instant before them later on counts at the last of them, unless it alone would have been given back since.
 *   <li>H3 What was reserved before a reset does not count.
 * </ul>
 *
 * Instants are in the time of the budget's cells. Immutable.
 */
final class Charges {

    static final int MOST = 32;

    static final Charges NONE = new Charges(null, 0, new long[0], false, 0);

    /** The oldest charges as one cell, which is copied before use; null for none. */
    private final @Nullable Cell before;
    /** The last instant of {@link #before}. */
    private final long beforeAt;
    /** In order of time: at 2i an instant, at 2i + 1 the permits charged at it. */
    private final long[] entries;

    private final boolean wasReset;
    /** If it was: when. */
    private final long resetAt;

    private Charges(@Nullable Cell before, long beforeAt, long[] entries, boolean wasReset, long resetAt) {
        this.before = before;
        this.beforeAt = beforeAt;
        this.entries = entries;
        this.wasReset = wasReset;
        this.resetAt = resetAt;
    }

    /**
     * The end of a call.
     *
     * @param reserved permits to charge of those that the call had reserved; to give back, if it is less than 0
     * @param excess permits that the call has cost beyond those, 0 or more
     * @param reservedAt the instant at which it reserved; {@link Cell.Grant#UNKNOWN} for the present
     * @param grantedAt the instant from which on it could go
     * @param calendar whether these are instants of the wall clock
     */
    record End(long reserved, long excess, long reservedAt, long grantedAt, boolean calendar) {}

    /** Of a key that has been charged nothing since it was reset. */
    static Charges afterReset(long now) {
        return new Charges(null, 0, NONE.entries, true, now);
    }

    /** The charges of a key whose budget nobody else has spent. */
    static Charges of(Cell budget) {
        return new Charges(budget, Cell.Grant.UNKNOWN, NONE.entries, false, 0);
    }

    /** Nanoseconds until nothing that was reserved before a reset would count any more. */
    long nanosToForget(long now, long idleNanos) {
        return wasReset ? Math.max(0, resetAt + idleNanos - now) : 0;
    }

    /** The charges when the budget is in its initial state, to which all that is granted adds up. */
    Charges settled() {
        return wasReset ? new Charges(null, 0, NONE.entries, true, resetAt) : NONE;
    }

    /** The charges after the end of a call. Null when the limit has changed. */
    @Nullable
    Charges after(End end, CellParameters budget, long now) {
        Charges all = this;
        boolean known = end.calendar == budget.followsCalendar() && !(wasReset && end.reservedAt - resetAt < 0);
        if (end.reservedAt == Cell.Grant.UNKNOWN) {
            all = all.with(budget, now, end.reserved, now);
        } else if (known && end.reserved != 0) {
            all = all.with(budget, end.grantedAt - now < 0 ? end.grantedAt : now, end.reserved, now);
        }
        return all == null || end.excess == 0 ? all : all.with(budget, now, end.excess, now);
    }

    private @Nullable Charges with(CellParameters budget, long instant, long permits, long now) {
        int position = entries.length;
        while (position > 0 && entries[position - 2] - instant >= 0) {
            position -= 2;
        }
        boolean present = position < entries.length && entries[position] == instant;
        if (present) {
            long[] changed = entries.clone();
            long sum = entries[position + 1] + permits;
            changed[position + 1] = sum < 0 ? permits < 0 ? 0 : Long.MAX_VALUE : sum;
            return entries(changed);
        }
        if (permits <= 0) {
            return this;
        }
        if (position == 0 && before != null && beforeAt != Cell.Grant.UNKNOWN && instant - beforeAt < 0) {
            return withEarlier(before, budget, instant, permits, now);
        }
        long[] more = Arrays.copyOf(entries, entries.length + 2);
        System.arraycopy(entries, position, more, position + 2, entries.length - position);
        more[position] = instant;
        more[position + 1] = permits;
        return more.length / 2 <= Math.min(MOST, 2 * budget.limit().capacity())
                ? entries(more)
                : entries(more).withoutOldest(budget);
    }

    private Charges entries(long[] changed) {
        return new Charges(before, beforeAt, changed, wasReset, resetAt);
    }

    /** H2. */
    private @Nullable Charges withEarlier(Cell known, CellParameters budget, long instant, long permits, long now) {
        Cell alone = charge(budget.initial(instant), permits, instant);
        Cell all = charge(known.copy(), permits, beforeAt);
        if (alone == null || all == null) {
            return null;
        }
        return alone.nanosToInitial(now) == 0 ? this : new Charges(all, beforeAt, entries, wasReset, resetAt);
    }

    private @Nullable Charges withoutOldest(CellParameters budget) {
        long oldest = entries[0];
        Cell all = charge(before == null ? budget.initial(oldest) : before.copy(), entries[1], oldest);
        long[] rest = Arrays.copyOfRange(entries, 2, entries.length);
        return all == null ? null : new Charges(all, oldest, rest, wasReset, resetAt);
    }

    /** H1. Null when the limit has changed. */
    @Nullable
    Cell state(CellParameters budget, long now) {
        Cell cell = before != null ? before.copy() : budget.initial(entries.length == 0 ? now : entries[0]);
        for (int i = 0; i < entries.length && cell != null; i += 2) {
            if (entries[i + 1] > 0) {
                cell = charge(cell, entries[i + 1], entries[i]);
            }
        }
        return cell;
    }

    private static @Nullable Cell charge(Cell cell, long permits, long at) {
        Cell charged = cell;
        while (!charged.charge(permits, at)) {
            Cell next = charged.parameters().change() == null ? charged.divide(at) : null;
            if (next == null) {
                return null;
            }
            charged = next;
        }
        return charged;
    }

    /** The charges under other parameters of the same algorithm. The clock may have stepped back. */
    Charges under(CellParameters budget, long at) {
        long[] moved = entries.clone();
        for (int i = 0; i < moved.length; i += 2) {
            moved[i] = earlier(moved[i], at);
        }
        return new Charges(
                before == null ? null : budget.follow(before.copy(), at),
                beforeAt == Cell.Grant.UNKNOWN ? beforeAt : earlier(beforeAt, at),
                moved,
                wasReset,
                earlier(resetAt, at));
    }

    private static long earlier(long one, long other) {
        return one - other < 0 ? one : other;
    }
}
