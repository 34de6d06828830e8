package io.ratelimited.redis;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/** One call that wants permits; completes with what was decided, or with the reason why Redis did not. */
final class Call extends CompletableFuture<Verdict> implements Deadlines.Timed {

    private final long permits;
    private final long maxWaitMicros;
    /** When whoever wants to know gives up: {@link System#nanoTime}. */
    private final long deadline;

    Call(long permits, long maxWaitNanos, long deadline) {
        this.permits = permits;
        this.maxWaitMicros = Math.min(RedisTerms.FAR, maxWaitNanos / 1000);
        this.deadline = deadline;
    }

    long permits() {
        return permits;
    }

    long maxWaitMicros() {
        return maxWaitMicros;
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

    /** Blocks until decided, at the longest until the deadline. */
    Verdict await() throws ExecutionException {
        return Calls.await(this, deadline - System.nanoTime());
    }
}
