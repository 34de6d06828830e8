package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongConsumer;

/** Permits taken in Redis, or the refusal to. Its wait counts from the arrival of the reply: never too short. */
final class RedisReservation implements Reservation, WaitingRoom.Waiter {

    private enum End {
        OPEN,
        CANCELLED,
        SETTLED
    }

    private final Ticker ticker;
    private final WaitingRoom waitingRoom;
    private final long permits;
    private final LongConsumer charge;
    /** When the reply was here: {@link Ticker#nanos}. */
    private final long decidedAt;

    private final AtomicReference<End> end = new AtomicReference<>(End.OPEN);
    private volatile ScriptReply reply;

    /**
     * @param charge takes permits in addition, or gives back those of a negative number; runs once at the most, if the call
     *     was admitted
     */
    RedisReservation(Ticker ticker, WaitingRoom waitingRoom, long permits, ScriptReply reply, LongConsumer charge) {
        this.ticker = ticker;
        this.waitingRoom = waitingRoom;
        this.permits = permits;
        this.charge = charge;
        this.reply = reply;
        this.decidedAt = ticker.nanos();
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
        return wait > 0 ? waitingRoom.await(decidedAt + wait, this) : wait == 0;
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        long wait = reply.outcome();
        return wait > 0 ? waitingRoom.awaitAsync(decidedAt + wait, this) : CompletableFuture.completedFuture(wait == 0);
    }

    @Override
    public boolean mayGo() {
        return end.get() != End.CANCELLED;
    }

    @Override
    public void crowdOut() {
        ScriptReply current = reply;
        cancel();
        reply = current.outcome(~current.outcome());
    }

    @Override
    public void cancel() {
        if (reply.admitted() && end.compareAndSet(End.OPEN, End.CANCELLED)) {
            charge.accept(-permits);
        }
    }

    @Override
    public void settle(long cost) {
        long excess = Permits.requireCharge(cost) - permits;
        ScriptReply decided = reply;
        if (decided.admitted() && end.compareAndSet(End.OPEN, End.SETTLED)) {
            reply = decided.settled(excess, ticker.nanos() - decidedAt);
            if (excess != 0) {
                charge.accept(excess);
            }
        }
    }

    @Override
    public void release() {
        // What counts over time does not depend on when a call ends.
    }
}
