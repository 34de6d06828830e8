package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;

/** The warm-up with forty digits: stored permits, and the time at which the next call may go. */
final class WarmUpTwin implements Twin {

    private static final MathContext DIGITS = new MathContext(40);
    private static final BigDecimal TWO = BigDecimal.valueOf(2);

    private record State(BigDecimal stored, BigDecimal next) {}

    private record Grant(State before, State after, long permits) {}

    private final BigDecimal interval;
    private final BigDecimal coldFactor;
    private final BigDecimal warmup;
    private final BigDecimal threshold;
    private final BigDecimal most;
    private final List<Grant> grants = new ArrayList<>();
    private State state;

    WarmUpTwin(Limit limit, long now) {
        this.interval = BigDecimal.valueOf(limit.rate().period().toNanos())
                .divide(BigDecimal.valueOf(limit.rate().permits()), DIGITS);
        this.coldFactor = BigDecimal.valueOf(limit.coldFactor());
        this.warmup = BigDecimal.valueOf(limit.warmup().toNanos());
        this.threshold = warmup.divide(interval, DIGITS).divide(TWO, DIGITS);
        BigDecimal both = interval.multiply(coldFactor).add(interval);
        this.most = threshold.add(warmup.multiply(TWO).divide(both, DIGITS));
        this.state = new State(most, BigDecimal.valueOf(now));
    }

    private State refilled(long now) {
        BigDecimal time = BigDecimal.valueOf(now);
        if (time.compareTo(state.next) <= 0) {
            return state;
        }
        if (most.signum() == 0) {
            return new State(most, time);
        }
        BigDecimal gained = time.subtract(state.next).multiply(most).divide(warmup, DIGITS);
        return new State(most.min(state.stored.add(gained)), time);
    }

    /** The time of one permit when so many are stored. */
    private BigDecimal price(BigDecimal stored) {
        BigDecimal above = stored.subtract(threshold).max(BigDecimal.ZERO);
        if (above.signum() == 0) {
            return interval;
        }
        BigDecimal dearer = interval.multiply(coldFactor.subtract(BigDecimal.ONE));
        return interval.add(dearer.multiply(above).divide(most.subtract(threshold), DIGITS));
    }

    /** The area under the price between two amounts stored, of which none or both are above the threshold. */
    private BigDecimal area(BigDecimal from, BigDecimal to) {
        return from.subtract(to).multiply(price(from).add(price(to))).divide(TWO, DIGITS);
    }

    @Override
    public long decide(long permits, long now, long maxWait) {
        BigDecimal wait = state.next.subtract(BigDecimal.valueOf(now)).max(BigDecimal.ZERO);
        return Twin.outcome(wait.setScale(0, RoundingMode.CEILING).longValueExact(), maxWait);
    }

    @Override
    public void grant(long permits, long now) {
        State before = refilled(now);
        state = after(before, permits);
        grants.add(new Grant(before, state, permits));
    }

    @Override
    public void charge(long permits, long now) {
        grant(permits, now);
    }

    private State after(State before, long permits) {
        BigDecimal fromStore = before.stored.min(BigDecimal.valueOf(permits));
        BigDecimal left = before.stored.subtract(fromStore);
        BigDecimal bend = before.stored.min(left.max(threshold));
        BigDecimal fresh = BigDecimal.valueOf(permits).subtract(fromStore).multiply(interval);
        BigDecimal cost = area(before.stored, bend).add(area(bend, left)).add(fresh);
        return new State(left, before.next.add(cost));
    }

    @Override
    public void giveBack(int grant, long permits, long now) {
        if (state.equals(grants.get(grant).after())) {
            state = after(grants.get(grant).before(), grants.get(grant).permits() - permits);
        }
    }

    @Override
    public long remaining(long now) {
        return state.next.compareTo(BigDecimal.valueOf(now)) > 0 ? 0 : 1;
    }
}
