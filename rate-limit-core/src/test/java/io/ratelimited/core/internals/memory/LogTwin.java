package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

/**
 * The sliding log: a list of all grants ever made, with their instants, counted anew for every decision. What has left
 * the window when a call is granted is gone for good, even if a later call comes with an earlier time.
 */
final class LogTwin implements Twin {

    private record Grant(long instant, long permits) {}

    private final long limit;
    private final long period;
    private final List<Grant> grants = new ArrayList<>();

    LogTwin(Limit limit) {
        this.limit = limit.rate().permits();
        this.period = limit.rate().period().toNanos();
    }

    /** Permits of grants later than one period before the instant. */
    private long taken(long instant) {
        return grants.stream()
                .filter(grant -> grant.instant - (instant - period) > 0)
                .mapToLong(Grant::permits)
                .sum();
    }

    /** Now, or the instant of the last grant if that is later. */
    private long last(long now) {
        return grants.stream()
                .filter(grant -> grant.permits > 0)
                .mapToLong(Grant::instant)
                .reduce(now, Math::max);
    }

    /** The first instant, not before now or an earlier grant, at which the permits fit into the period that ends there. */
    private long instantFor(long permits, long now) {
        long earliest = last(now);
        return LongStream.concat(
                        LongStream.of(earliest),
                        grants.stream()
                                .mapToLong(grant -> grant.instant + period)
                                .filter(end -> end > earliest))
                .filter(instant -> taken(instant) + permits <= limit)
                .min()
                .orElseThrow();
    }

    @Override
    public long decide(long permits, long now, long maxWait) {
        return permits > limit ? Cell.NEVER : Twin.outcome(instantFor(permits, now) - now, maxWait);
    }

    @Override
    public void grant(long permits, long now) {
        add(instantFor(permits, now), permits, now);
    }

    @Override
    public void charge(long permits, long now) {
        add(last(now), permits, now);
    }

    private void add(long instant, long permits, long now) {
        grants.replaceAll(grant -> grant.instant + period <= now ? new Grant(grant.instant, 0) : grant);
        grants.add(new Grant(instant, permits));
    }

    @Override
    public void giveBack(int grant, long permits, long now) {
        Grant before = grants.get(grant);
        grants.set(grant, new Grant(before.instant, Math.max(0, before.permits - permits)));
    }

    @Override
    public long remaining(long now) {
        boolean waited = grants.stream().anyMatch(grant -> grant.permits > 0 && grant.instant > now);
        return waited ? 0 : Math.max(0, limit - taken(now));
    }
}
