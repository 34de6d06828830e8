package io.ratelimited.core.memory;

import io.ratelimited.core.Limit;
import org.jspecify.annotations.Nullable;

/** A limit whose rate is 0 (closed) or unlimited. Keeps the budget that a replaced cell left, for the cell that replaces this one. */
final class Constant extends Cell {

    private final Parameters parameters;
    private volatile Budget budget;
    private volatile boolean retired;

    private Constant(Parameters parameters, Budget budget) {
        this.parameters = parameters;
        this.budget = budget;
    }

    @Override
    Parameters parameters() {
        return parameters;
    }

    @Override
    long reserve(long permits, long now, long maxWait, @Nullable Grant into) {
        return peek(permits, now, maxWait);
    }

    @Override
    long peek(long permits, long now, long maxWait) {
        if (retired || parameters.change() != null) {
            return MOVED;
        }
        return parameters.open ? 0 : NEVER;
    }

    @Override
    boolean giveBack(Grant grant, long permits, long now) {
        return true;
    }

    @Override
    boolean charge(long permits, long now) {
        return !retired && parameters.change() == null;
    }

    @Override
    long stamp() {
        return 0;
    }

    @Override
    long remaining(long now) {
        return parameters.open ? Long.MAX_VALUE : 0;
    }

    @Override
    long nanosToFresh(long now) {
        return budget.equals(Budget.WHOLE) ? 0 : Long.MAX_VALUE;
    }

    @Override
    Cell retire() {
        retired = true;
        return copy();
    }

    @Override
    boolean retireIfFresh(long now) {
        if (nanosToFresh(now) > 0) {
            return false;
        }
        retired = true;
        return true;
    }

    @Override
    Cell copy() {
        return new Constant(parameters, budget);
    }

    @Override
    boolean covers(Cell other) {
        return !((Constant) other).budget.isMoreSpentThan(budget);
    }

    @Override
    void absorb(Cell other) {
        Budget that = ((Constant) other).budget;
        if (that.isMoreSpentThan(budget)) {
            budget = that;
        }
    }

    @Override
    Budget leave(long now) {
        return budget;
    }

    /** Open or closed. */
    static final class Parameters extends CellParameters {

        private final boolean open;

        Parameters(Limit limit) {
            super(limit);
            this.open = limit.isUnlimited();
        }

        @Override
        Cell whole(long now) {
            return new Constant(this, Budget.WHOLE);
        }

        @Override
        Cell resume(Budget budget, long now) {
            return new Constant(this, budget);
        }

        @Override
        long idleNanos() {
            return 3_600_000_000_000L;
        }
    }
}
