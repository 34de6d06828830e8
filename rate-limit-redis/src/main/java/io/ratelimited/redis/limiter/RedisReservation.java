package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/** Permits taken in Redis, or the refusal to. Its wait counts from the arrival of the reply: never too short. */
final class RedisReservation implements Reservation, WaitingRoom.Waiter {

    private final RemoteDecisions decisions;
    private final WaitingRoom waitingRoom;
    private final String key;
    private final long permits;
    /** When the call may go: {@link io.ratelimited.core.Ticker#nanos}. */
    private final long deadline;

    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile ScriptReply verdict;

    RedisReservation(
            RemoteDecisions decisions, WaitingRoom waitingRoom, String key, long permits, ScriptReply verdict) {
        this.decisions = decisions;
        this.waitingRoom = waitingRoom;
        this.key = key;
        this.permits = permits;
        this.verdict = verdict;
        this.deadline = verdict.outcome() > 0 ? decisions.ticker().nanos() + verdict.outcome() : 0;
    }

    @Override
    public boolean isRefused() {
        return !verdict.admitted();
    }

    @Override
    public long waitNanos() {
        return Math.max(0, verdict.outcome());
    }

    @Override
    public Decision decision() {
        return verdict.decision();
    }

    @Override
    public boolean await() throws InterruptedException {
        long wait = verdict.outcome();
        return wait > 0 ? waitingRoom.await(deadline, this) : wait == 0;
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        long wait = verdict.outcome();
        return wait > 0 ? waitingRoom.awaitAsync(deadline, this) : CompletableFuture.completedFuture(wait == 0);
    }

    @Override
    public boolean mayGo() {
        return !ended.get();
    }

    @Override
    public void crowdOut() {
        ScriptReply current = verdict;
        cancel();
        verdict = current.outcome(~current.outcome());
    }

    @Override
    public void cancel() {
        ScriptReply current = verdict;
        if (current.admitted() && ended.compareAndSet(false, true)) {
            decisions.giveBack(key, permits, current);
        }
    }

    @Override
    public void release() {
        // What counts over time does not depend on when a call ends.
    }
}
