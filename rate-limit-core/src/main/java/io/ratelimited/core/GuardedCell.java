package io.ratelimited.core;

import org.jspecify.annotations.Nullable;

/**
 * A cell whose state is more than a word, guarded by its monitor, which is never held while waiting. What a refusal has
 * found out is remembered until anything changes, so that the refusals after it take no lock and only read.
 */
abstract class GuardedCell extends Cell {

    private static final long UNTOLD = Long.MIN_VALUE;

    /** When a call of one permit could go at once, as a refusal has told; {@link #UNTOLD} since anything has changed. */
    private volatile long opensAt = UNTOLD;
    /** How many calls were admitted; written under the monitor. */
    private volatile long admitted;
    /** Guarded by this. */
    private boolean retired;

    @Override
    final long reserve(long permits, long now, long maxWait, @Nullable CellReservation into) {
        long told = opensAt;
        if (told != UNTOLD && permits == 1 && told - now > maxWait && terms().change() == null) {
            return ~(told - now - maxWait);
        }
        return reserveGuarded(permits, now, maxWait, into);
    }

    private synchronized long reserveGuarded(long permits, long now, long maxWait, @Nullable CellReservation into) {
        if (hasMoved()) {
            return MOVED;
        }
        long outcome = decide(permits, now, maxWait, into);
        if (outcome >= 0) {
            changed();
            admitted++;
        } else if (permits == 1 && outcome > UNKNOWN) {
            opensAt = now + maxWait + ~outcome;
        }
        return outcome;
    }

    @Override
    final synchronized long peek(long permits, long now, long maxWait) {
        return hasMoved() ? MOVED : ask(permits, now, maxWait);
    }

    private boolean hasMoved() {
        return retired || terms().change() != null;
    }

    /** {@link Cell#reserve}, guarded, of a cell that goes on. */
    abstract long decide(long permits, long now, long maxWait, @Nullable CellReservation into);

    /** {@link Cell#peek}, guarded, of a cell that goes on. */
    abstract long ask(long permits, long now, long maxWait);

    @Override
    final synchronized boolean cancel(CellReservation reservation, long now) {
        if (!retired) {
            giveBack(reservation);
            changed();
        }
        return true;
    }

    @Override
    final long stamp() {
        return admitted;
    }

    /** {@link Cell#cancel}, guarded. */
    abstract void giveBack(CellReservation reservation);

    @Override
    final synchronized Cell retire() {
        retired = true;
        changed();
        return twin();
    }

    @Override
    final synchronized Cell copy() {
        return twin();
    }

    /** A cell with the state of this one, guarded. */
    abstract Cell twin();

    @Override
    final synchronized void absorb(Cell other) {
        merge(other.copy());
        changed();
    }

    /** {@link Cell#absorb}, guarded, of a cell that nobody else has. */
    abstract void merge(Cell other);

    private void changed() {
        if (opensAt != UNTOLD) {
            opensAt = UNTOLD;
        }
    }
}
