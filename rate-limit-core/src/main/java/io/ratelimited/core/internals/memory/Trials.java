package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * The decisions of several limits with one algorithm on the calls of a key, at given times: with the code of the limiter in
 * memory, but without its clock, keys, waits and blocks. Immutable; the state is in {@link Key}.
 */
public final class Trials {

    private final CellParameters[] limits;

    /**
     * @param limits at least one, that count over time by the same algorithm and have no blocks
     * @param now the time from which calls are judged, in nanoseconds: since 1970 if the algorithm follows the calendar
     */
    public Trials(List<Limit> limits, long now) {
        this.limits = limits.stream()
                .map(limit -> CellFactory.parameters(limit, now, now))
                .toArray(CellParameters[]::new);
    }

    /** The state of one key under each limit. Thread-safe. */
    public final class Key {

        private final Cell[] cells;

        /** A new key. */
        public Key(long now) {
            this.cells = Stream.of(limits).map(limit -> limit.initial(now)).toArray(Cell[]::new);
        }

        /**
         * Takes the permits of calls of one instant from the budget under one limit.
         *
         * @param limit its position
         * @param calls one, or several that take a permit each and do not wait
         * @param permits 0 asks for nothing, and less is rejected by every limiter as an error
         * @param maxWaitNanos the longest wait of a call, inclusive
         * @param charged whether to look only whether they are there, because the call is charged when it ends
         * @return how many of the calls the limit would have rejected
         */
        public long rejected(int limit, long calls, long permits, long now, long maxWaitNanos, boolean charged) {
            if (permits <= 0) {
                return 0;
            }
            Cell cell = cells[limit];
            long maxWait = Math.min(maxWaitNanos, PermitTime.FAR);
            if (charged) {
                return cell.peek(permits, now, maxWait) < 0 ? calls : 0;
            }
            long fit = calls == 1 ? 1 : Math.min(calls, cell.remaining(now));
            while (fit > 0 && cell.reserve(fit * permits, now, maxWait, null) < 0) {
                fit--;
            }
            return calls - fit;
        }

        /** Charges a completed call under each limit that admits it. */
        public synchronized void charge(long permits, long cost, long now, long maxWaitNanos) {
            for (int i = 0; i < cells.length && cost > 0; i++) {
                if (rejected(i, 1, permits, now, maxWaitNanos, true) == 0) {
                    while (!cells[i].charge(cost, now)) {
                        cells[i] = Objects.requireNonNull(cells[i].divide(now), "a cell is divided under this lock");
                    }
                }
            }
        }
    }
}
