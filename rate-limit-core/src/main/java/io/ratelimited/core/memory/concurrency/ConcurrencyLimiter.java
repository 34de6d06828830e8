package io.ratelimited.core.memory.concurrency;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.overload.LimitChange;
import io.ratelimited.core.several.JointLocks;
import io.ratelimited.core.several.MemoryLimiter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides for calls in flight. A key has a cell only while it has a call in flight or waiting, so there are never more
 * cells than calls and nothing has to be evicted. {@link InMemoryRateLimiter} has checked the arguments. Thread-safe.
 */
public final class ConcurrencyLimiter implements MemoryLimiter {

    private final Ticker ticker;
    private final WaitingRoom waitingRoom;
    private final ConcurrencyCell single = new ConcurrencyCell(this, null);
    private final ConcurrentHashMap<Object, ConcurrencyCell> cells = new ConcurrentHashMap<>();
    private volatile Parameters parameters;
    /** Whether this limit has been one of several on a call; set before such a call holds a place. */
    private volatile boolean joined;

    /**
     * The numbers that cells compare with.
     *
     * @param maxConcurrent permits in use at once
     * @param lease nanoseconds after which a call no longer counts; {@link Long#MAX_VALUE} for never
     */
    record Parameters(Limit limit, long maxConcurrent, long lease) {

        static Parameters of(Limit limit) {
            Duration lease = limit.lease();
            return new Parameters(limit, limit.maxConcurrent(), lease == null ? Long.MAX_VALUE : lease.toNanos());
        }
    }

    /** A limiter without calls in flight. */
    public ConcurrencyLimiter(Limit limit, Ticker ticker) {
        this.ticker = ticker;
        this.waitingRoom = new WaitingRoom(ticker, () -> limit().maxWaiting());
        this.parameters = Parameters.of(limit);
    }

    @Override
    public Limit limit() {
        return parameters.limit;
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        throw Permits.nothingToRelease();
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        if (permits == 0) {
            return new ConcurrencyReservation(cell(key), 0, ConcurrencyReservation.ENDED);
        }
        ConcurrencyReservation call = reserveOnce(key, permits, maxWaitNanos);
        return !call.isRefused() || !joined
                ? call
                : JointLocks.again(this, key, () -> reserveOnce(key, permits, maxWaitNanos), Reservation::isRefused);
    }

    private ConcurrencyReservation reserveOnce(@Nullable Object key, long permits, long maxWaitNanos) {
        while (true) {
            ConcurrencyCell cell = key == null ? single : cells.get(key);
            if (cell == null) {
                cell = cells.computeIfAbsent(key, unseen -> new ConcurrencyCell(this, unseen));
            }
            ConcurrencyReservation call = cell.reserve(permits, maxWaitNanos);
            if (call != null) {
                return call;
            }
        }
    }

    @Override
    public Reservation ask(@Nullable Object key, long permits, long maxWaitNanos, @Nullable Reservation earlier) {
        if (!joined) {
            joined = true;
        }
        int outcome = outcome(key, permits, maxWaitNanos);
        return new ConcurrencyReservation(
                cell(key),
                permits,
                outcome == ConcurrencyReservation.ADMITTED ? ConcurrencyReservation.ENDED : outcome);
    }

    @Override
    public Reservation reserveAsked(Reservation asked, long maxWaitNanos) {
        ConcurrencyReservation call = (ConcurrencyReservation) asked;
        return call.permits() == 0 ? call : reserveOnce(call.cell().key(), call.permits(), maxWaitNanos);
    }

    @Override
    public int lock(Reservation asked) {
        return JointLocks.number(this, ((ConcurrencyReservation) asked).cell().key());
    }

    /** The upper bound, until calls have shown another limit. */
    @Override
    public @Nullable FoundLimit foundLimit() {
        Limit now = limit();
        int most = now.maxConcurrent();
        return now.algorithm().findsItsLimit()
                ? new FoundLimit(
                        most,
                        null,
                        most - single.remaining(),
                        waiting(),
                        List.of(0L),
                        new LimitChange(0, most, most, LimitChange.Reason.START))
                : null;
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        return decision(key, outcome(key, permits, maxWaitNanos));
    }

    /** A call of no permits needs no place. */
    private int outcome(@Nullable Object key, long permits, long maxWaitNanos) {
        int outcome = permits == 0 ? ConcurrencyReservation.ADMITTED : outcomeOnce(key, permits, maxWaitNanos);
        return outcome == ConcurrencyReservation.ADMITTED || !joined
                ? outcome
                : JointLocks.again(
                        this,
                        key,
                        () -> outcomeOnce(key, permits, maxWaitNanos),
                        again -> again != ConcurrencyReservation.ADMITTED);
    }

    private int outcomeOnce(@Nullable Object key, long permits, long maxWaitNanos) {
        return cell(key).peek(permits, maxWaitNanos);
    }

    private ConcurrencyCell cell(@Nullable Object key) {
        ConcurrencyCell cell = key == null ? single : cells.get(key);
        return cell != null ? cell : new ConcurrencyCell(this, key);
    }

    /** A decision of a cell, with the places that are free now. */
    Decision decision(@Nullable Object key, int state) {
        boolean never = state == ConcurrencyReservation.NEVER;
        return new Decision(
                limit().name(),
                !never && state != ConcurrencyReservation.FULL,
                Duration.ZERO,
                null,
                never,
                cell(key).remaining(),
                Duration.ZERO,
                Decision.Source.MEMORY);
    }

    /** Does nothing: calls in flight still count, and nothing else is remembered. */
    @Override
    public void reset(@Nullable Object key) {}

    @Override
    public void update(Limit limit) {
        synchronized (this) {
            limit().requireChangeableTo(limit);
            parameters = Parameters.of(limit);
        }
        single.limitChanged();
        cells.values().forEach(ConcurrencyCell::limitChanged);
    }

    @Override
    public long keys() {
        return cells.size();
    }

    @Override
    public void close() {
        waitingRoom.close();
    }

    @Override
    public int waiting() {
        return waitingRoom.size();
    }

    @Override
    public Stream<Object> knownKeys() {
        return cells.keySet().stream();
    }

    Parameters parameters() {
        return parameters;
    }

    WaitingRoom waitingRoom() {
        return waitingRoom;
    }

    Ticker ticker() {
        return ticker;
    }

    /** Removes the cell of a key when it has no call. */
    void removeIfIdle(@Nullable Object key) {
        if (key != null) {
            cells.computeIfPresent(key, (k, cell) -> cell.retireIfIdle() ? null : cell);
        }
    }
}
