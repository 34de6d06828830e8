package io.ratelimited.redis.limiter;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Permits of hot keys that this node has taken in Redis in advance, to be handed out here for a short time T. Whatever a
 * window of the cluster holds was granted by Redis in that window or at most T before, so that no window exceeds its
 * limit by more than rate · T: T is the tolerated share of the period. Unused permits go back with the next call; those
 * of a node that dies are lost. Only keys that this node asks for often are leased; all others stay exact.
 */
final class Leases {

    /** Calls a second of one key on this node from which on it is worth it. */
    private static final double HOT = 200;

    private static final long SHORTEST = TimeUnit.MILLISECONDS.toNanos(5);
    private static final long LONGEST = TimeUnit.SECONDS.toNanos(1);
    /** The calls of a key are counted for so long at a time. */
    private static final long SPAN = TimeUnit.MILLISECONDS.toNanos(50);

    private final Ticker ticker;
    private final IntSupplier nodes;
    private final double maxOvershoot;
    private final Cache<String, Hot> keys;

    Leases(Ticker ticker, IntSupplier nodes, double maxOvershoot, long maximumKeys) {
        this.ticker = ticker;
        this.nodes = nodes;
        this.maxOvershoot = maxOvershoot;
        this.keys = Caffeine.newBuilder()
                .maximumSize(maximumKeys)
                .expireAfterAccess(Duration.ofSeconds(5))
                .ticker(ticker::nanos)
                .executor(Runnable::run)
                .build();
    }

    /** T in nanoseconds; 0 when the limit is exact. */
    static long length(Limit limit, double maxOvershoot) {
        long length = (long) (limit.rate().period().toNanos() * maxOvershoot);
        return limit.algorithm().canBeLeased() && length >= SHORTEST ? Math.min(LONGEST, length) : 0;
    }

    /** Counts a call, and hands out what this node holds; null when Redis has to be asked. */
    @Nullable
    ScriptReply take(String key, ScriptParameters parameters, long permits) {
        if (maxOvershoot == 0 || length(parameters.limit(), maxOvershoot) == 0) {
            return null;
        }
        long now = ticker.nanos();
        Hot hot = keys.get(key, name -> new Hot(now));
        synchronized (hot) {
            hot.count(permits, now);
            return hot.handOut(parameters, permits, now);
        }
    }

    /** Hands out what this node has come to hold while a counted call waited for its turn. */
    @Nullable
    ScriptReply takeLate(String key, ScriptParameters parameters, long permits) {
        Hot hot = maxOvershoot == 0 ? null : keys.getIfPresent(key);
        if (hot == null) {
            return null;
        }
        synchronized (hot) {
            return hot.handOut(parameters, permits, ticker.nanos());
        }
    }

    /** Takes back permits of a lease that has not ended; those of others stay spent. */
    void giveBack(String key, long permits, ScriptReply taken) {
        Hot hot = taken.source() == Source.LEASE ? keys.getIfPresent(key) : null;
        if (hot != null) {
            synchronized (hot) {
                hot.left += hot.lease == taken.mark() ? permits : 0;
            }
        }
    }

    /** What to ask for beside the calls of a key; null for nothing. */
    @Nullable
    Request request(String key, ScriptParameters parameters, long now) {
        if (maxOvershoot == 0) {
            return null;
        }
        Hot hot = keys.getIfPresent(key);
        long length = length(parameters.limit(), maxOvershoot);
        if (hot == null || length == 0) {
            return null;
        }
        synchronized (hot) {
            PermitRequest refund =
                    hot.left > 0 && hot.parameters == parameters ? PermitRequest.refund(hot.left, hot.mark) : null;
            hot.left = 0;
            // What comes back from now on is of a lease that has ended.
            hot.lease = new Lease();
            if (refund == null && hot.callRate < HOT) {
                return null;
            }
            return new Request(hot, parameters, refund, size(hot, parameters.limit(), length, now), now, length);
        }
    }

