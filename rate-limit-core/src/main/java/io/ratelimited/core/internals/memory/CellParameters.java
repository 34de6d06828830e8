package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * A limit in the units of its algorithm: the part that all cells of the limit share. Immutable, except for the link to the
 * parameters that replace it.
 */
abstract class CellParameters {

    private final Limit limit;
    private final boolean followsCalendar;

    /** The limit before all changes, for whose keys there is memory. */
    private Limit sized;

    private volatile @Nullable Change change;
    /** The state of a key that has seen no call; null when every key starts full. */
    private @Nullable Cell initial;
    /**
     * Time at which these parameters replaced others, and the time after that in which a cell counts as spent; 0 if they
     * replaced none.
     */
    private long changedAt;

    private long nanosToRemember;
    /** Whether one cell has these parameters, because the numbers of its caller have changed. */
    private boolean ofOneCell;
    /** The parameters of the limit, and what makes these numbers of some callers from it; null for those of the limit itself. */
    private @Nullable CellParameters whole;

    private @Nullable UnaryOperator<Limit> numbers;
    /** As {@link CellKeys} name them, where these numbers have other windows than the cells of keys; else empty. */
    private String ownWindow = "";
    /** The time that the wall clock showed when it had stepped back and these parameters took over; else null. */
    private @Nullable Long wentBackTo;

    CellParameters(Limit limit) {
        this.limit = limit;
        this.sized = limit;
        this.followsCalendar = limit.algorithm().followsCalendar();
    }

    final Limit limit() {
        return limit;
    }

    /** The parameters of the budget alone, without those of blocks. */
    CellParameters budget() {
        return this;
    }

    /**
     * Notes that these are the numbers of some callers under a limit; called once, before use.
     *
     * @param own makes them from the limit; null if they are those of the limit
     */
    void within(CellParameters limit, @Nullable UnaryOperator<Limit> own) {
        whole = limit;
        numbers = own;
    }

    /** The parameters of the limit; these if they are no numbers of some callers. */
    final CellParameters whole() {
        CellParameters limit = whole;
        return limit == null ? this : limit;
    }

    /** The limit before all changes, for whose keys there is memory: also of callers with their own numbers. */
    final Limit sized() {
        return whole().budget().sized;
    }

    /** What makes these numbers of some callers from the limit; null for those of the limit itself. */
    final @Nullable UnaryOperator<Limit> numbers() {
        return numbers;
    }

    /** Returns whether cells count alike under both, also after a change of the limit, which a caller's own numbers do not follow. */
    final boolean countsAs(CellParameters other) {
        return this == other
                || (whole() == other.whole() && (numbers == null) == (other.numbers == null) && hasNumbersOf(other));
    }

    final boolean hasNumbersOf(CellParameters other) {
        return limit.rate().equals(other.limit.rate()) && limit.burst() == other.limit.burst();
    }

    /** Notes that these numbers have windows, and so cells, of their own; called once, before use. */
    final void countIn(String window) {
        ownWindow = window;
    }

    /** The windows that these numbers have of their own; empty for none. */
    final String ownWindow() {
        return ownWindow;
    }

    /** Null unless the wall clock had stepped back. */
    final @Nullable Long wentBackTo() {
        return wentBackTo;
    }

    /** Returns whether cells count in wall-clock time instead of monotonic time. */
    final boolean followsCalendar() {
        return followsCalendar;
    }

    /** A cell that has seen no call. Its state is that of a cell which has been idle since the limit was made. */
    final Cell initial(long now) {
        Cell begun = initial;
        return begun == null ? full(now) : begun.copy();
    }

    /** A cell that has been idle for long. */
    abstract Cell full(long now);

    /** Sets the state with which every key starts; called before use. */
    final void beginWith(Cell cell) {
        initial = cell;
    }

    /**
     * Lets a new key begin as if it had existed under the replaced parameters, and lets none be forgotten sooner because its
     * burst shrinks; called once, before use.
     */
    void inherit(CellParameters before, long at) {
        sized = before.sized;
        if (!continues(before)) {
            return;
        }
        changedAt = at;
        nanosToRemember = nanosToRemember(before, at);
        if (initial != null || before.initial != null) {
            initial = follow(before.initial(at), at);
        }
    }

