package io.ratelimited.core.memory;

import org.jspecify.annotations.Nullable;

/** Permits that a cell has granted, and what the cell wrote down to take them back. Used by one thread at a time. */
class Grant {

    private final long permits;
    private long mark;
    private @Nullable Object before;
    private @Nullable Object after;

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

    /** The states of the cell around this grant. */
    final void mark(Object stateBefore, Object stateAfter) {
        before = stateBefore;
        after = stateAfter;
    }

    final @Nullable Object before() {
        return before;
    }

    final @Nullable Object after() {
        return after;
    }
}
