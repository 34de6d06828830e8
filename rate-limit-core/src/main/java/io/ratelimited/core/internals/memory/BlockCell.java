package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import io.ratelimited.core.internals.memory.block.BlockRule;
import java.util.function.LongPredicate;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The state of one key under a limit that blocks keys ({@link Limit#block}): the cell of its budget, its block as a word of
 * {@link BlockRule}, and where the budget does not show it, how much of the budget the key itself has been charged. It is
 * copied, evicted and merged like any other cell, so a block is kept wherever a budget is.
 *
 * <ul>
 *   <li>L1 Only a key that is out of permits by what it was charged itself starts a block: permits that calls in flight hold, or
 *       that other keys have spent which share the state of evicted keys, are no evidence. They are in the budget and not in
 *       {@link #own}.
 *   <li>L2 A block starts once: all changes of the word are made under the monitor, and none after {@link #retire}.
 * </ul>
 *
 * Times of budgets are those of their cells. Times of blocks, here {@code at}, are monotonic nanoseconds since the limit was
 * made, whatever the wall clock shows.
 */
final class BlockCell extends Cell {

    /** The word of a retired cell. No block has it. */
    private static final long RETIRED = Long.MIN_VALUE;

    /** The result of a step that may begin a block. */
    enum Step {
        /** No block has started. */
        NONE,
        BEGUN,
        /** This cell was retired before. */
        MOVED
    }

    private final Parameters parameters;
    private final Cell budget;
    /** Written under the monitor. */
    private volatile long word;
    /**
     * What calls of the key have been charged. Null for what {@link #budget} shows; under a limit that blocks by charge, for nothing
     * yet. Written under the monitor.
     */
    private volatile @Nullable Charges own;

    private BlockCell(Parameters parameters, Cell budget, long word, @Nullable Charges own) {
        this.parameters = parameters;
        this.budget = budget;
        this.word = word;
        this.own = own;
    }

    /** Nanoseconds for which the key is still blocked; 0 when it is not. */
    long left(long at) {
        long known = word;
        return parameters.blocks && known != RETIRED ? BlockRule.left(known, at) : 0;
    }

    /** The number of the last block; 0 for none. */
    int level() {
        long known = word;
        return known == RETIRED ? 0 : BlockRule.level(known);
    }

    /** Returns whether {@link #charge(Charges.End, long, long, long)} has to be told when a call ends. */
    boolean countsOwn() {
        return parameters.byCharge || own != null;
    }

    /** Returns whether a block or its level has to be kept; forgets one that is forgiven. */
    @Override
    synchronized boolean keepsBlock(long at) {
        if (word != RETIRED && parameters.rule.untilForgiven(word, at) == 0) {
            word = BlockRule.NONE;
        }
        return word != RETIRED && word != BlockRule.NONE;
    }

    /**
     * Judges a call that was rejected for want of permits.
     *
     * @param now in the time of the budget
     * @param patience the longest wait that the policy allows
     * @param deferred returns whether a rejection at a time is not to be judged yet
     */
    synchronized Step reject(long permits, long now, long patience, long at, LongPredicate deferred) {
        if (word == RETIRED) {
            return Step.MOVED;
        }
        return parameters.byCharge ? Step.NONE : judge(permits, now, patience, at, deferred);
    }

    /** Begins a block, unless the key is blocked. */
    synchronized Step offend(long at) {
        if (word == RETIRED) {
            return Step.MOVED;
        }
        if (!parameters.blocks || BlockRule.left(word, at) > 0) {
            return Step.NONE;
        }
        word = parameters.rule.offend(word, at);
        return Step.BEGUN;
    }

    /**
     * Counts what a call was charged when it ended, and judges it. All that is granted adds up to the budget: while that is in its
     * initial state, nothing counts.
     *
     * @param patience the longest wait of a next call that the policy allows; negative if the call is not to be judged
     */
    synchronized Step charge(Charges.End end, long now, long patience, long at) {
        if (word == RETIRED || parameters.change() != null) {
            return Step.MOVED;
        }
        if (countsOwn()) {
            Charges known = own;
            Charges charged = known == null ? Charges.NONE : known;
            charged = budget.nanosToInitial(now) == 0 ? charged.settled() : charged.after(end, parameters.budget, now);
            if (charged == null) {
                return Step.MOVED;
            }
            own = charged;
        }
        return parameters.byCharge && patience >= 0 ? judge(1, now, patience, at, any -> false) : Step.NONE;
    }

    private Step judge(long permits, long now, long patience, long at, LongPredicate deferred) {
        if (!parameters.blocks || BlockRule.left(word, at) > 0) {
            return Step.NONE;
        }
        Charges known = own;
        if (known == null && parameters.byCharge) {
            return Step.NONE;
        }
        Step judged = judge(budget, permits, now, patience);
        if (judged == Step.BEGUN && known != null) {
            judged = judge(known.state(parameters.budget, now), permits, now, patience);
        }
        if (judged != Step.BEGUN) {
            return judged;
        }
        return deferred.test(at) ? Step.NONE : offend(at);
    }

    private static Step judge(@Nullable Cell cell, long permits, long now, long patience) {
        long outcome = cell == null ? MOVED : cell.peek(permits, now, patience);
        return outcome == MOVED ? Step.MOVED : outcome >= 0 || outcome == NEVER ? Step.NONE : Step.BEGUN;
    }

    /** A twin that continues with the state of evicted keys, of which the key itself may have spent nothing. */
    BlockCell ofOthers() {
        return new BlockCell(parameters, budget.copy(), word, Charges.NONE);
    }

    @Override
    synchronized void forgetBefore(long now) {
        own = parameters.byCharge ? Charges.afterReset(now) : null;
    }

    @Override
    Cell budget() {
        return budget;
    }

    @Override
    CellParameters parameters() {
        return parameters;
    }

    @Override
    long reserve(long permits, long now, long maxWait, @Nullable Grant into) {
        return budget.reserve(permits, now, maxWait, into);
    }

    @Override
    long take(long permits, long now) {
        return budget.take(permits, now);
    }

    @Override
    long peek(long permits, long now, long maxWait) {
        return parameters.change() == null ? budget.peek(permits, now, maxWait) : MOVED;
    }

    @Override
    boolean giveBack(Grant grant, long permits, long now) {
        return budget.giveBack(grant, permits, now);
    }

    @Override
    boolean charge(long permits, long now) {
        return budget.charge(permits, now);
    }

    @Override
    synchronized @Nullable Cell divide(long now) {
        return word == RETIRED ? null : around(budget.divide(now));
    }

    @Override
    boolean needsDate(Grant grant) {
        return budget.needsDate(grant);
    }

    @Override
    synchronized @Nullable Cell dated(long now) {
        return word == RETIRED ? null : around(budget.dated(now));
    }

    /** Retires this cell for one with another cell of the budget. */
    private @Nullable Cell around(@Nullable Cell next) {
        if (next == null) {
            return null;
        }
        BlockCell cell = new BlockCell(parameters, next, word, own);
        word = RETIRED;
        return cell;
    }

    @Override
    boolean hasOriginOf(Cell other) {
        return budget.hasOriginOf(other.budget());
    }

    @Override
    long stamp() {
        return budget.stamp();
    }

    @Override
    long remaining(long now) {
        return budget.remaining(now);
    }

    @Override
    long nanosToFull(long now) {
        return budget.nanosToFull(now);
    }

    @Override
    long nanosToInitial(long now) {
        return Math.max(budget.nanosToInitial(now), nanosToForget(now));
    }

    /** What was reserved before a reset may still be charged, and must be known as such. */
    private long nanosToForget(long now) {
        Charges known = own;
        return known == null ? 0 : known.nanosToForget(now, parameters.budget.idleNanos());
    }

    @Override
    synchronized Cell retire() {
        long last = word;
        word = RETIRED;
        return new BlockCell(parameters, budget.retire(), last, own);
    }

    @Override
    synchronized boolean retireIfInitial(long now) {
        // A block may have begun, and the budget be full again, since somebody looked whether this cell may go.
        if (word != BlockRule.NONE || nanosToForget(now) > 0 || !budget.retireIfInitial(now)) {
            return false;
        }
        word = RETIRED;
        return true;
    }

    @Override
    @Nullable
    Cell kept() {
        return budget.kept();
    }

    @Override
    int weight() {
        return budget.weight();
    }

    @Override
    boolean hasGrown() {
        return budget.hasGrown();
    }

    @Override
    synchronized Cell compacted() {
        return new BlockCell(parameters, budget.compacted(), word, own);
    }

    @Override
    synchronized Cell copy() {
        return new BlockCell(parameters, budget.copy(), word, own);
    }

    @Override
    boolean covers(Cell other) {
        BlockCell that = (BlockCell) other;
        return budget.covers(that.budget) && BlockRule.later(word, that.word) == word;
    }

    /** Where one key has both cells, the other one is the later, and knows what the key has been charged since it was reset. */
    @Override
    void absorb(Cell other) {
        BlockCell that = (BlockCell) ((BlockCell) other).copy();
        budget.absorb(that.budget);
        synchronized (this) {
            word = BlockRule.later(word, that.word);
            own = that.own == null && !parameters.byCharge ? Charges.of(that.budget) : that.own;
        }
    }

    /** The parameters of the budget, and the rule of blocks. */
    static final class Parameters extends CellParameters {

        private final CellParameters budget;
        private final BlockRule rule;
        /** Whether keys are blocked: not while the limit is closed or unlimited. */
        private final boolean blocks;

        private final boolean byCharge;

        Parameters(Limit limit, CellParameters budget) {
            super(limit);
            this.budget = budget;
            this.rule = BlockRule.of(limit);
            this.blocks = !limit.isClosed() && !limit.isUnlimited();
            this.byCharge = limit.blocksByCharge();
        }

        @Override
        CellParameters budget() {
            return budget;
        }

        @Override
        Cell full(long now) {
            return new BlockCell(this, budget.initial(now), BlockRule.NONE, null);
        }

        @Override
        void inherit(CellParameters before, long at) {
            budget.inherit(before.budget(), at);
        }

        @Override
        void within(CellParameters limit, @Nullable UnaryOperator<Limit> own) {
            super.within(limit, own);
            budget.within(limit.budget(), own);
        }

        @Override
        void goBackTo(long at) {
            super.goBackTo(at);
            budget.goBackTo(at);
        }

        /** The budget follows last, so that no cell of a budget has moved whose block has not. */
        @Override
        void replaceBy(CellParameters next, long at) {
            super.replaceBy(next, at);
            budget.replaceBy(next.budget(), at);
        }

        @Override
        Cell follow(Cell before, long at) {
            return around(budget.follow(before.budget(), at), before, at);
        }

        @Override
        Cell begin(Cell before, long at) {
            return around(budget.initial(at), before, at);
        }

        private Cell around(Cell next, Cell before, long at) {
            if (!(before instanceof BlockCell old) || !budget.keepsStateOf(old.budget)) {
                return new BlockCell(this, next, BlockRule.NONE, byCharge ? Charges.afterReset(at) : null);
            }
            Charges known = old.own;
            return new BlockCell(this, next, old.word, known == null ? null : known.under(budget, at));
        }

        @Override
        Cell resume(Cell before, long at) {
            return follow(before, at);
        }

        @Override
        long idleNanos() {
            return budget.idleNanos();
        }
    }
}
