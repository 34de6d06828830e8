package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Permits taken in Redis, or the refusal to. Its wait counts from the arrival of the reply: never too short. */
final class RedisReservation implements Reservation, WaitingRoom.Waiter {

    private enum End {
        OPEN,
        CANCELLED,
        /** Its permits are used, and its cost may still become known. */
        RELEASED,
        SETTLED
    }

    /**
     * How a call that was admitted has ended.
     *
     * @param excess permits to take in addition, or to give back if it is negative
     * @param reserved how many of its permits the call was charged, which was not noted before; less than 0 for fewer than was noted
     * @param mayBlock whether that says something about its caller
     * @param elapsed nanoseconds since the reply was here
     */
    record Settlement(long excess, long reserved, boolean mayBlock, long elapsed) {

        /** Returns whether the end of a call of so many permits may begin a block. */
        boolean isJudged(long permits) {
            return mayBlock && permits + excess > 0;
        }
    }

    /** Settles a call, at most once after it was released. */
    interface Charge {

        /** Returns the decision with the budget as it is now. */
        ScriptReply settle(Settlement end);
    }

    private final Ticker ticker;
    private final WaitingRoom waitingRoom;
    private final @Nullable String text;
    private final long permits;
    private final Charge charge;
    /** Time at which the reply arrived: {@link Ticker#nanos}. */
    private final long decidedAt;

    private final AtomicReference<End> end = new AtomicReference<>(End.OPEN);
    private volatile ScriptReply reply;

    RedisReservation(
            Ticker ticker,
            WaitingRoom waitingRoom,
            @Nullable String text,
            long permits,
            ScriptReply reply,
            Charge charge) {
        this.ticker = ticker;
        this.waitingRoom = waitingRoom;
        this.text = text;
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
    public @Nullable Object key() {
        return text;
    }

    @Override
    public boolean mayGo() {
        return end.get() != End.CANCELLED;
    }

    @Override
    public void crowdOut() {
        ScriptReply current = reply;
        cancel();
        reply = current.withOutcome(~current.outcome());
    }

    @Override
    public void cancel() {
        if (permits == 0 || !reply.admitted()) {
            return;
        }
        boolean first = end.compareAndSet(End.OPEN, End.CANCELLED);
        if (first || end.compareAndSet(End.RELEASED, End.CANCELLED)) {
            charge.settle(new Settlement(-permits, first ? 0 : -permits, false, ticker.nanos() - decidedAt));
        }
    }

    @Override
    public void settle(long cost) {
        settle(cost, true);
    }

    @Override
    public void settle(long cost, boolean mayBlock) {
        long excess = Permits.requireCharge(cost) - permits;
        if (!reply.admitted()) {
            return;
        }
        boolean first = end.compareAndSet(End.OPEN, End.SETTLED);
        if (first || end.compareAndSet(End.RELEASED, End.SETTLED)) {
            long reserved = Math.min(cost, permits) - (first ? 0 : permits);
            reply = charge.settle(new Settlement(excess, reserved, mayBlock, ticker.nanos() - decidedAt));
        }
    }

    /** Permits that count over time do not depend on the end of a call; without a settlement it was charged all of them. */
    @Override
    public void release() {
        if (reply.admitted() && end.compareAndSet(End.OPEN, End.RELEASED)) {
            charge.settle(new Settlement(0, permits, false, ticker.nanos() - decidedAt));
        }
    }
}
