package io.ratelimited.core;

import org.jspecify.annotations.Nullable;

/**
 * The state of one key under one limit. A step of an algorithm: time is an argument, and there is no clock, map, thread
 * or log in it. Thread-safe.
 *
 * <p>Invariants, cited by tests:
 *
 * <ul>
 *   <li>I1 A refusal changes no state.
 *   <li>I2 State moves forward only: a stale time neither creates permits nor rewinds the clock of others.
 *   <li>I3 A wait is rounded up to the nanosecond and is decided once; it never moves later.
 *   <li>I4 Once {@link #retire retired}, a cell answers {@link #MOVED} and its state goes on in its successor only.
 * </ul>
 */
abstract class Cell {

    /** Refused for good: more permits than can ever be had at once, or closed. Complement of an endless wait. */
    static final long NEVER = Long.MIN_VALUE;
    /** This cell has ended; look the key up again. */
    static final long MOVED = Long.MIN_VALUE + 1;
    /** Refused, and no time can be told. */
    static final long UNKNOWN = Long.MIN_VALUE + 2;

    /** What all cells of a limit share. */
    abstract Terms terms();

    /**
     * The one primitive: takes the permits if they can be had within the given wait.
     *
     * @param permits at least 1
     * @param now in the time of {@link Terms#followsCalendar}
     * @param maxWait inclusive, in nanoseconds, at most {@link PermitTime#FAR}
     * @param into filled with what a {@link #cancel} needs; null when nobody will cancel
     * @return the wait in nanoseconds (0 or more) when taken; when refused, the complement ({@code ~}) of the time after
     *     which the same call would be taken, or {@link #NEVER}, {@link #UNKNOWN}, {@link #MOVED}
     */
    abstract long reserve(long permits, long now, long maxWait, @Nullable CellReservation into);

    /**
     * {@link #reserve} for a caller who goes at once or not at all and asks no more than whether. A refusal may report a
     * time that is too short, since the exact one would cost as much as all the rest.
     */
    long take(long permits, long now) {
        return reserve(permits, now, 0, null);
    }

    /** What {@link #reserve} would answer. */
    abstract long peek(long permits, long now, long maxWait);

    /**
     * Gives back what can be given back of a reservation without ever creating a permit.
     *
     * @return false when another cell has to do it, the {@link #divide successor} of this one, which may exist already
     */
    abstract boolean cancel(CellReservation reservation, long now);

    /** Ends this cell and returns one that can do what a {@link #cancel} could not; null when this cell has ended. */
    @Nullable
    Cell divide() {
        return null;
    }

    /** Whether this cell goes on where the other one was {@link #divide divided}. */
    boolean succeeds(Cell other) {
        return false;
    }

    /** Whatever is different after each call that was admitted; to see that no other came between. */
    abstract long stamp();

    /** How many calls of one permit each would go at once. */
    abstract long remaining(long now);

    /** Nanoseconds until {@link #remaining} is as much as it ever is; 0 when it is. */
    long nanosToWhole(long now) {
        return nanosToFresh(now);
    }

    /** Nanoseconds until this cell equals a fresh one; 0 when it does, and may be dropped. */
    abstract long nanosToFresh(long now);

    /** Ends this cell and returns its twin, which goes on with its state. */
    abstract Cell retire();

    /** The cell that goes on under the terms that have replaced this one's; retires this cell. */
    Cell follow(Terms.Change change) {
        return change.next().resume(retire().leave(change.leftAt()), change.resumedAt());
    }

    /** Admits waiting callers that may go now, after the terms have changed. */
    void serve(long now) {}

    /** A twin with the state of this cell. */
    abstract Cell copy();

    /** Makes this cell at least as spent as the other one of the same terms, for every later call. */
    abstract void absorb(Cell other);

    /** What is left at a time, for a cell of other terms to go on with. */
    abstract Budget leave(long now);
}
