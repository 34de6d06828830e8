package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.memory.CellRateLimiter;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * This node's share of a limit: of a bucket for the keys of one server, of a window for all keys. However many outages there
 * are, a bucket gives its share of one burst, the refill of the time that the outages took, and what Redis has paid for:
 *
 * <ul>
 *   <li>B1 A key begins with the share of the burst, once.
 *   <li>B2 The time of buckets passes only from one call to the next of the same outage. It stands still while the server
 *       decides, also for a caller whose outage has ended before the caller is decided here.
 *   <li>B3 A change of the limit, or of the number of nodes, keeps the state. Another algorithm begins anew.
 *   <li>B4 A key gets back permits that Redis had, and that were taken there for it ({@link CellRateLimiter#refill}); not those
 *       with which its bucket was refilled in that outage, since Redis was refilled, too.
 * </ul>
 *
 * Windows count in real time, and keep their permits from one outage to the next. Thread-safe.
 */
final class LocalBudgets {

    private final Ticker ticker;
    private final long maximumKeys;
    private final OutageTime outageTime = new OutageTime();
    /** Guarded by this. */
    private @Nullable CellRateLimiter limiter;
    /** The limit of which {@link #limiter} has a share. Guarded by this. */
    private @Nullable Limit whole;
    /** Number of nodes among which {@link #whole} is divided. Guarded by this. */
    private int nodes;
    /** The outage of the last call; null if there was none. Guarded by this. */
    private @Nullable Object outage;
    /** Time of that call. Guarded by this. */
    private long calledAt;
    /** Time of the buckets when that outage began. Guarded by this. */
    private long begunAt;

    /**
     * What decides a call.
     *
     * @param begunAt {@link CellRateLimiter#nanos} of a bucket when the present outage began
     */
    record Share(CellRateLimiter limiter, long begunAt) {}

    LocalBudgets(Ticker ticker, long maximumKeys) {
        this.ticker = ticker;
        this.maximumKeys = maximumKeys;
    }

    /**
     * The share that decides one call.
     *
     * @param present returns the present outage, by identity; null while the server decides
     */
    synchronized Share forCall(Supplier<@Nullable Object> present, Limit limit, int sharers) {
        passTime(present);
        CellRateLimiter current = limiter;
        if (current == null || !limit.equals(whole) || sharers != nodes) {
            Limit share = InstanceShare.of(limit, sharers);
            if (current == null || current.limit().algorithm() != share.algorithm()) {
                boolean window = share.algorithm().family() == Family.WINDOW;
                current = new CellRateLimiter(share, window ? ticker : outageTime, () -> maximumKeys);
            } else {
                current.update(share);
            }
            limiter = current;
            whole = limit;
            nodes = sharers;
        }
        return new Share(current, begunAt);
    }

    /** Reads the clock before the outage if that goes on, and after it if it is new: so B2 holds whatever comes between. */
    private void passTime(Supplier<@Nullable Object> present) {
        long now = ticker.nanos();
        Object seen = present.get();
        if (seen != null && seen == outage) {
            outageTime.pass(now - calledAt);
            calledAt = now;
        } else {
            outage = seen;
            calledAt = ticker.nanos();
            begunAt = outageTime.nanos();
        }
    }

    synchronized long keys() {
        return limiter == null ? 0 : limiter.keys();
    }

    synchronized void reset(@Nullable String text) {
        if (limiter != null) {
            limiter.reset(text);
        }
    }

    /** Nobody waits in this time: callers wait in that of the node. */
    private final class OutageTime implements Ticker {

        /** Written under the lock of the budgets. */
        private volatile long nanos;

        private void pass(long elapsed) {
            long next = nanos + elapsed;
            nanos = next;
        }

        @Override
        public long nanos() {
            return nanos;
        }

        @Override
        public long epochNanos() {
            return ticker.epochNanos();
        }

        @Override
        public void sleepUntil(long deadline) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Runnable schedule(long deadline, Runnable task) {
            throw new UnsupportedOperationException();
        }
    }
}
