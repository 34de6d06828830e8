package io.ratelimited.redis.simulation;

import io.ratelimited.core.Decision.Source;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** What a caller has seen. Times in nanoseconds since the beginning. */
final class Call {

    static final long NEVER = Long.MAX_VALUE;

    final Step step;
    final Node node;
    final int permits;
    final long sentAt;
    /** How long the caller was ready to wait. */
    final long maxWait;

    long decidedAt = NEVER;
    int completions;

    @Nullable
    Source source;

    @Nullable
    Throwable failure;
    /** The wait of the decision. */
    long wait;

    /** What the call has cost; its permits unless it was settled. */
    long cost;
    /** Redis was known to be away when the call was settled, so that its charge is remembered. */
    boolean settledInOutage;

    /** Nanoseconds for which the node knew the key to be blocked, when it refused the call; and the level of that block. */
    long blockLeft;

    int blockLevel;
    /** Refused by a block. */
    boolean blocked;

    boolean refused;
    boolean cancelled;
    /** When the call began. */
    long wentAt = NEVER;

    long endedAt = NEVER;
    /** When it was known that the call does not begin, or when it began. */
    long settledAt = NEVER;

    Call(Step step, Node node, int permits, long sentAt, long maxWait) {
        this.step = step;
        this.node = node;
        this.permits = permits;
        this.cost = permits;
        this.sentAt = sentAt;
        this.maxWait = maxWait;
    }

    /** Permits that were used of those that were reserved. */
    long stands() {
        return Math.min(permits, cost);
    }

    /** Permits that were used beyond those that were reserved. */
    long excess() {
        return Math.max(0, cost - permits);
    }

    boolean went() {
        return wentAt != NEVER;
    }

    /** Decided by this node alone. */
    boolean isLocal() {
        return source == Source.FALLBACK;
    }

    private static String millis(long nanos) {
        return nanos == NEVER ? "never" : String.format(Locale.ROOT, "%.3f", nanos / 1e6);
    }

    @Override
    public String toString() {
        return node + " k" + step.key() + ", " + permits + " permits, sent " + millis(sentAt) + ", decided "
                + millis(decidedAt) + " by " + source + (refused ? ", refused" : "")
                + (blockLevel > 0 ? ", blocked for " + millis(blockLeft) + " by level " + blockLevel : "")
                + (cost == permits ? "" : ", cost " + cost) + (cancelled ? ", cancelled" : "")
                + (failure == null ? "" : ", " + failure.getClass().getSimpleName())
                + (wait > 0 ? ", waits " + millis(wait) : "") + ", went " + millis(wentAt) + ", ended "
                + millis(endedAt);
    }
}
