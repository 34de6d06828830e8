package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import java.util.List;
import java.util.Objects;

/**
 * The decisions of several limits with one algorithm on the calls of a key, at given times: with the code and the clock of the
 * limiter in memory, but without its keys, waits and blocks. The state of calls is in {@link Key}. Thread-safe.
 */
public final class Trials {

    private final SteadyClock clock;
    private final boolean calendar;
    /** Replaced under the lock of this when the wall clock has stepped back. */
    private volatile List<CellParameters> limits;

    /** @param limits that count over time by the same algorithm and have no blocks; none to judge nothing */
    public Trials(List<Limit> limits, Ticker ticker) {
        this.clock = new SteadyClock(ticker);
        this.calendar = limits.stream().anyMatch(limit -> limit.algorithm().followsCalendar());
        long now = now();
        this.limits = limits.stream()
                .map(limit -> CellFactory.parameters(limit, now, now))
                .toList();
        if (calendar) {
            long shortest = this.limits.stream()
                    .mapToLong(CellParameters::idleNanos)
                    .min()
                    .orElseThrow();
            clock.holdCalendar(shortest, this::goBack);
        }
    }

    /** The time at which calls are judged, in nanoseconds: since 1970 if the algorithm follows the calendar. */
    public long now() {
        return clock.now(calendar);
    }

    /** As the limiter does after a step back of the wall clock that is not held. */
    private synchronized void goBack() {
        long shown = clock.steppedBackTo();
        if (shown == SteadyClock.NOT_BACK) {
            return;
        }
        clock.setBack(shown);
        limits = limits.stream().map(limit -> back(limit, shown)).toList();
    }

    private static CellParameters back(CellParameters limit, long shown) {
        CellParameters next = CellFactory.parameters(limit.limit(), shown, shown);
        next.goBackTo(shown);
        limit.replaceBy(next, shown);
        return next;
    }

    /** The state of one key under each limit. Thread-safe. */
    public final class Key {

        private final Cell[] cells;

        /** A new key. */
        public Key(long instant) {
            long now = notAhead(instant);
            this.cells = limits.stream().map(limit -> limit.initial(now)).toArray(Cell[]::new);
        }

        private Cell cell(int limit) {
            return cells[limit].parameters().change() == null ? cells[limit] : newest(limit);
        }

        private synchronized Cell newest(int limit) {
            cells[limit] = cells[limit].newest();
            return cells[limit];
        }

        /** Calls that were counted before the wall clock has stepped back are judged after it. */
        private long notAhead(long now) {
            return calendar ? Math.min(now, clock.newest(true)) : now;
        }

        /**
         * Takes the permits of calls of one instant from the budget under one limit.
         *
         * @param limit its position
         * @param calls one, or several that take a permit each and do not wait
         * @param permits 0 asks for nothing, and less is rejected by every limiter as an error
         * @param instant that of the calls
         * @param maxWaitNanos the longest wait of a call, inclusive
         * @param charged whether to look only whether they are there, because the call is charged when it ends
         * @return how many of the calls the limit would have rejected
         */
        public long rejected(int limit, long calls, long permits, long instant, long maxWaitNanos, boolean charged) {
            if (permits <= 0) {
                return 0;
            }
            Cell cell = cell(limit);
            long now = notAhead(instant);
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
        public synchronized void charge(long permits, long cost, long instant, long maxWaitNanos) {
            long now = notAhead(instant);
            for (int i = 0; i < cells.length && cost > 0; i++) {
                if (rejected(i, 1, permits, now, maxWaitNanos, true) == 0) {
                    for (Cell cell = cell(i); !cell.charge(cost, now); cell = cell(i)) {
                        if (cell.parameters().change() == null) {
                            cells[i] = Objects.requireNonNull(cell.divide(now), "a cell is divided under this lock");
                        }
                    }
                }
            }
        }
    }
}
