package io.ratelimited.core.memory;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Limit;
import java.util.List;
import java.util.Objects;

/**
 * The decisions of several limits with one algorithm on the calls of a key, at given times: with the code of the limiter in
 * memory, but without its clock, keys, waits and blocks. Immutable; the state is in {@link Key}.
 */
public final class Trials {

    private final CellParameters[] limits;
    private final boolean calendar;
    private final boolean paced;
    private final boolean charged;

    /**
     * @param limits one or more, which count over time with the same algorithm
     * @param now the start, in nanoseconds; see {@link #followsCalendar}
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

    /**
     * Returns whether times must be wall-clock times, in nanoseconds since 1970. Other algorithms work with any monotonic
     * time.
     */
    public boolean followsCalendar() {
        return calendar;
    }

    /** Returns whether each call must be decided when it arrives, because calls are spaced, or charged before the next one. */
    public boolean judgesEach() {
        return paced || charged;
    }

    /** Returns the state of a new key. */
    public Key begin(long now) {
        Cell[] cells = new Cell[limits.length];
        for (int i = 0; i < cells.length; i++) {
            cells[i] = limits[i].initial(now);
        }
        return new Key(cells);
    }

    /** The state of one key under each limit. Thread-safe. */
    public final class Key {

        private final Cell[] cells;

        private Key(Cell[] cells) {
            this.cells = cells;
        }

        /**
         * Decides equal calls of one instant under one limit, and takes their permits. If calls are charged when they
         * complete, it only checks whether the permits are available.
         *
         * @param limit position of the limit, from 0
         * @param permits of each call, 0 or more; 0 uses none
         * @param maxWaitNanos the maximum wait of a call, inclusive
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

        /** Charges a completed call under each limit that admits it. */
        public synchronized void charge(long permits, long cost, long now, long maxWaitNanos) {
            for (int i = 0; i < cells.length && cost > 0; i++) {
                if (rejected(i, 1, permits, now, maxWaitNanos) == 0) {
                    while (!cells[i].charge(cost, now)) {
                        cells[i] = Objects.requireNonNull(cells[i].divide(now), "a cell is divided under this lock");
                    }
                }
            }
        }

        /** Returns whether the state equals that of a new key, so that it can be dropped. */
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
