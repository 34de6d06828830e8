package io.ratelimited.core.memory.block;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.MemoryLimiter;
import java.time.Duration;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A limiter in memory whose refusals block their keys. It looks for a block before the limiter is asked, so that calls of
 * blocked keys take nothing, and notes an offence when the limiter has refused. Keys are texts. Thread-safe.
 */
public final class BlockingLimiter implements MemoryLimiter {

    private final MemoryLimiter limiter;
    private final WaitingRoom waitingRoom;
    private final KeyBlocks blocks;
    private final Consumer<BlockedKey> observer;

    /**
     * @param waitingRoom of the limiter
     * @param observer hears of each block that begins, under no lock
     */
    public BlockingLimiter(
            MemoryLimiter limiter, WaitingRoom waitingRoom, KeyBlocks blocks, Consumer<BlockedKey> observer) {
        this.limiter = limiter;
        this.waitingRoom = waitingRoom;
        this.blocks = blocks;
        this.observer = observer;
    }

    @Override
    public Limit limit() {
        return limiter.limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        if (permits > 0 && blocks.left(key) > 0) {
            return false;
        }
        boolean taken = limiter.tryAcquire(key, permits);
        if (!taken && offends(key, permits, 0)) {
            offend(key);
        }
        return taken;
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        Reservation blocked = blocked(key, permits, maxWaitNanos);
        if (blocked != null) {
            return blocked;
        }
        Reservation reservation = limiter.reserve(key, permits, maxWaitNanos);
        return reservation.isRefused()
                ? refused(refused(key, permits, maxWaitNanos, reservation.decision()))
                : charged(key, reservation);
    }

    private @Nullable Reservation blocked(@Nullable Object key, long permits, long maxWaitNanos) {
        long left = permits > 0 ? blocks.left(key) : 0;
        return left > 0 ? refused(limiter.peek(key, permits, maxWaitNanos).blockedFor(Duration.ofNanos(left))) : null;
    }

    private static Reservation refused(Decision decision) {
        return AllOf.refused(new Decision[] {decision});
    }

    private Reservation charged(@Nullable Object key, Reservation reservation) {
        return key != null && limit().blocksByCharge()
                ? new ChargedReservation(reservation, () -> offendIfExhausted(key))
                : reservation;
    }

    private void offendIfExhausted(Object key) {
        Decision next = limiter.peek(key, 1, 0);
        if (!next.admitted() && !next.never()) {
            offend(key);
        }
    }

    @Override
    public Decision refused(@Nullable Object key, long permits, long maxWaitNanos, Decision refusal) {
        if (refusal.blocked() || refusal.never() || !offends(key, permits, maxWaitNanos)) {
            return refusal;
        }
        offend(key);
        long left = blocks.left(key);
        return left > 0 ? refusal.blockedFor(Duration.ofNanos(left)) : refusal;
    }

    /** Returns whether a refused call is an offence. */
    private boolean offends(@Nullable Object key, long permits, long maxWaitNanos) {
        Limit limit = limit();
        return key != null
                && !limit.blocksByCharge()
                && permits <= limit.capacity()
                && (maxWaitNanos <= 0 || waitingRoom.longestWait(key, maxWaitNanos) > 0);
    }

    private void offend(@Nullable Object key) {
        BlockedKey begun = key == null ? null : blocks.offend(key);
        if (begun != null) {
            observer.accept(begun);
        }
    }

    @Override
    public Reservation ask(@Nullable Object key, long permits, long maxWaitNanos, @Nullable Reservation earlier) {
        Reservation blocked = blocked(key, permits, maxWaitNanos);
        return blocked != null ? blocked : limiter.ask(key, permits, maxWaitNanos, earlier);
    }

    @Override
    public int lock(Reservation asked) {
        return limiter.lock(asked);
    }

    @Override
    public Reservation reserveAsked(Reservation asked, long maxWaitNanos) {
        Reservation reservation = limiter.reserveAsked(asked, maxWaitNanos);
        return asked instanceof WaitingRoom.Waiter waiter && !reservation.isRefused()
                ? charged(waiter.key(), reservation)
                : reservation;
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        Decision decision = limiter.peek(key, permits, maxWaitNanos);
        long left = permits > 0 ? blocks.left(key) : 0;
        return left > 0 ? decision.blockedFor(Duration.ofNanos(left)) : decision;
    }

    @Override
    public void reset(@Nullable Object key) {
        limiter.reset(key);
        blocks.forget(key);
    }

    @Override
    public void update(Limit limit) {
        limiter.update(limit);
        blocks.update(limit);
    }

    @Override
    public void close() {
        limiter.close();
    }

    @Override
    public long keys() {
        return limiter.keys();
    }

    @Override
    public int waiting() {
        return limiter.waiting();
    }

    @Override
    public Stream<Object> knownKeys() {
        return limiter.knownKeys();
    }

    @Override
    public Stream<BlockedKey> blockedKeys() {
        return blocks.all();
    }

    @Override
    public Decision.@Nullable Source source() {
        return limiter.source();
    }
}
