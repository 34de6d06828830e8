package io.ratelimited.core.memory;

import org.jspecify.annotations.Nullable;

/** Permits that a cell has granted, and what the cell wrote down to take them back. Used by one thread at a time. */
class Grant {

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

    /** When the permits were used, in the units of the cell; {@link #UNKNOWN} if the call had to wait. */
    long instant() {
        return time;
    }

    final long time() {
        return time;
    }

    final void time(long value) {
        time = value;
    }

    /** What else the cell needs to take the permits back. */
    final void mark(Object value) {
        more = value;
    }

    final @Nullable Object more() {
        return more;
    }
}
