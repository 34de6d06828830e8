package io.ratelimited.redis.limiter;

import io.ratelimited.redis.script.PermitCost;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** One call that wants permits; completes with the decision, or with the reason why Redis has not decided. */
final class PermitRequest extends CompletableFuture<ScriptReply> {

    /** The longest wait of a call that only too many waiting callers keep from waiting. */
    static final long CROWDED = -1;

    private final long permits;
    private final long maxWaitMicros;
    /** The mark of the grant that is given back; null for a call that takes. */
    private final @Nullable String refunded;
    /** Whether it is an offence if it is refused, where refusals are. */
    private final boolean offends;
    /** The text of its key, where that may be blocked; else null. */
    private final @Nullable String text;

    PermitRequest(long permits, long maxWaitNanos) {
        this(permits, maxWaitNanos, null, null);
    }

    /** @param maxWaitNanos the longest wait of the call now; {@link #CROWDED} if it may wait, but too many do */
    PermitRequest(long permits, long maxWaitNanos, @Nullable String refunded, @Nullable String text) {
        this.refunded = refunded;
        this.permits = permits;
        this.maxWaitMicros = micros(maxWaitNanos);
        this.offends = maxWaitNanos != CROWDED;
        this.text = text;
    }

    /** Gives permits back on the way. */
    static PermitRequest refund(long permits, String mark) {
        return new PermitRequest(permits, 0, mark, null);
    }

    /** A longest wait as scripts are given it. */
    static long micros(long maxWaitNanos) {
        return Math.min(PermitCost.FAR, Math.max(0, maxWaitNanos) / 1000);
    }

    long permits() {
        return permits;
    }

    long maxWaitMicros() {
        return maxWaitMicros;
    }

    boolean offends() {
        return offends;
    }

    @Nullable
    String text() {
        return text;
    }

    @Nullable
    String refunded() {
        return refunded;
    }

    /** Returns whether another call asks for the same, so that both are one group to a script. */
    boolean asksAs(PermitRequest other) {
        return other.refunded == null && offends == other.offends && takes(other.permits, other.maxWaitMicros);
    }

    /** Returns whether it asks for so many permits and waits for so long. */
    boolean takes(long number, long longestWaitMicros) {
        return refunded == null && permits == number && maxWaitMicros == longestWaitMicros;
    }
}
