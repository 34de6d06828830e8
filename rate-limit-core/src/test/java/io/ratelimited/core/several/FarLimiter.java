package io.ratelimited.core.several;

import io.ratelimited.core.Call;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.several.MemoryLimiter;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A limiter that is not in memory, as far as others know: its decisions come from an executor, or fail. Those of one executor
 * are one backend.
 */
class FarLimiter implements JointRateLimiter {

    private final RateLimiter own;
    private final Executor network;

    FarLimiter(RateLimiter own, Executor network) {
        this.own = own;
        this.network = network;
    }

    /** The failure of the next decision, before anything is taken; null for none. */
    @Nullable
    RuntimeException failure() {
        return null;
    }

    /** Is told of each single call when it is decided, before its caller is. */
    void decided(Call call, Reservation reservation) {}

    private <T> T decided(Supplier<T> decision) {
        RuntimeException failure = failure();
        if (failure != null) {
            throw failure;
        }
        return decision.get();
    }

    private <T> CompletableFuture<T> far(Supplier<T> decision) {
        return CompletableFuture.supplyAsync(() -> decided(decision), network);
    }

    @Override
    public long nanos() {
        return ((MemoryLimiter) own).nanos();
    }

    @Override
    public boolean decidesWith(RateLimiter other) {
        return other instanceof FarLimiter far && far.network == network;
    }

    private static List<Reservation> all(List<Claim> claims, long othersWaitNanos) {
        Claim[] near = claims.stream()
                .map(claim -> Claim.of(
                        ((FarLimiter) claim.limiter()).own,
                        claim.key(),
                        claim.permits(),
                        claim.maxWaitNanos(),
                        claim.rank()))
                .toArray(Claim[]::new);
        List<Reservation> taken = MemoryClaims.take(near, othersWaitNanos, false);
        return taken.size() < claims.size()
                ? taken
                : IntStream.range(0, claims.size())
                        .mapToObj(i -> taken.get(i) instanceof Later later
                                ? new Later(claims.get(i), later.decision(), later.asked())
                                : taken.get(i))
                        .toList();
    }

    @Override
    public List<Reservation> reserveAll(List<Claim> claims, long othersWaitNanos) {
        return decided(() -> all(claims, othersWaitNanos));
    }

    @Override
    public CompletionStage<List<Reservation>> reserveAllAsync(
            List<Claim> claims, long othersWaitNanos, Callbacks callbacks) {
        return far(() -> all(claims, othersWaitNanos));
    }

    @Override
    public Limit limit() {
        return own.limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        return decided(() -> own.tryAcquire(key, permits));
    }

    @Override
    public Reservation reserve(Call call) {
        Reservation reservation = decided(() -> own.reserve(near(call)));
        decided(call, reservation);
        return reservation;
    }

    private static Call near(Call call) {
        return Call.of(call.key(), call.permits(), call.maxWaitNanos(), call.rank());
    }

    @Override
    public CompletionStage<Reservation> reserveAsync(Call call, Callbacks callbacks) {
        return WaitingRoom.orGivenBack(
                CompletableFuture.supplyAsync(() -> reserve(call), network), Reservation::cancel);
    }

    @Override
    public Decision peek(Call call) {
        return decided(() -> own.peek(near(call)));
    }

    @Override
    public CompletionStage<Decision> peekAsync(Call call) {
        return far(() -> own.peek(near(call)));
    }

    @Override
    public void reset(@Nullable Object key) {
        own.reset(key);
    }

    @Override
    public void update(Limit limit) {
        own.update(limit);
    }

    @Override
    public long keys() {
        return own.keys();
    }

    @Override
    public int waiting() {
        return own.waiting();
    }
}
