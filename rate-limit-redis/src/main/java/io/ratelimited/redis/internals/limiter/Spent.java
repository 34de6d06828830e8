package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.internals.memory.CellRateLimiter;
import io.ratelimited.redis.internals.connection.GuardedConnection.Charge;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.limiter.LocalBudgets.Share;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Permits of a key that were used without being reserved in Redis. Immutable.
 *
 * @param parameters the limit under which they were used
 * @param latest the numbers that the key has when they are charged
 * @param sharers number of nodes that share the limit
 * @param batch permits of the same batch are charged by one command
 * @param calls number of calls with {@code admitted}
 * @param admitted permits given away here
 * @param excess permits that calls used beyond their reservations, wherever these were made
 * @param lacked permits that the share lacked for the last call, if it has rejected that; those that do not come back are
 *     taken in Redis for the next one, if it has them
 * @param bucket of this node that has given the permits away; null if it gets nothing back
 */
record Spent(
        ScriptParameters parameters,
        Supplier<ScriptParameters> latest,
        int sharers,
        Object batch,
        int calls,
        long admitted,
        long excess,
        long lacked,
        @Nullable Bucket bucket)
        implements Charge {

    /**
     * A bucket of this node, of which permits were taken. Redis is asked whether it would have admitted the call instead: if so,
     * it has paid for the permits, and the bucket gets them back.
     *
     * @param text of the key
     * @param since the time of the bucket when the outage of the first call began
     * @param until the same at the last call
     * @param excess permits that calls used beyond their reservations here
     */
    record Bucket(CellRateLimiter limiter, @Nullable String text, long since, long until, long excess) {

        /** Null for a window, which gets nothing back. */
        static @Nullable Bucket of(Share own, @Nullable String text, long excess) {
            CellRateLimiter limiter = own.limiter();
            return limiter.limit().algorithm().family() == Family.WINDOW
                    ? null
                    : new Bucket(limiter, text, own.begunAt(), limiter.nanos(), excess);
        }

        /** The last one, if they are two: the key has come to another server. */
        private static @Nullable Bucket both(@Nullable Bucket first, @Nullable Bucket last) {
            if (first == null || last == null) {
                return first == null ? last : first;
            }
            return first.limiter.budgets() == last.limiter.budgets()
                    ? new Bucket(last.limiter, last.text, first.since, last.until, sum(first.excess, last.excess))
                    : last;
        }

        /** Whole permits with which it was refilled in that time. */
        private long refilled() {
            Rate rate = limiter.limit().rate();
            return (long) ((double) (until - since) / rate.period().toNanos() * rate.permits());
        }
    }

    @Override
    public Charge plus(Charge more) {
        Spent last = (Spent) more;
        return new Spent(
                last.parameters,
                last.latest,
                last.sharers,
                batch,
                calls + last.calls,
                sum(admitted, last.admitted),
                sum(excess, last.excess),
                last.calls > 0 ? 0 : last.lacked > 0 ? last.lacked : lacked,
                Bucket.both(bucket, last.bucket));
    }

    @Nullable
    Spent less(long unused) {
        return admitted <= unused && excess == 0 && lacked <= unused
                ? null
                : new Spent(
                        parameters,
                        latest,
                        sharers,
                        batch,
                        calls,
                        Math.max(0, admitted - unused),
                        excess,
                        Math.max(0, lacked - unused),
                        bucket);
    }

    @Override
    public long permits() {
        return sum(admitted, excess);
    }

    /** At most this node's share of the permits that the limit holds: those beyond it have been refilled meanwhile. */
    private long chargedOfAdmitted() {
        Limit shared = parameters.limit();
        long held = Math.min(
                shared.capacity(), Math.max(shared.burst(), shared.rate().permits()));
        return Math.min(Math.max(1, held / sharers), admitted);
    }

    @Override
    public ScriptArguments arguments(String time) {
        ScriptParameters current = current();
        ScriptArguments args = current.begin("charge", time);
        if (permits() > 0) {
            current.appendDecided(args, sum(chargedOfAdmitted(), excess), 0, bucket == null ? "" : "+");
        }
        long missing = missing();
        return missing > 0 ? current.appendDecided(args, missing, 0, "?") : args;
    }

    /** Permits that come back if Redis would have admitted the calls instead. */
    private long back() {
        return bucket != null && permits() > 0 && (calls <= 1 || paysForItself())
                ? Math.max(0, sum(chargedOfAdmitted(), bucket.excess) - bucket.refilled())
                : 0;
    }

    /** Permits to be taken for the next call: Redis has none for it either if none come back for the others. */
    private long missing() {
        return Math.max(0, lacked - back());
    }

    /** The numbers of now, if they have the same state: those of before would make a bucket that has grown as small as it was. */
    private ScriptParameters current() {
        ScriptParameters now = latest.get();
        return now.countsAs(parameters) && !now.isConstant() ? now : parameters;
    }

    @Override
    public void charged(List<Object> reply) {
        if (bucket == null) {
            return;
        }
        List<?> outcomes = reply.get(0) instanceof List ? reply : List.of(reply);
        long back = permits() > 0 && isAdmitted(outcomes.get(0)) ? back() : 0;
        if (missing() > 0 && isAdmitted(outcomes.get(outcomes.size() - 1))) {
            back = sum(back, missing());
        }
        if (back > 0) {
            bucket.limiter.refill(bucket.text, back);
        }
    }

    /** Where the next caller pays, Redis would have admitted one call, and not several of them, on credit. */
    private boolean paysForItself() {
        return parameters.limit().algorithm().family() == Family.BUCKET;
    }

    private static boolean isAdmitted(Object outcome) {
        return (Long) ((List<?>) outcome).get(0) >= 0;
    }

    private static long sum(long a, long b) {
        return a + b < 0 ? Long.MAX_VALUE : a + b;
    }
}
