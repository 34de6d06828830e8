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
        SETTLED
    }

    /** Settles a call whose cost differs from its reservation. */
    interface Charge {

        /**
         * Takes permits in addition, or gives back those of a negative number. Called once at the most, if the call was
         * admitted.
         *
         * @param elapsed nanoseconds since the reply was here
         * @return the decision with the budget as it is now
         */
        ScriptReply settle(long excess, long elapsed);
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
        if (permits > 0 && reply.admitted() && end.compareAndSet(End.OPEN, End.CANCELLED)) {
            charge.settle(-permits, ticker.nanos() - decidedAt);
        }
    }

    @Override
    public void settle(long cost) {
        long excess = Permits.requireCharge(cost) - permits;
        if (reply.admitted() && end.compareAndSet(End.OPEN, End.SETTLED)) {
            reply = charge.settle(excess, ticker.nanos() - decidedAt);
        }
    }

    @Override
    public void release() {
        // Permits that count over time do not depend on the end of a call.
    }
}
