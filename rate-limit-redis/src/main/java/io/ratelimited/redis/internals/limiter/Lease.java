package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Permits of a hot key that this node has taken in Redis in advance, to be handed out here for a short time T. Redis has
 * granted all permits of a window of the cluster in that window or at most T before, so that no window exceeds its limit by
 * more than rate · T: T is the tolerated share of the period. Unused permits go back with the next call; those of a node
 * that dies are lost. Only keys that this node asks for often are leased; all others stay exact. Guarded by its
 * {@link KeyState}.
 */
final class Lease {

    /** Calls a second of one key on this node from which on a lease is worth its cost. */
    private static final double HOT = 200;

    private static final long SHORTEST = TimeUnit.MILLISECONDS.toNanos(5);
    private static final long LONGEST = TimeUnit.SECONDS.toNanos(1);
    /** Length of the spans in which the calls of a key are counted. */
    private static final long SPAN = TimeUnit.MILLISECONDS.toNanos(50);

    private long countedSince;
    private long countedCalls;
    /** A double, since one call may ask for as many permits as a long holds. */
    private double countedPermits;
    /** Calls a second here. */
    private double callRate;
    /** Permits a second that they ask for. */
    private double permitRate;

    private @Nullable ScriptParameters parameters;
    private long left;
    /** Time from which on the permits left may not be handed out. */
    private long until;

    private String mark = "";
    /** Marks permits that are handed out between two script calls. */
    private Handed handed = new Handed();

    private long remaining;
    private long answeredAt;
    private long fullAt;

    Lease(long now) {
        this.countedSince = now;
        this.until = now;
        this.answeredAt = now;
    }

    /** Without a text, since the script cannot give these permits back one by one. */
    private static final class Handed {

        @Override
        public String toString() {
            return "";
        }
    }

    /**
     * The permits that one script call gives back and asks for in advance.
     *
     * @param size permits wanted in advance; 0 for none
     * @param length T in nanoseconds
     */
    record Wish(ScriptParameters parameters, @Nullable PermitRequest refund, long size, long sentAt, long length) {

        /** Returns the refund, the calls, and the request for permits in advance. */
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

        /** Returns the time for which a refused key is not asked for, so that there is enough to lease by then. */
        private long hold() {
            Limit limit = parameters.limit();
            long untilFull = (long) ((double) limit.capacity()
                    * limit.rate().period().toNanos()
                    / limit.rate().permits());
            return limit.algorithm().followsCalendar() ? 0 : Math.min(length / 2, untilFull / 2);
        }

        /** Returns {@link #hold} of a wish; 0 if there is none. */
        static long hold(@Nullable Wish wish) {
            return wish == null ? 0 : wish.hold();
        }
    }

    /** T in nanoseconds; 0 when the limit is exact. */
    static long length(Limit limit, double maxOvershoot) {
        if (maxOvershoot == 0) {
            return 0;
        }
        long length = (long) (limit.rate().period().toNanos() * maxOvershoot);
        return limit.algorithm().canBeLeased() && length >= SHORTEST ? Math.min(LONGEST, length) : 0;
    }

    void count(long permits, long now) {
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

    /** Hands out permits that this node holds; null when Redis has to be asked. */
    @Nullable
    ScriptReply handOut(ScriptParameters current, long permits, long now) {
        if (parameters != current || left < permits || now - until >= 0) {
            return null;
        }
        left -= permits;
        return new ScriptReply(0, remaining + left, Math.max(0, fullAt - now), handed, current, Source.LEASE);
    }

    /** Takes back permits, unless a script call has followed: those of an ended lease stay spent. */
    void takeBack(long permits, ScriptReply taken) {
        left += handed == taken.mark() ? permits : 0;
    }

    /**
     * Returns the request to send beside the calls of a key; null for none.
     *
     * @param length as of {@link #length}, not 0
     * @param sharers nodes that may lease permits of the key
     */
    @Nullable
    Wish wish(ScriptParameters current, long length, int sharers, long now) {
        PermitRequest refund = left > 0 && parameters == current ? PermitRequest.refund(left, mark) : null;
        left = 0;
        // Permits that come back from now on are of a lease that has ended.
        handed = new Handed();
        if (refund == null && callRate < HOT) {
            return null;
        }
        return new Wish(current, refund, size(current.limit(), length, sharers, now), now, length);
    }

    /**
     * Returns the least of three numbers: the permits that will be used in T, this node's share of those that the cluster
     * may use in T, and its share of those left; 0 if that is not enough for a call of the usual size.
     */
    private long size(Limit limit, long length, int sharers, long now) {
        if (callRate < HOT) {
            return 0;
        }
        double perNano = (double) limit.rate().permits() / limit.rate().period().toNanos();
        double refilled = limit.algorithm().followsCalendar() ? 0 : (now - answeredAt) * perNano;
        double capacity = (double) limit.capacity();
        double available = parameters == null ? capacity : Math.min(capacity, remaining + refilled);
        double used = permitRate * length / TimeUnit.SECONDS.toNanos(1);
        double size = Math.min(Math.min(used, perNano * length / sharers), available / sharers);
        boolean servesACall = size * callRate >= permitRate;
        return servesACall ? (long) size : 0;
    }

    /**
     * Reads the last answer to a script call: the permits left in Redis, and whether the wish was granted if there was one.
     */
    void answered(Wish wish, ScriptReply last) {
        parameters = wish.parameters;
        remaining = last.remaining();
        answeredAt = wish.sentAt;
        fullAt = wish.sentAt + last.reset();
        if (wish.size > 0 && last.admitted()) {
            left = wish.size;
            mark = last.mark().toString();
            boolean window = wish.parameters.limit().algorithm().followsCalendar();
            until = wish.sentAt + (window ? Math.min(wish.length, last.reset()) : wish.length);
        }
    }
}
