package io.ratelimited.core.internals.memory;

import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * A cell whose state is more than one word. Its monitor guards the state and is never held while waiting. The time that a
 * rejection has computed is kept until the state changes, so that later rejections read it and take no lock.
 */
abstract class GuardedCell extends Cell {

    private static final long NOT_COMPUTED = Long.MIN_VALUE;

    private static final AtomicLongFieldUpdater<GuardedCell> ADMITTED =
            AtomicLongFieldUpdater.newUpdater(GuardedCell.class, "admitted");

    /** Time at which a call of one permit could be admitted immediately, computed by a rejection; {@link #NOT_COMPUTED} after a change. */
    private volatile long opensAt = NOT_COMPUTED;
    /** Number of admitted calls; written under the monitor, whose exit is the barrier. */
    private volatile long admitted;
    /** Guarded by this. */
    private boolean retired;
    /** Identifies the cells that continue one another; null for a cell that no other one continues, or is continued by. */
    private volatile @Nullable Object origin;

    @Override
    final long reserve(long permits, long now, long maxWait, @Nullable Grant into) {
        long opens = opensAt;
        if (opens != NOT_COMPUTED
                && permits == 1
                && opens - now > maxWait
                && parameters().change() == null) {
            return ~(opens - now - maxWait);
        }
        return reserveGuarded(permits, now, maxWait, into);
    }

    private synchronized long reserveGuarded(long permits, long now, long maxWait, @Nullable Grant into) {
        if (hasMoved()) {
            return MOVED;
        }
        long outcome = decide(permits, now, maxWait, into);
        if (outcome >= 0) {
            changed();
            count();
        } else if (permits == 1 && outcome > UNKNOWN) {
            opensAt = now + maxWait + ~outcome;
        }
        return outcome;
    }

    @Override
    final synchronized long peek(long permits, long now, long maxWait) {
        return hasMoved() ? MOVED : peekGuarded(permits, now, maxWait);
    }

    private boolean hasMoved() {
        return retired || parameters().change() != null;
    }

    /** {@link Cell#reserve} under the monitor, of a cell that is not retired. */
    abstract long decide(long permits, long now, long maxWait, @Nullable Grant into);

    /** {@link Cell#peek} under the monitor, of a cell that is not retired. */
    abstract long peekGuarded(long permits, long now, long maxWait);

    @Override
    final synchronized boolean giveBack(Grant grant, long permits, long now) {
        if (retired) {
            return false;
        }
        undo(grant, permits);
        changed();
        return true;
    }

    @Override
    final boolean hasOriginOf(Cell other) {
        return origin != null && other instanceof GuardedCell that && origin == that.origin;
    }

    /** Continues a cell that counts by other numbers of the same limit: what was taken there is in this cell, and comes back to it. */
    final GuardedCell continuing(GuardedCell before) {
        if (before.parameters().whole() == parameters().whole()) {
            origin = before.origin;
        }
        return this;
    }

    @Override
    final synchronized boolean charge(long permits, long now) {
        if (hasMoved()) {
            return false;
        }
        add(permits, now);
        changed();
        count();
        return true;
    }

    private void count() {
        ADMITTED.lazySet(this, admitted + 1);
    }

    @Override
    final long stamp() {
        return admitted;
    }

    /** {@link Cell#giveBack} under the monitor. */
    abstract void undo(Grant grant, long permits);

    /** {@link Cell#charge} under the monitor. */
    abstract void add(long permits, long now);

    @Override
    final synchronized Cell retire() {
        retired = true;
        changed();
        GuardedCell twin = twin();
        if (origin == null) {
            origin = new Object();
        }
        twin.origin = origin;
        return twin;
    }

    @Override
    final synchronized boolean retireIfInitial(long now) {
        if (retired || nanosToInitial(now) > 0) {
            return false;
        }
        retired = true;
        changed();
        return true;
    }

    @Override
    final synchronized Cell copy() {
        return twin();
    }

    /** A cell with the state of this one, read under the monitor. */
    abstract GuardedCell twin();

    /** The other cell is copied first: no thread holds the monitors of two cells. */
    @Override
    final boolean covers(Cell other) {
        Cell copy = other.copy();
        synchronized (this) {
            return isAtLeast(copy);
        }
    }

    /** {@link Cell#covers} under the monitor, of a cell that no other thread has. */
    abstract boolean isAtLeast(Cell other);

    @Override
    final void absorb(Cell other) {
        Cell copy = other.copy();
        synchronized (this) {
            merge(copy);
            changed();
        }
    }

    /** {@link Cell#absorb} under the monitor, of a cell that no other thread has. */
    abstract void merge(Cell other);

    private void changed() {
        if (opensAt != NOT_COMPUTED) {
            opensAt = NOT_COMPUTED;
        }
    }
}
