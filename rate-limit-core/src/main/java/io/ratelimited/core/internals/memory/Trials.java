package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Limit;
import java.util.List;
import java.util.Objects;

/**
 * What several limits of one algorithm would decide about the calls of a key, at times that the caller states: with the steps
 * of the limiter in memory, but without its clock, its keys, its waits and its blocks. Immutable; what it has decided is in
 * {@link Key}.
 */
public final class Trials {

    private final CellParameters[] limits;
    private final boolean calendar;
    private final boolean paced;
    private final boolean charged;

    /**
     * @param limits at least one, that count over time by the same algorithm
     * @param now the time from which calls are judged, in nanoseconds of {@link #followsCalendar}
     */
    public Trials(List<Limit> limits, long now) {
        this.limits = limits.stream()
                .map(limit ->
                        CellFactory.parameters(limit.toBuilder().withoutBlocks().build(), now, now))
                .toArray(CellParameters[]::new);
        this.calendar = limits.get(0).algorithm().followsCalendar();
        this.paced = limits.get(0).algorithm().family() == Family.PACED;
        this.charged = limits.get(0).isCharged();
    }

    /** Returns whether time is wall-clock time, in nanoseconds since 1970. Other algorithms only need one that moves evenly. */
    public boolean followsCalendar() {
        return calendar;
    }

    /** Returns whether each call has to be judged when it comes: calls are spaced, or charged before the next one. */
    public boolean judgesEach() {
        return paced || charged;
    }

    /** The states of a new key. */
    public Key begin(long now) {
        Cell[] cells = new Cell[limits.length];
        for (int i = 0; i < cells.length; i++) {
            cells[i] = limits[i].initial(now);
        }
        return new Key(cells);
    }

    /** The states of one key, one under each limit. Thread-safe. */
    public final class Key {

        private final Cell[] cells;

        private Key(Cell[] cells) {
            this.cells = cells;
        }

        /**
         * Takes the permits of equal calls of one instant from the budget under one limit; where calls are charged when they
         * end, only looks whether they are there.
         *
         * @param limit its position
         * @param permits of each call; 0 asks for nothing, and less is rejected by every limiter as an error
         * @param maxWaitNanos the longest wait of a call, inclusive
         * @return how many of the calls the limit would have rejected
         */
        public long rejected(int limit, long calls, long permits, long now, long maxWaitNanos) {
            if (permits <= 0) {
                return 0;
            }
            Cell cell = cells[limit];
            if (charged) {
                return cell.peek(permits, now, Math.min(maxWaitNanos, PermitTime.FAR)) < 0 ? calls : 0;
            }
            if (calls > 1 && permits == 1 && maxWaitNanos <= 0 && !paced) {
                long fit = Math.min(calls, cell.remaining(now));
                if (fit == 0 || cell.take(fit, now) >= 0) {
                    return calls - fit;
                }
            }
            long maxWait = Math.min(maxWaitNanos, PermitTime.FAR);
            for (long admitted = 0; admitted < calls; admitted++) {
                long outcome = maxWait <= 0 ? cell.take(permits, now) : cell.reserve(permits, now, maxWait, null);
                if (outcome < 0) {
                    // A rejection changes no state (I1), so those of the same instant are rejected, too.
                    return calls - admitted;
                }
            }
            return 0;
        }

        /** Charges a call that has ended, under each limit that admits it. */
        public synchronized void charge(long permits, long cost, long now, long maxWaitNanos) {
            for (int i = 0; i < cells.length && cost > 0; i++) {
                if (rejected(i, 1, permits, now, maxWaitNanos) == 0) {
                    while (!cells[i].charge(cost, now)) {
                        cells[i] = Objects.requireNonNull(cells[i].divide(now), "a cell is divided under this lock");
                    }
                }
            }
        }

        /** Returns whether every state is that of a new key, so that the key can be dropped and begun again. */
        public boolean isInitial(long now) {
            for (Cell cell : cells) {
                if (cell.nanosToInitial(now) > 0) {
                    return false;
                }
            }
            return true;
        }
    }
}
