package io.ratelimited.spring.internals.call;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Admits every call, whatever the name of its limit: where rate limiting is disabled, no annotation is read, so every name may
 * be that of a limit. Thread-safe.
 *
 * @param enforcer makes calls without limits
 */
public record UnlimitedCalls(LimitEnforcer enforcer) implements RateLimits {

    @Override
    public boolean tryAcquire(String name, @Nullable Object key) {
        return true;
    }

    @Override
    public boolean tryAcquire(String name, @Nullable Object key, long permits) {
        return true;
    }

    @Override
    public <T extends @Nullable Object> T execute(String name, @Nullable Object key, Supplier<T> call) {
        return call.get();
    }

    @Override
    public <T extends @Nullable Object> CompletableFuture<T> executeAsync(
            String name, @Nullable Object key, Supplier<? extends CompletionStage<T>> call) {
        return AsyncCalls.call(enforcer, LimitRequest.NONE, null, call::get);
    }

    @Override
    public ReservedPermits reserve(String name, @Nullable Object key, long permits) {
        return new AdmittedPermits(null);
    }

    @Override
    public CompletableFuture<ReservedPermits> reserveAsync(String name, @Nullable Object key, long permits) {
        return CompletableFuture.completedFuture(new AdmittedPermits(null));
    }

    @Override
    public RateLimits withPriority(@Nullable String priority) {
        return this;
    }

    @Override
    public Decision peek(String name, @Nullable Object key) {
        Limit unlimited =
                Limit.of(name, Algorithm.TOKEN_BUCKET).rate("unlimited").build();
        return new InMemoryRateLimiter(unlimited, Ticker.system(), 1).peek(key, 1, 0);
    }

    @Override
    public List<Decision> remaining(@Nullable Object key) {
        return List.of();
    }

    @Override
    public List<Decision> remaining(@Nullable Object key, @Nullable String tier) {
        return List.of();
    }
}
