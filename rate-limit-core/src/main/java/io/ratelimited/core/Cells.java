package io.ratelimited.core;

import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The cells of the keys of one limit. Thread-safe. */
interface Cells {

    /**
     * The cell of a key, made if there is none.
     *
     * @param current the terms by whose clock the caller read {@code now}
     * @param now the time at which a new cell is fresh: one made later than its first caller would owe him the difference
     */
    Cell get(Object key, Terms current, long now);

    /** The cell of a key, or one as {@link #get} would make it, without remembering the key. */
    Cell peek(Object key, Terms current, long now);

    /** Replaces a cell that answered {@link Cell#MOVED}, if it is still that of the key. */
    void follow(Object key, Cell moved);

    /** The cell in which a cell that could not cancel goes on: its successor, made if there is none; null when it has ended. */
    @Nullable
    Cell successor(Object key, Cell cell);

    /** Gives the key a fresh cell. */
    void reset(Object key);

    /** The limit has other terms now. */
    void termsChanged(Terms terms);

    /** Admits waiting callers that may go under other terms; runs their callbacks, so the caller holds no lock. */
    void serve();

    /** A call of the key has ended or was refused, so that its cell may be of no more use. */
    void ended(Object key);

    long size();

    /** The keys that have a cell now, weakly consistent. */
    Stream<Object> keys();

    /** The newest cell behind a cell whose terms may have been replaced several times. */
    static Cell newest(Cell cell) {
        Cell newest = cell;
        for (Terms.Change change; (change = newest.terms().change()) != null; ) {
            newest = newest.follow(change);
        }
        return newest;
    }

    /** The cells of a limit. */
    static Cells of(Terms terms, SteadyClock clock, long maximumKeys) {
        return terms.limit().algorithm() == Algorithm.CONCURRENCY
                ? new BusyCells(terms, clock)
                : new CachedCells(terms, clock, maximumKeys);
    }
}
