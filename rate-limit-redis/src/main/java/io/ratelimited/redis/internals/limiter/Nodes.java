package io.ratelimited.redis.internals.limiter;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The nodes that share the limits, as far as this one knows them. A larger count applies immediately, a smaller one only after
 * {@link #COUNT_MILLIS} in which Redis has counted no more: nodes report one by one when they begin together, and to a server
 * that has restarted empty. Thread-safe.
 */
public final class Nodes {

    /** Nodes that can reach Redis have all reported after this time. */
    public static final long COUNT_MILLIS = 3_000;

    /** A node that does not know yet how many there are is one of so many at least. */
    private static final int UNTIL_COUNTED = 4;
    /** Later than every time that a script can have. */
    private static final long UNKNOWN_ORIGIN = (1L << 53) - 1;

    private final String self;
    private final int expected;
    private final AtomicLong calls = new AtomicLong();
    /** The number that applies. Written under the lock. */
    private volatile int counted = UNTIL_COUNTED;
    /** Whether {@link #counted} is a count. Written under the lock. */
    private volatile boolean complete;
    /** The last count; 0 if there was none. Written under the lock. */
    private volatile int lastCount;
    /** The most nodes since the count was first smaller than {@link #counted}; 0 if it is not. Guarded by this. */
    private int fewer;
    /** Time of that, in nanoseconds. Guarded by this. */
    private long fewerSince;
    /** Time at which the first of the nodes began, in microseconds since 1970. */
    private volatile long origin = UNKNOWN_ORIGIN;

    /**
     * @param self the name of this process, unique in the cluster
     * @param expected number of nodes; 0 to count them
     */
    public Nodes(String self, int expected) {
        this.self = self;
        this.expected = expected;
    }

    public String self() {
        return self;
    }

    /**
     * Takes over a count.
     *
     * @param first the time at which the first node began, in microseconds since 1970
     * @param now in nanoseconds
     * @return whether it is the first count
     */
    public synchronized boolean count(int count, long first, long now) {
        boolean isFirst = lastCount == 0;
        lastCount = count;
        origin = first;
        fewerSince = fewer == 0 ? now : fewerSince;
        fewer = Math.max(count, fewer);
        if (fewer >= counted || now - fewerSince >= TimeUnit.MILLISECONDS.toNanos(COUNT_MILLIS)) {
            counted = fewer;
            complete = true;
            fewer = 0;
        }
        return isFirst;
    }

    /** Redis decides again after an outage, in which no node could report. */
    public synchronized void recovered() {
        fewer = 0;
    }

    /** Returns how many there are, as expected or counted; 0 while unknown. */
    public int known() {
        return expected > 0 ? expected : lastCount;
    }

    /** Returns the number of nodes among which a limit is divided while Redis is away; at least 1. */
    int sharers() {
        return expected > 0 ? expected : counted;
    }

    /** Returns the share of a limit that decides locally, for the log. */
    public String describeShare() {
        return "; with 'local', this instance enforces " + (sharers() == 1 ? "all" : "1/" + sharers())
                + " of each limit"
                + (expected > 0
                        ? ", because expected-nodes is " + expected
                        : complete
                                ? ", which is the number of counted instances"
                                : ", because the instances are not counted yet and expected-nodes is not set");
    }

    long origin() {
        return origin;
    }

    /** A new name for a call in flight, unique in the cluster. */
    String callId() {
        return "call:" + self + ':' + calls.incrementAndGet();
    }
}
