package io.ratelimited.core;

import org.jspecify.annotations.Nullable;

/** A limit whose rate is 0 (closed) or unlimited. Keeps the budget it was handed, for the terms that replace it. */
final class Constant extends Cell {

    private final Terms terms;
    private volatile Budget budget;
    private volatile boolean retired;

    private Constant(Terms terms, Budget budget) {
        this.terms = terms;
        this.budget = budget;
    }

    @Override
    Terms terms() {
        return terms;
    }

    @Override
    long reserve(long permits, long now, long maxWait, @Nullable CellReservation into) {
        return peek(permits, now, maxWait);
    }

    @Override
    long peek(long permits, long now, long maxWait) {
        if (retired || terms.change() != null) {
            return MOVED;
        }
        return terms.open ? 0 : NEVER;
    }

    @Override
    boolean cancel(CellReservation reservation, long now) {
        return true;
    }

    @Override
    long stamp() {
        return 0;
    }

    @Override
    long remaining(long now) {
        return terms.open ? Long.MAX_VALUE : 0;
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
    Cell copy() {
        return new Constant(terms, budget);
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
    static final class Terms extends io.ratelimited.core.Terms {

        private final boolean open;

        Terms(Limit limit, boolean open) {
            super(limit);
            this.open = open;
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
