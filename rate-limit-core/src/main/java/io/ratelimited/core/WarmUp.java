package io.ratelimited.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * Guava's {@code SmoothWarmingUp}: stored permits p (at most P, refilled one per W/P) and the time N at which the next
 * call may go. A call waits for N and moves it by the cost of its own permits: a fresh one costs T; a stored one costs
 * the area under a line that is T up to the threshold of 0.5·W/T permits and rises to {@code coldFactor}·T at P. Every
 * permit costs at least T, so p shapes the warm-up and never lets the rate be exceeded.
 *
 * <p>State is one immutable {@link State}, swapped by compare-and-set: at rest it would fit one word, in debt it does
 * not. Refusals allocate nothing.
 */
final class WarmUp extends Cell {

    private static final VarHandle STATE;
    private static final State RETIRED = new State(0, 0, 0);

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(WarmUp.class, "state", State.class);
        } catch (ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    private final Terms terms;
    private volatile State state;

    private WarmUp(Terms terms, State state) {
        this.terms = terms;
        this.state = state;
    }

    /** Immutable; compared by identity. */
    private static final class State {

        /** The p stored permits, as of N. */
        private final double stored;
        /** N: the nanosecond at which the next call may go. */
        private final long next;
        /** Part of a nanosecond that N lies later, below 1. */
        private final double fraction;

        private State(double stored, long next, double fraction) {
            this.stored = stored;
            this.next = next;
            this.fraction = fraction;
        }

        /** N rounded up to the nanosecond. */
        private long due() {
            return fraction > 0 ? next + 1 : next;
        }
    }

    @Override
    Terms terms() {
        return terms;
    }

    @Override
    long reserve(long permits, long now, long maxWait, @Nullable CellReservation into) {
        while (true) {
            State before = state;
            long wait = wait(before, permits, now, maxWait);
            if (wait < 0) {
                return wait;
            }
            State after = terms.spend(terms.refill(before, now), permits);
            if (STATE.compareAndSet(this, before, after)) {
                if (into != null) {
                    into.mark(terms.refill(before, now), after);
                }
                return wait;
            }
        }
    }

    @Override
    long peek(long permits, long now, long maxWait) {
        return wait(state, permits, now, maxWait);
    }

    private long wait(State before, long permits, long now, long maxWait) {
        if (before == RETIRED || terms.change() != null) {
            return MOVED;
        }
        if (permits > terms.mostPermits) {
            return NEVER;
        }
        long wait = Math.max(0, before.due() - now);
        if (wait > PermitTime.FAR) {
            return UNKNOWN;
        }
        return wait > maxWait ? ~(wait - maxWait) : wait;
    }

    /** Undone exactly while it is the last; otherwise the times of those behind stand and nothing is free. */
    @Override
    void cancel(CellReservation reservation, long now) {
        if (reservation.before() instanceof State before && reservation.after() instanceof State after) {
            STATE.compareAndSet(this, after, before);
        }
    }

    /** The next call goes whatever it asks for; the one behind it pays, and never goes at once. */
    @Override
    long remaining(long now) {
        return nanosToWhole(now) > 0 ? 0 : 1;
    }

    @Override
    long nanosToWhole(long now) {
        return Math.max(0, state.due() - now);
    }

    @Override
    long nanosToFresh(long now) {
        State current = state;
        double missing = (terms.most - current.stored) * terms.nanosPerRefill;
        return Math.max(0, current.due() - now + (long) Math.ceil(missing));
    }

    @Override
    Cell retire() {
        return new WarmUp(terms, (State) STATE.getAndSet(this, RETIRED));
    }

    @Override
    Cell copy() {
        return new WarmUp(terms, state);
    }

    /** A later N and more stored permits (a colder, slower state) are both at least as spent. */
    @Override
    void absorb(Cell other) {
        State that = ((WarmUp) other).state;
        while (true) {
            State current = state;
            State later = current.due() - that.due() >= 0 ? current : that;
            State earlier = later == current ? that : current;
            double stored = Math.max(later.stored, terms.refill(earlier, later.next).stored);
            if (STATE.compareAndSet(this, current, new State(stored, later.next, later.fraction))) {
                return;
            }
        }
    }

    @Override
    Budget leave(long now) {
        State current = terms.refill(state, now);
        long debt = Math.max(0, current.due() - now);
        long left = terms.most == 0 ? 1 : (long) (current.stored / terms.most * Terms.SHARES);
        return new Budget(left, terms.most == 0 ? 1 : Terms.SHARES, debt / terms.interval, debt);
    }

    /** The trapezoid of one limit. */
    static final class Terms extends io.ratelimited.core.Terms {

        private static final long SHARES = 1L << 52;

        /** T, nanoseconds. */
        private final double interval;

        private final double threshold;
        /** P. */
        private final double most;
        /** How much dearer, in nanoseconds, each stored permit above the threshold is than the one below it. */
        private final double slope;
        /** W/P, nanoseconds. */
        private final double nanosPerRefill;
        /** More permits than this would take decades. */
        private final double mostPermits;

        Terms(Limit limit) {
            super(limit);
            double warmup = limit.warmup().toNanos();
            this.interval =
                    (double) limit.rate().period().toNanos() / limit.rate().permits();
            double cold = interval * limit.coldFactor();
            this.threshold = 0.5 * warmup / interval;
            this.most = threshold + 2.0 * warmup / (interval + cold);
            this.slope = most > threshold ? (cold - interval) / (most - threshold) : 0;
            this.nanosPerRefill = most > 0 ? warmup / most : 0;
            this.mostPermits = PermitTime.FAR / cold;
        }

        /** The state with what has been stored since N. */
        private State refill(State state, long now) {
            long idle = now - state.next;
            if (idle < 0 || (idle == 0 && state.fraction > 0)) {
                return state;
            }
            double stored = most == 0 ? 0 : Math.min(most, state.stored + (idle - state.fraction) / nanosPerRefill);
            return new State(stored, now, 0);
        }

        private State spend(State state, long permits) {
            double fromStore = Math.min((double) permits, state.stored);
            double cost = area(state.stored, fromStore) + (permits - fromStore) * interval + state.fraction;
            double whole = Math.floor(cost);
            return new State(state.stored - fromStore, state.next + (long) whole, cost - whole);
        }

        /** The cost of the uppermost stored permits. */
        private double area(double stored, double taken) {
            double above = Math.min(taken, Math.max(0, stored - threshold));
            double top = interval + slope * (stored - threshold);
            double bottom = interval + slope * (stored - threshold - above);
            return (above == 0 ? 0 : above * (top + bottom) / 2) + (taken - above) * interval;
        }

        @Override
        Cell fresh(long now) {
            return new WarmUp(this, new State(most, now, 0));
        }

        @Override
        Cell resume(Budget budget, long now) {
            double stored = most * budget.left() / budget.of();
            return new WarmUp(this, new State(stored, now + budget.debtNanos(), 0));
        }

        @Override
        long idleNanos() {
            return Math.max(1, limit().warmup().toNanos());
        }
    }
}
