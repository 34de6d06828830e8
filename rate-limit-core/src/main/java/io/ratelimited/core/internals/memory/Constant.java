package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import org.jspecify.annotations.Nullable;

/** A limit whose rate is 0 (closed) or unlimited. Keeps the state of the cell that it replaced for the cell that will replace it. */
final class Constant extends Cell {

    private final Parameters parameters;
    /** The replaced cell, which nobody changes; null when there was none. */
    private volatile @Nullable Cell kept;

    private volatile boolean retired;

    private Constant(Parameters parameters, @Nullable Cell kept) {
        this.parameters = parameters;
        this.kept = kept;
    }

    @Override
    Parameters parameters() {
        return parameters;
    }

    @Override
    @Nullable
    Cell kept() {
        return kept;
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
    long nanosToFull(long now) {
        return 0;
    }

    @Override
    long nanosToInitial(long now) {
        Cell cell = kept;
        return cell == null ? 0 : cell.nanosToInitial(now);
    }

    @Override
    Cell retire() {
        retired = true;
        return copy();
    }

    @Override
    boolean retireIfInitial(long now) {
        if (nanosToInitial(now) > 0) {
            return false;
        }
        retired = true;
        return true;
    }

    @Override
    Cell copy() {
        return new Constant(parameters, kept);
    }

    @Override
    boolean covers(Cell other) {
        Cell that = ((Constant) other).kept;
        Cell own = kept;
        return that == null || (own != null && own.covers(that));
    }

    @Override
    void absorb(Cell other) {
        Cell that = ((Constant) other).kept;
        Cell own = kept;
        if (own == null || that == null) {
            kept = own == null ? that : own;
        } else {
            Cell both = own.copy();
            both.absorb(that);
            kept = both;
        }
    }

    /** Open or closed. */
    static final class Parameters extends CellParameters {

        private final boolean open;

        Parameters(Limit limit) {
            super(limit);
            this.open = limit.isUnlimited();
        }

        @Override
        Cell full(long now) {
            return new Constant(this, null);
        }

        @Override
        Cell resume(Cell before, long at) {
            return new Constant(this, before);
        }

        @Override
        long idleNanos() {
            return 3_600_000_000_000L;
        }
    }
}
