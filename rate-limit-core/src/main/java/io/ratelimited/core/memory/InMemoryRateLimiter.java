package io.ratelimited.core.memory;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Call;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.memory.CellRateLimiter;
import io.ratelimited.core.internals.memory.concurrency.ConcurrencyLimiter;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.overload.FoundLimitChange;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides in the memory of this process. Uses a {@link CellRateLimiter} for a limit that
 * counts over time, or a {@link ConcurrencyLimiter} for calls in flight. Thread-safe; no lock is held while waiting, and
 * {@link #tryAcquire} on a known key allocates nothing.
 */
public final class InMemoryRateLimiter implements MemoryLimiter {

    /** Default of the maximum number of keys. */
    public static final long DEFAULT_MAXIMUM_KEYS = 1_000_000;

    private final MemoryLimiter limiter;

    /** Creates a limiter on the system clock, for up to {@value #DEFAULT_MAXIMUM_KEYS} keys. */
    public InMemoryRateLimiter(Limit limit) {
        this(limit, Ticker.system(), DEFAULT_MAXIMUM_KEYS);
    }

    /**
     * @param maximumKeys the maximum number of tracked keys, 1 or more; the used permits of evicted keys are kept in shared
     *     state, so that a flood of keys gives no caller more than the limit
     * @throws IllegalArgumentException if it is less
     */
    public InMemoryRateLimiter(Limit limit, Ticker ticker, long maximumKeys) {
        this(limit, ticker, () -> maximumKeys);
        if (maximumKeys < 1) {
            throw new IllegalArgumentException("maximumKeys must be at least 1: " + maximumKeys);
        }
    }

    /** @param maximumKeys the maximum number of tracked keys, 1 or more; called once, for the first key */
    public InMemoryRateLimiter(Limit limit, Ticker ticker, LongSupplier maximumKeys) {
        this.limiter = limit.algorithm().countsCallsInFlight()
                ? new ConcurrencyLimiter(limit, ticker)
                : new CellRateLimiter(limit, ticker, maximumKeys);
    }

    private InMemoryRateLimiter(MemoryLimiter limiter) {
        this.limiter = limiter;
    }

    @Override
    public RateLimiter ofCallers(UnaryOperator<Limit> numbers) {
        return new InMemoryRateLimiter((MemoryLimiter) limiter.ofCallers(numbers));
    }

    @Override
    public RateLimiter ofKnownCaller(Object key) {
        RateLimiter known = limiter.ofKnownCaller(key);
        return known.equals(limiter) ? this : new InMemoryRateLimiter((MemoryLimiter) known);
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
        return limiter.tryAcquire(key, permits);
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        return limiter.reserve(key, permits, maxWaitNanos);
    }

    @Override
    public Reservation reserve(Call call) {
        return limiter.reserve(call);
    }

    @Override
    public Reservation ask(Call call, @Nullable Reservation earlier) {
        return limiter.ask(call, earlier);
    }

    @Override
    public Decision peek(Call call) {
        return limiter.peek(call);
    }

    @Override
    public Decision refused(Call call, Decision refusal) {
        return limiter.refused(call, refusal);
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
    public long nanos() {
        return limiter.nanos();
    }

    @Override
    public long inFlight(@Nullable Object key) {
        return limiter.inFlight(key);
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
    public void reset(@Nullable Object key) {
        limiter.reset(key);
    }

    @Override
    public Stream<BlockedKey> blockedKeys() {
        return limiter.blockedKeys();
    }

    @Override
    public void onBlock(Consumer<BlockedKey> observer) {
        limiter.onBlock(observer);
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
}
