package io.ratelimited.core.memory;

import io.ratelimited.core.Limit;
import org.jspecify.annotations.Nullable;

/**
 * A limit in the units of its algorithm: what all cells of the limit share. Immutable, except for the link to the
 * parameters that replace it.
 */
abstract class CellParameters {

    private final Limit limit;
    private final boolean followsCalendar;

    private volatile @Nullable Change change;
    /** The state with which a new key begins while that state is not yet whole; null when every key begins whole. */
    private @Nullable Cell untouched;

    CellParameters(Limit limit) {
        this.limit = limit;
        this.followsCalendar = limit.algorithm().followsCalendar();
    }

    final Limit limit() {
        return limit;
    }

    /** Whether cells count in wall-clock time instead of monotonic time. */
    final boolean followsCalendar() {
        return followsCalendar;
    }

    /** A cell that has seen no call: in the state of one that has been idle since the limit was made. */
    final Cell fresh(long now) {
        Cell begun = untouched;
        return begun == null || begun.nanosToFresh(now) == 0 ? whole(now) : begun.copy();
    }

    /** A cell that has been idle for long. */
    abstract Cell whole(long now);

    /** Sets the state with which every key begins; called before use. */
    final void beginWith(Cell cell) {
        untouched = cell;
    }

    /** Lets new cells start without stored permits, if the algorithm stores any; called once, before use. */
    void startEmpty() {}

    /** Lets a new key begin as if it had existed under the replaced parameters; called once, before use. */
    final void inherit(CellParameters before, long leftAt, long resumedAt) {
        if (untouched != null || before.untouched != null) {
            untouched = resume(before.fresh(leftAt).leave(leftAt), resumedAt);
        }
    }

    /** A cell that continues from the budget of a cell with other parameters. */
    abstract Cell resume(Budget budget, long now);

    /** How long after its last call without debt a cell equals a fresh one again, in nanoseconds. */
    abstract long idleNanos();

    /** Retires these parameters: each cell follows the link at its next use. */
    final void replaceBy(CellParameters next, long leftAt, long resumedAt) {
        change = new Change(next, leftAt, resumedAt);
    }

    final @Nullable Change change() {
        return change;
    }

    /**
     * The replacement of parameters.
     *
     * @param leftAt when, in the time of the old parameters
     * @param resumedAt when, in the time of the new parameters
     */
    record Change(CellParameters next, long leftAt, long resumedAt) {}
}