    /** {@link #inherit} for the one cell of a caller whose numbers change; called once, before use. */
    final void inheritOfOneCell(CellParameters before, long at) {
        ofOneCell = true;
        inherit(before, at);
    }

    /**
     * Returns whether the numbers of a caller have changed before. From then on its bucket keeps as many permits as fit: numbers that
     * take turns would else leave it the share of the share, and soon nothing.
     */
    final boolean isOfOneCell() {
        return ofOneCell;
    }

    /** How long cells have to be kept which had other parameters before, although they are full. */
    final long nanosToRemember(CellParameters before, long at) {
        boolean shrinks = isConstant(limit) || limit.burst() < before.limit.burst();
        return Math.max(
                shrinks ? before.idleNanos() : 0, before.ofOneCell ? before.nanosToRemember : before.nanosToForget(at));
    }

    /** Returns whether one permit takes longer to come back than under others. */
    final boolean isSlowerThan(CellParameters other) {
        if (isConstant(limit) || isConstant(other.limit)) {
            return isConstant(other.limit);
        }
        Rate own = limit.rate();
        Rate that = other.limit.rate();
        return (double) own.period().toNanos() / own.permits()
                > (double) that.period().toNanos() / that.permits();
    }

    /** Tells parameters of the calendar that they take over because the wall clock has stepped back; called once, before use. */
    void goBackTo(long at) {
        wentBackTo = at;
    }

    /**
     * Returns how long a cell has to be kept although it is full; 0 for no longer. A burst that has shrunk is soon full, and may grow
     * again: a key forgotten meanwhile would find the larger burst full a second time. 0 for the one cell of a caller
     * ({@link #nanosUnused}).
     */
    final long nanosToForget(long now) {
        return nanosToRemember == 0 || ofOneCell ? 0 : Math.max(0, nanosToRemember - Math.max(0, now - changedAt));
    }

    /**
     * Returns how long a bucket has to be full without a call until it is in its initial state; 0 unless the numbers of its caller have
     * changed. What is used under faster numbers would be missing under those before, too, so only time without a call counts. At most
     * nine years, which {@link PermitTime} reaches at every rate.
     */
    final long nanosUnused() {
        return ofOneCell ? Math.min(nanosToRemember, PermitTime.FAR >> 2) : 0;
    }

    /**
     * The cell of a key after a change of its limit. It has the state of the cell before, or the initial state when that cell
     * counted in another way.
     *
     * @param at when the limit changed, in the time of these parameters
     */
    Cell follow(Cell before, long at) {
        Cell state = before.kept();
        return state != null && keepsStateOf(before) ? resume(state, at) : initial(at);
    }

    /** The cell of a key that was in its initial state when its numbers changed: that of a key without calls, with the block before. */
    Cell begin(Cell before, long at) {
        return initial(at);
    }

    /** Returns whether {@link #follow} goes on with the state of the cell. */
    final boolean keepsStateOf(Cell before) {
        Cell state = before.kept();
        return state != null && continues(state.parameters());
    }

    /** Returns whether these parameters count as others do: only the number of permits or their times differ. */
    private boolean continues(CellParameters before) {
        Limit old = before.limit;
        return old.algorithm() == limit.algorithm()
                && (limit.algorithm().family() != Family.WINDOW
                        || isConstant(old)
                        || isConstant(limit)
                        || (old.rate().period().equals(limit.rate().period())
                                && Objects.equals(old.calendar(), limit.calendar())
                                && old.slots() == limit.slots()
                                && old.zone().normalized().equals(limit.zone().normalized())));
    }

    /** Returns whether the limit counts nothing, so that it has no windows. */
    private static boolean isConstant(Limit limit) {
        return limit.isClosed() || limit.isUnlimited();
    }

    /** A cell with the state of a cell of the same algorithm, which nobody uses any more. */
    abstract Cell resume(Cell before, long at);

    /** Returns how long after its last call without debt a cell is in its initial state again, in nanoseconds. */
    abstract long idleNanos();

    /** Retires these parameters: each cell follows the link at its next use. */
    void replaceBy(CellParameters next, long at) {
        change = new Change(next, at);
    }

    final @Nullable Change change() {
        return change;
    }

    /**
     * The replacement of parameters.
     *
     * @param at when, in the time of the new parameters
     */
    record Change(CellParameters next, long at) {}
}