    /**
     * As many as will be used in T, this node's share of what the cluster may use in T, and its share of what is left; none
     * if that is not enough for a call of the usual size.
     */
    private long size(Hot hot, Limit limit, long length, long now) {
        if (hot.callRate < HOT) {
            return 0;
        }
        int sharers = nodes.getAsInt();
        double perNano = (double) limit.rate().permits() / limit.rate().period().toNanos();
        double refilled = limit.algorithm().followsCalendar() ? 0 : (now - hot.answeredAt) * perNano;
        double capacity = (double) limit.capacity();
        double left = hot.parameters == null ? capacity : Math.min(capacity, hot.remaining + refilled);
        double used = hot.permitRate * length / TimeUnit.SECONDS.toNanos(1);
        double size = Math.min(Math.min(used, perNano * length / sharers), left / sharers);
        boolean servesACall = size * hot.callRate >= hot.permitRate;
        return servesACall ? (long) size : 0;
    }

    private static final class Lease {

        @Override
        public String toString() {
            return "";
        }
    }

    /** A key. Guarded by itself. */
    private static final class Hot {

        private long countedSince;
        private long countedCalls;
        /** No long, since a call may ask for as many as that. */
        private double countedPermits;
        /** Calls a second here. */
        private double callRate;
        /** Permits a second that they ask for. */
        private double permitRate;

        private @Nullable ScriptParameters parameters;
        private long left;
        /** When what is left is no longer ours to hand out. */
        private long until;

        private String mark = "";
        /** Marks the permits of one lease. Without a text, since the script cannot give them back one by one. */
        private Object lease = new Lease();

        private long remaining;
        private long answeredAt;
        private long fullAt;

        private Hot(long now) {
            this.countedSince = now;
            this.until = now;
            this.answeredAt = now;
        }

        private @Nullable ScriptReply handOut(ScriptParameters current, long permits, long now) {
            if (parameters != current || left < permits || now - until >= 0) {
                return null;
            }
            left -= permits;
            return new ScriptReply(0, remaining + left, Math.max(0, fullAt - now), lease, current, Source.LEASE);
        }

        private void count(long permits, long now) {
            countedCalls++;
            countedPermits += permits;
            long elapsed = now - countedSince;
            if (elapsed >= SPAN) {
                double spansASecond = (double) TimeUnit.SECONDS.toNanos(1) / elapsed;
                callRate = countedCalls * spansASecond;
                permitRate = countedPermits * spansASecond;
                countedCalls = 0;
                countedPermits = 0;
                countedSince = now;
            }
        }
    }

    /** What one script call gives back and asks for in advance. */
    record Request(
            Hot hot, ScriptParameters parameters, @Nullable PermitRequest refund, long size, long sentAt, long length) {

        /** What goes back, the calls, and what is wanted in advance. */
        List<PermitRequest> around(List<PermitRequest> batch) {
            List<PermitRequest> calls = new ArrayList<>(batch.size() + 2);
            if (refund != null) {
                calls.add(refund);
            }
            calls.addAll(batch);
            if (size > 0) {
                calls.add(new PermitRequest(size, 0));
            }
            return calls;
        }

        /** For how long a refused key is left alone, so that there is enough to lease by then. */
        long hold() {
            long untilFull = (long) ((double) parameters.limit().capacity()
                    * parameters.limit().rate().period().toNanos()
                    / parameters.limit().rate().permits());
            return parameters.limit().algorithm().followsCalendar() ? 0 : Math.min(length / 2, untilFull / 2);
        }

        /** The last answer: what is left in Redis, and whether the wish was granted if there was one. */
        void answered(ScriptReply last) {
            synchronized (hot) {
                hot.parameters = parameters;
                hot.remaining = last.remaining();
                hot.answeredAt = sentAt;
                hot.fullAt = sentAt + last.reset();
                if (size > 0 && last.admitted()) {
                    hot.left = size;
                    hot.mark = last.mark().toString();
                    boolean window = parameters.limit().algorithm().followsCalendar();
                    hot.until = sentAt + (window ? Math.min(length, last.reset()) : length);
                }
            }
        }
    }
}
