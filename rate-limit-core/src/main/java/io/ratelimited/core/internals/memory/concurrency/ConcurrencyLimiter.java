package io.ratelimited.core.internals.memory.concurrency;

import io.ratelimited.core.Call;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.overload.FoundLimitChange;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides for calls in flight. A key has a cell only while it has a call in flight or waiting, so there are never more
 * cells than calls and nothing has to be evicted. Thread-safe.
 */
public final class ConcurrencyLimiter implements MemoryLimiter {

    private final Ticker ticker;
    private final WaitingRoom waitingRoom;
    /** Finds the limit; null where it is stated. */
    private final @Nullable AdaptiveLimit adaptive;
    /** Refused calls by the name of their class, also of one that a change has taken away. Guarded by this. */
    private final Map<String, LongAdder> refused = new HashMap<>(1);

    private final ConcurrencyCell single;
    private final ConcurrentHashMap<Object, ConcurrencyCell> cells = new ConcurrentHashMap<>();
    private volatile Parameters parameters;
    /** Whether this limit has been one of several on a call; set before such a call holds a place. */
    private volatile boolean joined;

    /**
     * The numbers that cells compare with.
     *
     * @param maxConcurrent permits in use at once
     * @param lease nanoseconds after which a call no longer counts; {@link Long#MAX_VALUE} for never
     * @param refused calls by rank, where the limit seeks itself; else empty
     * @param plain whether calls are equal and the limit is stated, as most are: a call goes while {@code maxConcurrent} allows it
     */
    record Parameters(
            Limit limit, long maxConcurrent, long lease, Classes classes, List<LongAdder> refused, boolean plain) {}

    /** A limiter without calls in flight. */
    public ConcurrencyLimiter(Limit limit, Ticker ticker) {
        this.ticker = ticker;
        this.waitingRoom = new WaitingRoom(ticker, () -> limit().maxWaiting());
        this.parameters = parameters(limit);
        this.adaptive = limit.algorithm().findsItsLimit() ? new AdaptiveLimit(limit, ticker) : null;
        this.single = new ConcurrencyCell(this, null);
    }

    private synchronized Parameters parameters(Limit limit) {
        List<String> names = limit.priorities().isEmpty() ? List.of("") : limit.priorities();
        Duration lease = limit.lease();
        return new Parameters(
                limit,
                limit.maxConcurrent(),
                lease == null ? Long.MAX_VALUE : lease.toNanos(),
                Classes.of(limit),
                limit.algorithm().findsItsLimit()
                        ? names.stream()
                                .map(name -> refused.computeIfAbsent(name, unseen -> new LongAdder()))
                                .toList()
                        : List.of(),
                names.size() == 1 && !limit.algorithm().findsItsLimit());
    }

    @Override
    public Limit limit() {
        return parameters.limit;
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        Permits.requireAsked(permits);
        throw Permits.nothingToRelease(limit().name());
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        return reserve(CanonicalKey.textOrNull(key), permits, maxWaitNanos, NO_RANK);
    }

    @Override
    public Reservation reserve(Call call) {
        return reserve(CanonicalKey.textOrNull(call.key()), call.permits(), call.maxWaitNanos(), call.rank());
    }

    private Reservation reserve(@Nullable String key, long permits, long maxWaitNanos, int rank) {
        Permits.requireAsked(permits);
        checkKey(key);
        if (permits == 0) {
            return new ConcurrencyReservation(cell(key), 0, rank, ConcurrencyReservation.ENDED);
        }
        ConcurrencyReservation call = reserveOnce(key, permits, rank, maxWaitNanos);
        return !call.isRefused() || (!joined && adaptive == null)
                ? call
                : refusedOnce(call, key, permits, rank, maxWaitNanos);
    }

    private Reservation refusedOnce(
            ConcurrencyReservation first, @Nullable Object key, long permits, int rank, long maxWaitNanos) {
        ConcurrencyReservation call = !joined
                ? first
                : JointLocks.again(
                        this, key, () -> reserveOnce(key, permits, rank, maxWaitNanos), Reservation::isRefused);
        if (call.isRefused() && !call.mayWait()) {
            refused(call.rank());
        }
        return call;
    }

