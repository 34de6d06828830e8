package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.Permits;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
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
     * @param undecided whether its other limits had not decided yet
     */
    record Settlement(long excess, long reserved, boolean mayBlock, long elapsed, boolean undecided) {

        /** Returns whether the end of a call of so many permits may begin a block. */
        boolean isJudged(long permits) {
            return mayBlock && permits + excess > 0;
        }
    }

    /** Settles a call, at most once after it was released. */
    interface Charge {

        /** Returns the decision with the budget as it is then, which is found only if somebody asks for it. */
        Supplier<ScriptReply> settle(Settlement end);
    }

    private final Ticker ticker;
    private final WaitingRoom waitingRoom;
    private final @Nullable String text;
    private final long permits;
    private final Charge charge;
    /** Runs when the other limits of the call have admitted it; null if it is decided. */
    private final AtomicReference<@Nullable Runnable> keep;
    /** Time at which the reply arrived: {@link Ticker#nanos}. */
    private final long decidedAt;

    private final AtomicReference<End> end = new AtomicReference<>(End.OPEN);
    private volatile ScriptReply reply;

    /** @param keep runs when the other limits of the call have admitted it; null for a call that is decided */
    RedisReservation(
            Ticker ticker,
            WaitingRoom waitingRoom,
            @Nullable String text,
            long permits,
            ScriptReply reply,
            Charge charge,
            @Nullable Runnable keep) {
        this.ticker = ticker;
        this.waitingRoom = waitingRoom;
        this.text = text;
        this.permits = permits;
        this.charge = charge;
        this.keep = new AtomicReference<>(keep);
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
    public void keep() {
        Runnable first = keep.getAndSet(null);
        if (first != null && reply.admitted()) {
            first.run();
        }
    }

    private Settlement settlement(long excess, long reserved, boolean mayBlock) {
        return new Settlement(excess, reserved, mayBlock, ticker.nanos() - decidedAt, keep.getAndSet(null) != null);
    }

    @Override
    public void cancel() {
        if (!reply.admitted()) {
            return;
        }
        boolean first = end.compareAndSet(End.OPEN, End.CANCELLED);
        if ((first || end.compareAndSet(End.RELEASED, End.CANCELLED)) && permits > 0) {
            charge.settle(settlement(-permits, first ? 0 : -permits, false));
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
            reply = charge.settle(settlement(excess, reserved, mayBlock)).get();
        }
    }

    /** Permits that count over time do not depend on the end of a call; without a settlement it was charged all of them. */
    @Override
    public void release() {
        if (reply.admitted() && end.compareAndSet(End.OPEN, End.RELEASED)) {
            charge.settle(settlement(0, permits, false));
        }
    }
}
