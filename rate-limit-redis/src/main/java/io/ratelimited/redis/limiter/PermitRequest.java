package io.ratelimited.redis.limiter;

import io.ratelimited.redis.connection.Deadlines;
import io.ratelimited.redis.connection.Replies;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** One call that wants permits; completes with what was decided, or with the reason why Redis did not. */
final class PermitRequest extends CompletableFuture<ScriptReply> implements Deadlines.Timed {

    private final long permits;
    private final long maxWaitMicros;
    /** When whoever wants to know gives up: {@link Deadlines#next}. */
    private final long deadline;

    /** The mark of what is given back; null for a call that takes. */
    private final @Nullable String refunded;

    PermitRequest(long permits, long maxWaitNanos, long deadline) {
        this(permits, maxWaitNanos, deadline, null);
    }

    private PermitRequest(long permits, long maxWaitNanos, long deadline, @Nullable String refunded) {
        this.refunded = refunded;
        this.permits = permits;
        this.maxWaitMicros = Math.min(LimitTerms.FAR, maxWaitNanos / 1000);
        this.deadline = deadline;
    }

    /** Gives permits back on the way. */
    static PermitRequest refund(long permits, String mark) {
        return new PermitRequest(permits, 0, 0, mark);
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

    @Override
    public long deadline() {
        return deadline;
    }

    @Override
    public void expire() {
        if (!isDone()) {
            completeExceptionally(new TimeoutException("Redis did not decide in time"));
        }
    }

    /** Blocks until decided, at the longest for the timeout. */
    ScriptReply await(long timeoutNanos) throws ExecutionException {
        return Replies.await(this, timeoutNanos);
    }
}
