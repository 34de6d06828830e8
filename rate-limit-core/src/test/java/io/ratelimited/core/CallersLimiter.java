package io.ratelimited.core;

import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Callers with their own numbers under a limit that has others, as the contract of all limiters is held for them. An update gives
 * them other numbers; the limit of all stays as it is, unless it has to count in another way.
 */
public final class CallersLimiter implements RateLimiter {

    private final RateLimiter all;
    private volatile RateLimiter callers;

    private CallersLimiter(RateLimiter all, Limit own) {
        this.all = all;
        this.callers = all.ofCallers(numbers(own));
    }

    private static CallerLimit numbers(Limit own) {
        return new CallerLimit(own.rate().toString(), (Long) own.stated(Limit.Attribute.BURST));
    }

    /** @param all makes the limiter of all */
    public static RateLimiter of(Limit own, Function<Limit, ? extends RateLimiter> all) {
        return own.algorithm().countsCallsInFlight() ? all.apply(own) : new CallersLimiter(all.apply(others(own)), own);
    }

    /** The limiter that decides about the calls of one. */
    static RateLimiter asked(RateLimiter limiter) {
        return limiter instanceof CallersLimiter own ? own.callers : limiter;
    }

    private static Limit others(Limit own) {
        Rate rate = own.rate();
        if (own.isClosed() || own.isUnlimited()) {
            return own;
        }
        return own.toBuilder().rate(new Rate(3, rate.period(), rate.calendar())).build();
    }

    @Override
    public void update(Limit limit) {
        limit().requireChangeableTo(limit);
        if (!hasOnlyOtherNumbers(limit)) {
            all.update(others(limit));
        }
        callers = all.ofCallers(numbers(limit));
    }

    private boolean hasOnlyOtherNumbers(Limit limit) {
        try {
            return numbers(limit).apply(all.limit()).equals(limit);
        } catch (InvalidLimitException ex) {
            return false;
        }
    }

    @Override
    public Limit limit() {
        return callers.limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        return callers.tryAcquire(key, permits);
    }

    @Override
    public Reservation reserve(Call call) {
        return callers.reserve(call);
    }

    @Override
    public CompletionStage<Reservation> reserveAsync(Call call, Callbacks callbacks) {
        return callers.reserveAsync(call, callbacks);
    }

    @Override
    public Decision peek(Call call) {
        return callers.peek(call);
    }

    @Override
    public CompletionStage<Decision> peekAsync(Call call) {
        return callers.peekAsync(call);
    }

    @Override
    public Decision refused(Call call, Decision refusal) {
        return callers.refused(call, refusal);
    }

    @Override
    public void reset(@Nullable Object key) {
        callers.reset(key);
    }

    @Override
    public void close() {
        all.close();
    }

    @Override
    public long keys() {
        return all.keys();
    }

    @Override
    public int waiting() {
        return all.waiting();
    }

    @Override
    public Stream<Object> knownKeys() {
        return all.knownKeys();
    }

    @Override
    public Stream<BlockedKey> blockedKeys() {
        return callers.blockedKeys();
    }

    @Override
    public void onBlock(Consumer<BlockedKey> observer) {
        all.onBlock(observer);
    }

    @Override
    public Decision.@Nullable Source source() {
        return callers.source();
    }
}
