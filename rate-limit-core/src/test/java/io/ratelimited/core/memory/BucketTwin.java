package io.ratelimited.core.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;

/**
 * The four algorithms of virtual time, in fractions: one nanosecond is R parts, one permit P parts, for R permits in P
 * nanoseconds, so that every amount is a whole number.
 */
final class BucketTwin implements Twin {

    private record Grant(BigInteger mark) {}

    private final Algorithm algorithm;
    private final BigInteger partsPerNano;
    private final BigInteger partsPerPermit;
    private final long capacity;
    private final long burst;
    private final BigInteger depth;
    private final boolean paysFirst;
    private final List<Grant> grants = new ArrayList<>();
    private BigInteger emptyAt;
    /** What {@link #emptyAt} would be if nothing had been given back from the middle. */
    private BigInteger latest;
    /** Debt that was charged since the last grant; nobody waits for it. */
    private BigInteger charged = BigInteger.ZERO;

    BucketTwin(Limit limit, long now) {
        long nanos = limit.rate().period().toNanos();
        this.algorithm = limit.algorithm();
        this.partsPerNano = BigInteger.valueOf(limit.rate().permits());
        this.partsPerPermit = BigInteger.valueOf(nanos);
        this.capacity = limit.capacity();
        this.burst = limit.burst();
        this.paysFirst = algorithm == Algorithm.TOKEN_BUCKET || algorithm == Algorithm.GCRA;
        this.depth = algorithm == Algorithm.LEAKY_BUCKET
                ? BigInteger.ZERO
                : limit.storesOneSecond() ? at(1_000_000_000) : cost(burst);
        this.emptyAt = paysFirst ? at(now).subtract(depth) : at(now);
        this.latest = emptyAt;
    }

    private BigInteger at(long now) {
        return BigInteger.valueOf(now).multiply(partsPerNano);
    }

    private BigInteger cost(long permits) {
        return BigInteger.valueOf(permits).multiply(partsPerPermit);
    }

    private BigInteger begin(long now) {
        return emptyAt.max(at(now).subtract(depth));
    }

    private long nanos(BigInteger parts) {
        BigInteger[] result = parts.max(BigInteger.ZERO).divideAndRemainder(partsPerNano);
        return result[0].longValueExact() + result[1].signum();
    }

    @Override
    public long decide(long permits, long now, long maxWait) {
        if (permits > capacity) {
            return Cell.NEVER;
        }
        BigInteger begin = begin(now);
        BigInteger due = paysFirst ? begin.add(cost(permits)) : begin;
        BigInteger ahead = due.subtract(at(now));
        long wait = nanos(ahead);
        long tooLong = wait - maxWait;
        if (algorithm == Algorithm.LEAKY_BUCKET && ahead.compareTo(cost(burst)) >= 0) {
            long untilShorter = ahead.subtract(cost(burst)).divide(partsPerNano).longValueExact() + 1;
            tooLong = Math.max(tooLong, untilShorter);
        }
        return tooLong > 0 ? ~tooLong : wait;
    }

    @Override
    public void grant(long permits, long now) {
        latest = latest.max(begin(now)).add(cost(permits));
        emptyAt = begin(now).add(cost(permits));
        grants.add(new Grant(latest));
        charged = BigInteger.ZERO;
    }

    @Override
    public void charge(long permits, long now) {
        latest = latest.max(begin(now)).add(cost(permits));
        emptyAt = begin(now).add(cost(permits));
        grants.add(new Grant(latest));
        charged = emptyAt.compareTo(at(now)) > 0 ? charged.add(cost(permits)) : BigInteger.ZERO;
    }

    @Override
    public void giveBack(int grant, long permits, long now) {
        if (latest.compareTo(emptyAt) > 0) {
            emptyAt = begin(now);
            latest = latest.max(emptyAt);
        }
        BigInteger cost = cost(permits);
        BigInteger behind = latest.subtract(grants.get(grant).mark());
        if (behind.signum() == 0) {
            emptyAt = emptyAt.subtract(cost);
            latest = latest.subtract(cost);
        } else if (paysFirst) {
            boolean allGone = latest.subtract(charged).compareTo(at(now)) <= 0;
            BigInteger room = emptyAt.subtract(at(now).subtract(depth)).subtract(behind);
            BigInteger free = room.min(allGone ? cost : cost.subtract(behind));
            emptyAt = emptyAt.subtract(free.max(BigInteger.ZERO));
        }
    }

    @Override
    public long remaining(long now) {
        BigInteger room = at(now).subtract(begin(now));
        long stored =
                room.min(depth).max(BigInteger.ZERO).divide(partsPerPermit).longValueExact();
        if (paysFirst) {
            return stored;
        }
        return room.signum() < 0 ? 0 : stored + 1;
    }
}
