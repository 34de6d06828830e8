package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.Rate;
import java.time.Duration;

/** The share that one of several nodes has of a limit, so that all of them together stay within it. */
final class InstanceShare {

    private static final Duration LONGEST = Duration.ofDays(3_650);

    private InstanceShare() {}

    /** Without blocks, which are no matter of permits. */
    static Limit of(Limit whole, int nodes) {
        Limit limit = whole.block() == null
                ? whole
                : whole.toBuilder().withoutBlocks().build();
        Rate rate = limit.rate();
        if (nodes <= 1 || limit.isClosed() || limit.isUnlimited()) {
            return limit;
        }
        Limit.Builder share = limit.toBuilder();
        switch (limit.algorithm().family()) {
            case IN_FLIGHT ->
                share.maxConcurrent(limit.maxConcurrent() == 0 ? 0 : Math.max(1, limit.maxConcurrent() / nodes));
            case WINDOW -> {
                Rate part = window(rate, nodes);
                share.rate(part).startsOn(part.calendar() == null ? null : limit.startsOn());
            }
            case BUCKET, PACED -> share.rate(paced(rate, nodes));
        }
        if (limit.algorithm().uses(Attribute.BURST) && !limit.storesOneSecond()) {
            long least = limit.algorithm().storesOneSecond() ? 0 : 1;
            share.burst(Math.max(least, limit.burst() / nodes));
        }
        return share.build();
    }

    /** The same permits in a longer time: exact, and without a remainder. */
    private static Rate paced(Rate rate, int nodes) {
        Duration longer = rate.period().multipliedBy(nodes);
        return longer.compareTo(LONGEST) <= 0 ? new Rate(rate.permits(), longer) : window(rate, nodes);
    }

    /** Fewer permits in the same time; less than one is one in a longer time, whose length is fixed. */
    private static Rate window(Rate rate, int nodes) {
        if (rate.permits() >= nodes) {
            return new Rate(rate.permits() / nodes, rate.period(), rate.calendar());
        }
        Duration longer = rate.period().multipliedBy((nodes - 1) / rate.permits() + 1);
        return new Rate(1, longer.compareTo(LONGEST) <= 0 ? longer : LONGEST);
    }
}
