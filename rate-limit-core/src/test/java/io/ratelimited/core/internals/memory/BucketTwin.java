package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.internals.memory.Cell.Grant;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;

/**
 * The four algorithms of virtual time, in fractions: one nanosecond is R parts, one permit P parts, for R permits in P
 * nanoseconds, so that every amount is a whole number.
 */
final class BucketTwin implements Twin {

    private record Grant(BigInteger mark, BigInteger cost, BigInteger instant, boolean waited) {}

    private record Returned(BigInteger mark, BigInteger amount) {}

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
    /** No waiting caller goes later; {@link #emptyAt} until anything was given back from the middle or charged into debt. */
    private BigInteger due;

    private boolean divided;
    /** When permits were or will be used last; known once {@link #divided}. */
    private BigInteger lastUse;
    /** What was given back from the middle. */
    private final List<Returned> returned = new ArrayList<>();

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
        this.due = emptyAt;
        this.lastUse = emptyAt;
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
        BigInteger instant = emptyAt.compareTo(at(now)) > 0 && paysFirst ? emptyAt : at(now);
        lastUse = lastUse.max(instant);
        grants.add(new Grant(latest, cost(permits), instant, instant.compareTo(at(now)) > 0));
        if (emptyAt.compareTo(at(now)) > 0) {
            due = due.max(emptyAt);
        }
    }

    @Override
    public void charge(long permits, long now) {
        boolean intoDebt = begin(now).add(cost(permits)).compareTo(at(now)) > 0;
        if (paysFirst && intoDebt) {
            divide(now);
        }
        latest = latest.max(begin(now)).add(cost(permits));
        emptyAt = begin(now).add(cost(permits));
        lastUse = lastUse.max(at(now));
        grants.add(new Grant(latest, cost(permits), at(now), false));
    }

    @Override
    public void giveBack(int grant, long permits, long now) {
        if (latest.compareTo(emptyAt) > 0) {
            if (begin(now).compareTo(emptyAt) > 0) {
                emptyAt = begin(now);
                latest = latest.max(emptyAt);
                returned.clear();
            }
        }
        BigInteger cost = cost(permits);
        BigInteger mark = grants.get(grant).mark();
        BigInteger behind = latest.subtract(mark);
        if (behind.signum() == 0
                && paysFirst
                && emptyAt.compareTo(at(now)) > 0
                && cost.compareTo(grants.get(grant).cost) < 0) {
            divide(now);
            emptyAt = emptyAt.subtract(cost);
            returned.add(new Returned(mark, cost));
        } else if (behind.signum() == 0) {
            emptyAt = emptyAt.subtract(cost);
            latest = latest.subtract(cost);
        } else if (paysFirst) {
            boolean allGone = (divided ? due.min(latest) : emptyAt).compareTo(at(now)) <= 0;
            BigInteger room = emptyAt.subtract(at(now).subtract(depth));
            BigInteger free = allGone
                    ? room.min(roomAtLastUse(grants.get(grant), behind, now)).min(cost)
                    : room.min(cost).subtract(behind);
            if (free.signum() > 0) {
                divide(now);
                emptyAt = emptyAt.subtract(free);
                returned.add(new Returned(mark, free));
            }
        }
    }

    /** The room just before the last use, of which two bounds are known. */
    private BigInteger roomAtLastUse(Grant grant, BigInteger behind, long now) {
        BigInteger last = divided ? lastUse.min(at(now)) : at(now);
        BigInteger after = behind.subtract(returnedAfter(grant.mark));
        BigInteger afterAll = emptyAt.subtract(last.subtract(depth)).subtract(after);
        return grant.waited ? afterAll : afterAll.max(grant.cost.subtract(last.subtract(grant.instant)));
    }

    private BigInteger returnedAfter(BigInteger mark) {
        return returned.stream()
                .filter(back -> back.mark.compareTo(mark) > 0)
                .map(Returned::amount)
                .reduce(BigInteger.ZERO, BigInteger::add);
    }

    private void divide(long now) {
        if (!divided) {
            divided = true;
            due = emptyAt;
            lastUse = emptyAt.max(at(now));
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
