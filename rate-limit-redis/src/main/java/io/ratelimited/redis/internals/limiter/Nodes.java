package io.ratelimited.redis.internals.limiter;

import java.util.concurrent.atomic.AtomicLong;

/** The nodes that share the limits, as far as this one knows them. Thread-safe. */
public final class Nodes {

    /** A node that does not know yet how many there are is one of so many at least. */
    private static final int UNTIL_COUNTED = 4;
    /** Later than every time that a script can have. */
    private static final long UNKNOWN_ORIGIN = (1L << 53) - 1;

    private final String self;
    private final int expected;
    private final AtomicLong calls = new AtomicLong();
    /** The larger of the last two counts: nodes report one by one to a server that has restarted empty. */
    private volatile int counted;

    private volatile int lastCount;
    /** Whether {@link #counted} includes all nodes that began together with this one. */
    private volatile boolean complete;
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
     * @param all whether the nodes that began together with this one have all reported
     * @return whether it is the first count
     */
    public boolean count(int count, long first, boolean all) {
        boolean isFirst = lastCount == 0;
        counted = Math.max(count, lastCount);
        lastCount = count;
        origin = first;
        complete |= all;
        return isFirst;
    }

    /** Returns how many there are, as expected or counted; 0 while unknown. */
    public int known() {
        return expected > 0 ? expected : counted;
    }

    /** Returns the number of nodes among which a limit is divided while Redis is away; at least 1. */
    int sharers() {
        return expected > 0 ? expected : Math.max(complete ? 1 : UNTIL_COUNTED, counted);
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
