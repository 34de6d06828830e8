package io.ratelimited.redis.limiter;

import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** One call that wants permits; completes with what was decided, or with the reason why Redis did not. */
final class PermitRequest extends CompletableFuture<ScriptReply> {

    private final long permits;
    private final long maxWaitMicros;
    /** The mark of what is given back; null for a call that takes. */
    private final @Nullable String refunded;

    PermitRequest(long permits, long maxWaitNanos) {
        this(permits, maxWaitNanos, null);
    }

    private PermitRequest(long permits, long maxWaitNanos, @Nullable String refunded) {
        this.refunded = refunded;
        this.permits = permits;
        this.maxWaitMicros = Math.min(ScriptParameters.FAR, maxWaitNanos / 1000);
    }

    /** Gives permits back on the way. */
    static PermitRequest refund(long permits, String mark) {
        return new PermitRequest(permits, 0, mark);
    }

    long permits() {
        return permits;
    }

    long maxWaitMicros() {
        return maxWaitMicros;
    }

    /** Whether another call asks the same, so that a script is told once. */
    boolean asksAs(PermitRequest other) {
        return refunded == null
                && other.refunded == null
                && permits == other.permits
                && maxWaitMicros == other.maxWaitMicros;
    }

    /** What the script is told of the wait; see {@code decide.lua}. */
    String waitArgument() {
        return refunded == null ? Long.toString(maxWaitMicros) : "r" + refunded;
    }
}
