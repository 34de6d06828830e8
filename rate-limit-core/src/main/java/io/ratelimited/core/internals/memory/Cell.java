package io.ratelimited.core.internals.memory;

import org.jspecify.annotations.Nullable;

/**
 * The state of one key under one limit. Each method is a step of an algorithm: time is an argument, and a cell uses no
 * clock, map, thread or log. Thread-safe.
 *
 * <p>Invariants, cited by tests:
 *
 * <ul>
 *   <li>I1 A rejection changes no state.
 *   <li>I2 State moves forward only: a stale time neither creates permits nor rewinds the clock of others.
 *   <li>I3 A wait is rounded up to the nanosecond and is decided once; it never moves later.
 *   <li>I4 Once {@link #retire retired}, a cell returns {@link #MOVED}, and only its successor changes.
 * </ul>
 */
abstract class Cell {

    /** Refused for good: more permits than can ever be had at once, or closed. Complement of an endless wait. */
    static final long NEVER = Long.MIN_VALUE;
    /** This cell has been retired; look the key up again. */
    static final long MOVED = Long.MIN_VALUE + 1;
    /** Refused without a retry-after, which is too far ahead to compute. */
    static final long UNKNOWN = Long.MIN_VALUE + 2;

    /** The parameters that all cells of a limit share. */
    abstract CellParameters parameters();

    /**
     * The one primitive: takes the permits if they can be had within the given wait.
     *
     * @param permits at least 1
     * @param now in the time of {@link CellParameters#followsCalendar}
     * @param maxWait inclusive, in nanoseconds, at most {@link PermitTime#FAR}; less than 0 if the wall clock has to catch up
     *     for longer than the caller waits
     * @param into receives the data that {@link #giveBack} needs; null when nothing will be refunded
     * @return the wait in nanoseconds (0 or more) when taken; when rejected, the complement ({@code ~}) of the time after
     *     which the same call would be taken, or {@link #NEVER}, {@link #UNKNOWN}, {@link #MOVED}
     */
    abstract long reserve(long permits, long now, long maxWait, @Nullable Grant into);

    /**
     * {@link #reserve} without waiting, for a caller that only needs to know whether it was admitted. A rejection may return
     * a time that is too short, because computing the exact one would double the cost.
     */
    long take(long permits, long now) {
        return reserve(permits, now, 0, null);
    }

    /** Returns the result that {@link #reserve} would return, and changes nothing. */
    abstract long peek(long permits, long now, long maxWait);

    /**
     * Gives back as much of a grant as is possible without creating a permit.
     *
     * @param permits at most those of the grant that have not been refunded
     * @return false when the {@link #divide successor} of this cell, which may exist already, has to refund
     */
    abstract boolean giveBack(Grant grant, long permits, long now);

    /**
     * Takes permits that have been used already, into debt if need be.
     *
     * @param permits at least 1; permits that change no later decision are not counted
     * @return false when this cell was retired, or its {@link #divide successor} has to be charged
     */
    abstract boolean charge(long permits, long now);

    /**
     * Retires this cell and returns one that has more permits of the same budget, at most until it is full; this cell for
     * windows, whose permits come back by themselves.
     *
     * @param permits at least 1
     */
    Cell refilled(long permits, long now) {
        return this;
    }

    /** Retires this cell and returns one that can do what this one could not; null when it was retired before. */
    @Nullable
    Cell divide(long now) {
        return null;
    }

    /** Returns whether {@link #dated} would let a grant of this cell refund more later. */
    boolean needsDate(Grant grant) {
        return false;
    }

    /** Retires this cell and returns one that knows when permits are used; null when it was retired before. */
    @Nullable
    Cell dated(long now) {
        return null;
    }

    /** Returns whether this cell has the grants of the other one, because both continue the same cell. */
    boolean hasOriginOf(Cell other) {
        return false;
    }

    /** The cell of the budget alone, without the block of its key. */
    Cell budget() {
        return this;
    }

    /**
     * Returns whether a block of the key has to be kept, though the budget may be initial.
     *
     * @param at in the time of blocks
     */
    boolean keepsBlock(long at) {
        return false;
    }

    /** Notes that this is the cell of a key which was reset: what was reserved before does not count against it. */
    void forgetBefore(long now) {}

    /** A number that differs after each admitted call, and so shows whether another call came between two looks. */
    abstract long stamp();

    /** Returns how many calls of one permit each would be admitted immediately. */
    abstract long remaining(long now);

    /** Nanoseconds until {@link #remaining} is at its largest; 0 when it is. */
    long nanosToFull(long now) {
        return nanosToInitial(now);
    }

    /** Nanoseconds until this cell is in the initial state of a key; 0 when it is, and may be dropped. */
    abstract long nanosToInitial(long now);

    /** Retires this cell and returns a twin that continues with the state. */
    abstract Cell retire();

    /**
     * Retires this cell in one step if it is in the initial state of a key. A call that comes first keeps the cell, so that
     * the permits of the call can still be refunded.
     */
    abstract boolean retireIfInitial(long now);

    /** The number of keys that the limit itself could have in the memory of this cell; 1 for most. */
    int weight() {
        return 1;
    }

    /** Returns whether {@link #weight} may have become larger since it was last asked. */
    boolean hasGrown() {
        return false;
    }

    /** A cell that covers this one, which nobody uses any more, and takes no more memory than one of the limit itself. */
    Cell compacted() {
        return this;
    }

    /** The cell under the newest parameters; this cell if its own are the newest. */
    final Cell newest() {
        Cell newest = this;
        for (CellParameters.Change change; (change = newest.parameters().change()) != null; ) {
            newest = change.next().follow(newest.retire(), change.at());
        }
        return newest;
    }

    /** The state with which a cell with other parameters can go on; null for none. This cell is retired. */
    @Nullable
    Cell kept() {
        return this;
    }

    /** A twin with the state of this cell. */
    abstract Cell copy();

    /** Returns whether this cell is at least as spent as the other one with the same parameters, for every later call. */
    abstract boolean covers(Cell other);

    /** Makes this cell {@link #covers cover} the other one, too. */
    abstract void absorb(Cell other);

    /** Permits that a cell has granted, and the data that the cell needs to take them back. Used by one thread at a time. */
    static class Grant {

        /** An instant before all others. */
        static final long UNKNOWN = -1L << 61;

        private final long permits;
        private long mark;
        private long time;
        private @Nullable Object more;

        Grant(long permits) {
            this.permits = permits;
        }

        final long permits() {
            return permits;
        }

        /** A time, slot or window of the cell. */
        final long mark() {
            return mark;
        }

        final void mark(long value) {
            mark = value;
        }

        /** Time at which the permits were used, in the units of the cell; {@link #UNKNOWN} if the call had to wait. */
        long instant() {
            return time;
        }

        final long time() {
            return time;
        }

        final void time(long value) {
            time = value;
        }

        /** Returns additional data that the cell needs to take the permits back; null for none. */
        final @Nullable Object more() {
            return more;
        }

        final void more(Object value) {
            more = value;
        }
    }
}