    private ConcurrencyReservation reserveOnce(@Nullable Object key, long permits, int stated, long maxWaitNanos) {
        while (true) {
            Parameters current = parameters;
            int rank = current.plain ? 0 : current.classes.rank(stated);
            ConcurrencyCell cell = key == null ? single : cells.get(key);
            if (cell == null) {
                cell = cells.computeIfAbsent(key, unseen -> new ConcurrencyCell(this, unseen));
            }
            ConcurrencyReservation call = cell.reserve(current, permits, rank, maxWaitNanos);
            if (call != null) {
                return call;
            }
        }
    }

    @Override
    public Reservation ask(Call call, @Nullable Reservation earlier) {
        String key = CanonicalKey.textOrNull(call.key());
        if (!joined) {
            joined = true;
        }
        int outcome = outcome(key, call);
        return new ConcurrencyReservation(
                cell(key),
                call.permits(),
                call.rank(),
                outcome == ConcurrencyReservation.ADMITTED ? ConcurrencyReservation.ENDED : outcome);
    }

    @Override
    public Reservation reserveAsked(Reservation asked, long maxWaitNanos) {
        ConcurrencyReservation call = (ConcurrencyReservation) asked;
        return call.permits() == 0 ? call : reserveOnce(call.cell().key(), call.permits(), call.rank(), maxWaitNanos);
    }

    @Override
    public long nanos() {
        return ticker.nanos();
    }

    @Override
    public long inFlight(@Nullable Object key) {
        ConcurrencyCell cell = cell(CanonicalKey.textOrNull(key));
        cell.endLeases();
        return cell.used();
    }

    @Override
    public int lock(Reservation asked) {
        return JointLocks.number(this, ((ConcurrencyReservation) asked).cell().key());
    }

    @Override
    public @Nullable FoundLimit foundLimit() {
        return adaptive == null
                ? null
                : new FoundLimit(
                        adaptive.limit(),
                        adaptive.baseTime(),
                        single.used(),
                        waiting(),
                        parameters.refused.stream().map(LongAdder::sum).toList(),
                        adaptive.last());
    }

    @Override
    public void onLimitChange(Consumer<FoundLimitChange> observer) {
        if (adaptive != null) {
            adaptive.observe(observer);
        }
    }

    @Override
    public Decision peek(Call call) {
        String key = CanonicalKey.textOrNull(call.key());
        return decision(key, outcome(key, call));
    }

    /** Limits that differ by key would each see a part of what happens to one process. */
    private void checkKey(@Nullable Object key) {
        if (adaptive != null && key != null) {
            throw new IllegalArgumentException("limit '" + limit().name()
                    + "' is ADAPTIVE, which has one limit for all calls of this process; use null as its key");
        }
    }

    /** A call of no permits needs no place. */
    private int outcome(@Nullable String key, Call call) {
        long permits = Permits.requireAsked(call.permits());
        checkKey(key);
        int outcome = permits == 0 ? ConcurrencyReservation.ADMITTED : outcomeOnce(key, call);
        return outcome == ConcurrencyReservation.ADMITTED || !joined
                ? outcome
                : JointLocks.again(
                        this, key, () -> outcomeOnce(key, call), again -> again != ConcurrencyReservation.ADMITTED);
    }

    private int outcomeOnce(@Nullable String key, Call call) {
        return cell(key).peek(call.permits(), classes().rank(call.rank()), call.maxWaitNanos());
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
        Runnable told = () -> {};
        synchronized (this) {
            limit().requireChangeableTo(limit);
            parameters = parameters(limit);
            if (adaptive != null) {
                told = adaptive.update(limit);
            }
        }
        told.run();
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

    Classes classes() {
        return parameters.classes;
    }

    /** Null where the limit is stated. */
    @Nullable
    AdaptiveLimit adaptive() {
        return adaptive;
    }

    @Override
    public Decision refused(Call call, Decision refusal) {
        if (adaptive != null && !refusal.never()) {
            adaptive.full(ticker.nanos(), single.used());
        }
        refused(classes().rank(call.rank()));
        return refusal;
    }

    /** Counts a refusal, for observers; none of a class that was taken away while the call waited. */
    void refused(int rank) {
        List<LongAdder> byRank = parameters.refused;
        if (rank < byRank.size()) {
            byRank.get(rank).increment();
        }
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
