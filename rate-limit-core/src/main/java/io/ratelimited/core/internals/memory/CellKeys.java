package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import org.jspecify.annotations.Nullable;

/**
 * Names of cells. A key has one cell, except under a limit that has no windows, because it is closed or unlimited: callers whose
 * own numbers are per hour and per day have a cell for each, as they have a state for each on Redis. One cell for both would begin
 * a window whenever the other caller comes.
 */
final class CellKeys {

    /** No text of a key begins so. */
    private static final String PER = "(per ";

    private static final char END = ')';

    private CellKeys() {}

    /** Returns the name of the windows of a limit; empty if it has none. */
    static String windowOf(Limit limit) {
        Rate rate = limit.rate();
        return limit.algorithm().family() != Algorithm.Family.WINDOW || rate.isClosed() || rate.isUnlimited()
                ? ""
                : PER + (rate.calendar() == null ? rate.period() : rate.calendar()) + END;
    }

    /** Returns the name of the windows that a cell has of its own; empty for none. */
    static String windowOf(Object cellKey) {
        return cellKey instanceof String name && name.startsWith(PER) ? name.substring(0, name.indexOf(END) + 1) : "";
    }

    /** Returns the name of a cell with windows of its own. */
    static String of(String window, @Nullable Object key) {
        return window + (key == null ? "(null)" : key);
    }

    /** Returns the text of the key whose cell has a name. */
    static String textOf(Object cellKey) {
        return cellKey.toString().substring(windowOf(cellKey).length());
    }
}
