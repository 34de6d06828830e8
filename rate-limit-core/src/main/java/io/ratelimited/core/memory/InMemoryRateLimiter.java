package io.ratelimited.core.memory;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Call;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.core.internals.memory.CellRateLimiter;
import io.ratelimited.core.internals.memory.block.BlockObservers;
import io.ratelimited.core.internals.memory.concurrency.ConcurrencyLimiter;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.overload.FoundLimitChange;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides in the memory of this process. Checks the arguments and passes them to a {@link CellRateLimiter} for a limit that
 * counts over time, or to a {@link ConcurrencyLimiter} for calls in flight. Thread-safe; no lock is held while waiting, and
 * {@link #tryAcquire} on a known key allocates nothing.
 */
public final class InMemoryRateLimiter implements MemoryLimiter {

    /** Keys remembered by a limit for which no other number is set. */
    public static final long DEFAULT_MAXIMUM_KEYS = 1_000_000;

    private final BlockObservers observers;
    private final MemoryLimiter limiter;

    /** A limiter on the system's clock that remembers up to {@value #DEFAULT_MAXIMUM_KEYS} keys. */
    public InMemoryRateLimiter(Limit limit) {
        this(limit, Ticker.system(), DEFAULT_MAXIMUM_KEYS);
    }

    /**
     * @param maximumKeys the largest number of keys to remember, 1 or more; an evicted key is folded into shared
     *     state, so that a flood of keys gives nobody more than the limit
     * @throws IllegalArgumentException when it is less
     */
    public InMemoryRateLimiter(Limit limit, Ticker ticker, long maximumKeys) {
        this(limit, ticker, () -> maximumKeys);
        if (maximumKeys < 1) {
            throw new IllegalArgumentException("maximumKeys must be at least 1: " + maximumKeys);
        }
    }

    /**
     * @param maximumKeys asked once, when the first key comes: the largest number of keys to remember, 1 or more
     */
    public InMemoryRateLimiter(Limit limit, Ticker ticker, LongSupplier maximumKeys) {
        this.observers = new BlockObservers();
        this.limiter = limit.algorithm().countsCallsInFlight()
                ? new ConcurrencyLimiter(limit, ticker)
                : new CellRateLimiter(limit, ticker, maximumKeys, observers::tell);
    }

    private InMemoryRateLimiter(MemoryLimiter limiter, BlockObservers observers) {
        this.limiter = limiter;
        this.observers = observers;
    }

    @Override
    public RateLimiter ofCallers(UnaryOperator<Limit> numbers) {
        return limiter instanceof CellRateLimiter cells
                ? new InMemoryRateLimiter(cells.ofCallers(numbers), observers)
                : MemoryLimiter.super.ofCallers(numbers);
    }

    @Override
    public RateLimiter ofKnownCaller(Object key) {
        RateLimiter known = limiter.ofKnownCaller(CanonicalKey.text(key));
        return known != limiter && known instanceof CellRateLimiter cells
                ? new InMemoryRateLimiter(cells, observers)
                : this;
    }

    @Override
    public Object budgets() {
        return limiter.budgets();
    }

    @Override
    public Limit limit() {
        return limiter.limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        return limiter.tryAcquire(canonical(key), Permits.requireAsked(permits));
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        return limiter.reserve(canonical(key), Permits.requireAsked(permits), maxWaitNanos);
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos, int rank) {
        return limiter.reserve(canonical(key), Permits.requireAsked(permits), maxWaitNanos, rank);
    }

    @Override
    public Reservation reserve(Call call) {
        return limiter instanceof CellRateLimiter cells
                ? cells.reserve(
                        canonical(call.key()),
                        Permits.requireAsked(call.permits()),
                        call.maxWaitNanos(),
                        patienceOf(call))
                : MemoryLimiter.super.reserve(call);
    }

    private static long patienceOf(Call call) {
        return call.isExemptFromBlocks() ? CellRateLimiter.EXEMPT : call.patienceNanos();
    }

    @Override
    public CompletionStage<Reservation> reserveAsync(Call call, Callbacks callbacks) {
        return CompletableFuture.completedFuture(reserve(call));
    }

    @Override
    public Reservation ask(Call call, @Nullable Reservation earlier) {
        return limiter instanceof CellRateLimiter cells
                ? cells.ask(
                        canonical(call.key()),
                        Permits.requireAsked(call.permits()),
                        call.maxWaitNanos(),
                        patienceOf(call),
                        earlier)
                : MemoryLimiter.super.ask(call, earlier);
    }

    @Override
    public Decision peek(Call call) {
        return limiter instanceof CellRateLimiter cells
                ? cells.peek(
                        canonical(call.key()),
                        Permits.requireAsked(call.permits()),
                        call.maxWaitNanos(),
                        patienceOf(call))
                : MemoryLimiter.super.peek(call);
    }

    @Override
    public Decision refused(Call call, Decision refusal) {
        return limiter instanceof CellRateLimiter cells
                ? cells.refused(canonical(call.key()), call.permits(), refusal, patienceOf(call))
                : MemoryLimiter.super.refused(call, refusal);
    }

    @Override
    public CompletionStage<Reservation> reserveAsync(
            @Nullable Object key, long permits, long maxWaitNanos, Callbacks callbacks, int rank) {
        return CompletableFuture.completedFuture(reserve(key, permits, maxWaitNanos, rank));
    }

    @Override
    public Reservation ask(
            @Nullable Object key, long permits, long maxWaitNanos, int rank, @Nullable Reservation earlier) {
        return limiter.ask(canonical(key), Permits.requireAsked(permits), maxWaitNanos, rank, earlier);
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos, int rank) {
        return limiter.peek(canonical(key), Permits.requireAsked(permits), maxWaitNanos, rank);
    }

    @Override
    public @Nullable FoundLimit foundLimit() {
        return limiter.foundLimit();
    }

    @Override
    public void onLimitChange(Consumer<FoundLimitChange> observer) {
        limiter.onLimitChange(observer);
    }

    @Override
    public Reservation ask(@Nullable Object key, long permits, long maxWaitNanos, @Nullable Reservation earlier) {
        return limiter.ask(canonical(key), Permits.requireAsked(permits), maxWaitNanos, earlier);
    }

    @Override
    public int lock(Reservation asked) {
        return limiter.lock(asked);
    }

    @Override
    public Reservation reserveAsked(Reservation asked, long maxWaitNanos) {
        return limiter.reserveAsked(asked, maxWaitNanos);
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        return limiter.peek(canonical(key), Permits.requireAsked(permits), maxWaitNanos);
    }

    @Override
    public void reset(@Nullable Object key) {
        limiter.reset(canonical(key));
    }

    @Override
    public Decision refused(@Nullable Object key, long permits, long maxWaitNanos, Decision refusal) {
        return limiter.refused(canonical(key), permits, maxWaitNanos, refusal);
    }

    @Override
    public Decision refused(@Nullable Object key, long permits, long maxWaitNanos, Decision refusal, int rank) {
        return limiter.refused(canonical(key), permits, maxWaitNanos, refusal, rank);
    }

    @Override
    public Stream<BlockedKey> blockedKeys() {
        return limiter.blockedKeys();
    }

    @Override
    public void onBlock(Consumer<BlockedKey> observer) {
        observers.add(observer);
    }

    @Override
    public void update(Limit limit) {
        limiter.update(limit);
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
        return limiter.knownKeys().map(text -> CanonicalKey.ofText(text.toString()));
    }

    @Override
    public Decision.Source source() {
        return Decision.Source.MEMORY;
    }

    /** Caches see short strings only, whatever a caller makes keys of: their hash codes are cheap, and they can be compared. */
    private static @Nullable String canonical(@Nullable Object key) {
        return key == null ? null : CanonicalKey.text(key);
    }
}
