package io.ratelimited.core.memory;

import org.jspecify.annotations.Nullable;

/** Permits that a cell has granted, and what the cell wrote down to take them back. Used by one thread at a time. */
class Grant {

    private final long permits;
    private long mark;
    private long instant;
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

    /** When the permits were, or will be, used; in the time of a cell that needs it. */
    final long instant() {
        return instant;
    }

    final void instant(long value) {
        instant = value;
    }

    /** What else the cell needs to take the permits back. */
    final void mark(Object value) {
        more = value;
    }

    final @Nullable Object more() {
        return more;
    }
}
