package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitOperations;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;

/** The beans for calls and for operators of an application, and the limiters behind them. */
public record TestLimits(RateLimits calls, RateLimitOperations operations, Supplier<LimitRegistry> registry)
        implements RateLimits, RateLimitOperations {

    /** Those of an application context. */
    public static TestLimits of(BeanFactory context) {
        return new TestLimits(
                context.getBean(RateLimits.class),
                context.getBean(RateLimitOperations.class),
                () -> context.getBean(LimitRegistry.class));
    }

    /** The same limits, changed in the name of an author. */
    public TestLimits changedBy(String author) {
        return new TestLimits(calls, ((LimitOperations) operations).changedBy(author), registry);
    }

    /** A limit with its limiters. */
    public ConfiguredLimit configured(String name) {
        return registry.get().get(name);
    }

    @Override
    public boolean tryAcquire(String name, @Nullable Object key) {
        return calls.tryAcquire(name, key);
    }

    @Override
    public boolean tryAcquire(String name, @Nullable Object key, long permits) {
        return calls.tryAcquire(name, key, permits);
    }

    @Override
    public <T extends @Nullable Object> T execute(String name, @Nullable Object key, Supplier<T> call) {
        return calls.execute(name, key, call);
    }

    @Override
    public <T extends @Nullable Object> CompletableFuture<T> executeAsync(
            String name, @Nullable Object key, Supplier<? extends CompletionStage<T>> call) {
        return calls.executeAsync(name, key, call);
    }

    @Override
    public ReservedPermits reserve(String name, @Nullable Object key, long permits) {
        return calls.reserve(name, key, permits);
    }

    @Override
    public CompletableFuture<ReservedPermits> reserveAsync(String name, @Nullable Object key, long permits) {
        return calls.reserveAsync(name, key, permits);
    }

    @Override
    public TestLimits withPriority(@Nullable String priority) {
        return new TestLimits(calls.withPriority(priority), operations, registry);
    }

    @Override
    public Decision peek(String name, @Nullable Object key) {
        return calls.peek(name, key);
    }

    @Override
    public List<Decision> remaining(@Nullable Object key) {
        return calls.remaining(key);
    }

    @Override
    public List<Decision> remaining(@Nullable Object key, @Nullable String tier) {
        return calls.remaining(key, tier);
    }

    @Override
    public Limit change(String name, LimitChange change) {
        return operations.change(name, change);
    }

    @Override
    public Limit revert(String name) {
        return operations.revert(name);
    }

    @Override
    public void override(String name, Object key, LimitChange change, @Nullable Duration lasting) {
        operations.override(name, key, change, lasting);
    }

    @Override
    public void removeOverride(String name, Object key) {
        operations.removeOverride(name, key);
    }

    @Override
    public void reset(String name, @Nullable Object key) {
        operations.reset(name, key);
    }

    @Override
    public Collection<NamedLimit> limits() {
        return operations.limits();
    }

    @Override
    public NamedLimit limit(String name) {
        return operations.limit(name);
    }
}
