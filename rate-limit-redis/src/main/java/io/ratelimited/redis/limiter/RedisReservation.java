package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/** Permits taken in Redis, or the refusal to. Its wait counts from the arrival of the reply: never too short. */
final class RedisReservation implements Reservation, WaitingRoom.Waiter {

    private final WaitingRoom waitingRoom;
    private final Runnable giveBack;
    /** When the call may go: {@link Ticker#nanos}. */
    private final long deadline;

    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile ScriptReply reply;

    /** @param giveBack runs once at the most, if the call was admitted */
    RedisReservation(Ticker ticker, WaitingRoom waitingRoom, ScriptReply reply, Runnable giveBack) {
        this.waitingRoom = waitingRoom;
        this.giveBack = giveBack;
        this.reply = reply;
        this.deadline = reply.outcome() > 0 ? ticker.nanos() + reply.outcome() : 0;
    }

    @Override
    public boolean isRefused() {
        return !reply.admitted();
    }

    @Override
    public long waitNanos() {
        return Math.max(0, reply.outcome());
    }

    @Override
    public Decision decision() {
        return reply.decision();
    }

    @Override
    public boolean await() throws InterruptedException {
        long wait = reply.outcome();
        return wait > 0 ? waitingRoom.await(deadline, this) : wait == 0;
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        long wait = reply.outcome();
        return wait > 0 ? waitingRoom.awaitAsync(deadline, this) : CompletableFuture.completedFuture(wait == 0);
    }

    @Override
    public boolean mayGo() {
        return !ended.get();
    }

    @Override
    public void crowdOut() {
        ScriptReply current = reply;
        cancel();
        reply = current.outcome(~current.outcome());
    }

    @Override
    public void cancel() {
        if (reply.admitted() && ended.compareAndSet(false, true)) {
            giveBack.run();
        }
    }

    @Override
    public void settle(long permits) {
        throw new UnsupportedOperationException("built next");
    }

    @Override
    public void release() {
        // What counts over time does not depend on when a call ends.
    }
}
