package io.ratelimited.spring.internals.call;

import io.ratelimited.core.Call;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.internals.expression.CallerNames;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Calls under the limits of the application, each of which is looked up in the registry by its name. Thread-safe. */
public final class NamedLimits implements RateLimits {

    private final LimitRegistry registry;
    private final LimitEnforcer enforcer;
    private final CurrentRequest.@Nullable Source requests;
    /** The class of calls; null for none. */
    private final @Nullable String priority;

    /** Without a class of calls. */
    public NamedLimits(LimitRegistry registry, LimitEnforcer enforcer, CurrentRequest.@Nullable Source requests) {
        this(registry, enforcer, requests, null);
    }

    private NamedLimits(
            LimitRegistry registry,
            LimitEnforcer enforcer,
            CurrentRequest.@Nullable Source requests,
            @Nullable String priority) {
        this.registry = registry;
        this.enforcer = enforcer;
        this.requests = requests;
        this.priority = priority;
    }

    @Override
    public NamedLimits withPriority(@Nullable String priority) {
        return new NamedLimits(registry, enforcer, requests, priority);
    }

    @Override
    public boolean tryAcquire(String name, @Nullable Object key) {
        return tryAcquire(name, key, 1);
    }

    @Override
    public boolean tryAcquire(String name, @Nullable Object key, long permits) {
        return enforcer.tryAcquire(called(name, key, permits), CallerNames.inKey(key), permits);
    }

    @Override
    public <T extends @Nullable Object> T execute(String name, @Nullable Object key, Supplier<T> call) {
        Admission admission = enforcer.enter(limitRequests(name, key, 1), currentRequest());
        Object result = null;
        Throwable error = null;
        try {
            T value = call.get();
            result = value;
            return value;
        } catch (Throwable ex) {
            error = ex;
            throw ex;
        } finally {
            admission.endWith(result, error);
        }
    }

    @Override
    public <T extends @Nullable Object> CompletableFuture<T> executeAsync(
            String name, @Nullable Object key, Supplier<? extends CompletionStage<T>> call) {
        return AsyncCalls.call(enforcer, limitRequests(name, key, 1), currentRequest(), call::get);
    }

    @Override
    public ReservedPermits reserve(String name, @Nullable Object key, long permits) {
        return new AdmittedPermits(enforcer.reserve(limitRequests(name, key, permits), currentRequest()));
    }

    @Override
    public CompletableFuture<ReservedPermits> reserveAsync(String name, @Nullable Object key, long permits) {
        CurrentRequest current = currentRequest();
        CompletableFuture<Admission> entered = enforcer.reserveAsync(limitRequests(name, key, permits), current);
        return AdmittedPermits.of(
                entered,
                entered.isDone() ? Runnable::run : enforcer.continuations().ofSubscriber(current));
    }

    private LimitRequest[] limitRequests(String name, @Nullable Object key, long permits) {
        ConfiguredLimit limit = called(name, key, permits);
        return new LimitRequest[] {LimitRequest.of(limit, CallerNames.inKey(key), permits, priority)};
    }

    /**
     * The limit of a call, which warns of properties that calls like this do not read.
     *
     * @throws IllegalArgumentException when there is no such limit, or the number of permits is negative: a future would hide
     *     the mistake, and a dry run admits a call that it cannot count
     */
    private ConfiguredLimit called(String name, @Nullable Object key, long permits) {
        ConfiguredLimit limit = registry.get(name);
        Permits.requireAsked(permits);
        limit.calledInCode(key != null);
        return limit;
    }

    private @Nullable CurrentRequest currentRequest() {
        return requests == null ? null : requests.current();
    }

    @Override
    public Decision peek(String name, @Nullable Object key) {
        ConfiguredLimit limit = registry.get(name);
        limit.requireKeyless(key);
        Object caller = CallerNames.inKey(key);
        return peek(caller, limit.limiterOf(caller), limit);
    }

    private Decision peek(@Nullable Object key, RateLimiter own, ConfiguredLimit limit) {
        return own.peek(Call.of(key, 1, 0, limit.classes().rank(own, priority)));
    }

    @Override
    public List<Decision> remaining(@Nullable Object key) {
        return remaining(key, null);
    }

    @Override
    public List<Decision> remaining(@Nullable Object key, @Nullable String tier) {
        Object caller = CallerNames.inKey(key);
        return registry.all().stream()
                .filter(limit -> limit.isKeyed() && limit.policy() != Policy.SHADOW)
                .filter(limit -> key != null || limit.enforcement().missingKey() == MissingKey.SHARED)
                .map(limit -> peek(
                        caller,
                        tier == null
                                ? limit.limiterOf(caller)
                                : limit.limiterOf(caller, limit.limiterOfKnownTier(tier)),
                        limit))
                .toList();
    }
}
