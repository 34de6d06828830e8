package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import org.jspecify.annotations.Nullable;

/**
 * Guava's {@code SmoothWarmingUp}: stored permits p (at most P, refilled one per W/P) and the time N at which the next
 * call can proceed. A call waits for N and moves it by the cost of its own permits: a fresh one costs T; a stored one costs
 * the area under a line that is T up to the threshold of 0.5·W/T permits and rises to {@code coldFactor}·T at P. Every
 * permit costs at least T, so p shapes the warm-up and never lets the rate be exceeded.
 *
 * <p>At rest the state would fit one word, in debt it does not.
 */
final class WarmUp extends GuardedCell {

    private final Parameters parameters;
    /** The p stored permits, as of N. */
    private double stored;
    /** N: the nanosecond at which the next call can proceed. */
    private long next;
    /** Part of a nanosecond that N lies later, below 1. */
    private double fraction;

    private WarmUp(Parameters parameters, double stored, long next, double fraction) {
        this.parameters = parameters;
        this.stored = stored;
        this.next = next;
        this.fraction = fraction;
    }

    /** A state after a grant, and the state before the grant, to which a cancellation returns. */
    private record State(
            double stored,
            long next,
            double fraction,
            @Nullable State before) {}

    @Override
    Parameters parameters() {
        return parameters;
    }

    private WarmUpShape shape() {
        return parameters.shape;
    }

    @Override
    long decide(long permits, long now, long maxWait, @Nullable Grant into) {
        long wait = peekGuarded(permits, now, maxWait);
        if (wait < 0) {
            return wait;
        }
        rest(now);
        if (into == null) {
            spend(permits);
        } else {
            State before = state(null);
            spend(permits);
            into.more(state(before));
        }
        return wait;
    }

    @Override
    long peekGuarded(long permits, long now, long maxWait) {
        if (permits > shape().maxPermits()) {
            return NEVER;
        }
        long wait = Math.max(0, due() - now);
        if (wait > PermitTime.FAR) {
            return UNKNOWN;
        }
        return wait > maxWait ? ~(wait - maxWait) : wait;
    }

    private void spend(long permits) {
        double cost = shape().cost(stored, permits) + fraction;
        long nanos = (long) cost;
        stored = stored > permits ? stored - permits : 0;
        next += nanos;
        fraction = cost - nanos;
    }

    private State state(@Nullable State before) {
        return new State(stored, next, fraction, before);
    }

    private boolean isAt(State state) {
        return stored == state.stored && next == state.next && fraction == state.fraction;
    }

    /** N rounded up to the nanosecond. */
    private long due() {
        return fraction > 0 ? next + 1 : next;
    }

    /** Nanoseconds since N; 0 or less when it is not over. */
    private double restedFor(long now) {
        return now - next - fraction;
    }

    /** p with the permits stored since N. */
    private double storedAt(long now) {
        double rested = restedFor(now);
        if (rested <= 0 || shape().maxStored() == 0) {
            return stored;
        }
        double refilled = stored + rested / shape().nanosPerRefill();
        return refilled < shape().maxStored() ? refilled : shape().maxStored();
    }

    /** Undoes the last grant exactly. Of an earlier grant nothing is refunded, because later times stand. */
    @Override
    void undo(Grant grant, long permits) {
        State before = grant.more() instanceof State after && isAt(after) ? after.before : null;
        if (before != null) {
            stored = before.stored;
            next = before.next;
            fraction = before.fraction;
            if (permits < grant.permits()) {
                spend(grant.permits() - permits);
            }
        }
    }

    /** As if the permits, the coldest of those missing, had not been spent. */
    @Override
    WarmUp refilled(long permits, long now) {
        WarmUp next = (WarmUp) retire();
        next.restore(permits, now);
        return next;
    }

    private void restore(long permits, long now) {
        if (restedFor(now) < 0) {
            stored = Math.min(shape().maxStored(), stored + permits);
            long left = next - now - (long) shape().cost(stored, permits);
            next = now + Math.max(0, left);
            fraction = left < 0 ? 0 : fraction;
        }
    }

    /** The next caller pays. N moves at most {@link PermitTime#FAR} ahead, and never back. */
    @Override
    void add(long permits, long now) {
        rest(now);
        long before = next;
        long far = now + PermitTime.FAR;
        if (permits <= shape().maxPermits() && before - far < 0) {
            spend(permits);
        } else {
            next = far;
        }
        if (next - far >= 0) {
            next = before - far > 0 ? before : far;
            fraction = 0;
        }
    }

    /** Moves p and N forward to the present. */
    private void rest(long now) {
        stored = storedAt(now);
        if (restedFor(now) > 0) {
            next = now;
            fraction = 0;
        }
    }

    /** The next call is admitted whatever it asks for; the call after it always waits. */
    @Override
    long remaining(long now) {
        return nanosToFull(now) > 0 ? 0 : 1;
    }

    @Override
    synchronized long nanosToFull(long now) {
        return Math.max(0, due() - now);
    }

    @Override
    synchronized long nanosToInitial(long now) {
        double missing = (shape().maxStored() - stored) * shape().nanosPerRefill();
        return Math.max(0, due() - now + (long) Math.ceil(missing));
    }

    @Override
    WarmUp twin() {
        return new WarmUp(parameters, stored, next, fraction);
    }

    @Override
    boolean isAtLeast(Cell other) {
        WarmUp that = (WarmUp) other;
        return isNoEarlierThan(that) && stored >= that.storedAt(next);
    }

    private boolean isNoEarlierThan(WarmUp that) {
        return next == that.next ? fraction >= that.fraction : next - that.next > 0;
    }

    /** A later N and more stored permits (a colder, slower state) are both at least as spent. */
    @Override
    void merge(Cell other) {
        WarmUp that = (WarmUp) other;
        if (isNoEarlierThan(that)) {
            stored = Math.max(stored, that.storedAt(next));
        } else {
            stored = Math.max(storedAt(that.next), that.stored);
            next = that.next;
            fraction = that.fraction;
        }
    }

    /** The trapezoid of one limit. */
    static final class Parameters extends CellParameters {

        private final WarmUpShape shape;

        Parameters(Limit limit) {
            super(limit);
            this.shape = WarmUpShape.of(limit);
        }

        @Override
        Cell full(long now) {
            return new WarmUp(this, shape.maxStored(), now, 0);
        }

        /** Keeps debt in permits, and the stored share, because stored permits cost more than fresh ones. */
        @Override
        Cell resume(Cell before, long at) {
            WarmUp old = (WarmUp) before;
            WarmUpShape was = old.shape();
            double share = was.maxStored() == 0 ? 1 : old.storedAt(at) / was.maxStored();
            double debt = Math.max(0, old.due() - at) / was.interval() * shape.interval();
            return new WarmUp(
                    this, shape.maxStored() * share, at + (long) Math.min(PermitTime.FAR, Math.ceil(debt)), 0);
        }

        @Override
        long idleNanos() {
            return Math.max(1, limit().warmup().toNanos());
        }
    }
}
