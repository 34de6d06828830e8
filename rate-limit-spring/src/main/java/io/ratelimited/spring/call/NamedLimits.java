package io.ratelimited.spring.call;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.expression.CallResult;
import io.ratelimited.spring.limit.ChangeReports;
import io.ratelimited.spring.limit.ConfiguredLimit;
import io.ratelimited.spring.limit.LimitRegistry;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** The limits of the application, by name: looks each up in the registry, and calls under it. Thread-safe. */
public final class NamedLimits implements RateLimits {

    private final boolean enabled;
    private final LimitRegistry registry;
    private final LimitEnforcer enforcer;
    private final CurrentRequest.@Nullable Source requests;
    /** The name of the author of changes; null to find it on the thread. */
    private final @Nullable String author;
    /** The class of calls; null for none. */
    private final @Nullable String priority;

    /** @param enabled false if every call goes; as it was at the start, like the aspect */
    public NamedLimits(
            boolean enabled, LimitRegistry registry, LimitEnforcer enforcer, CurrentRequest.@Nullable Source requests) {
        this(enabled, registry, enforcer, requests, null, null);
    }

    private NamedLimits(
            boolean enabled,
            LimitRegistry registry,
            LimitEnforcer enforcer,
            CurrentRequest.@Nullable Source requests,
            @Nullable String author,
            @Nullable String priority) {
        this.enabled = enabled;
        this.registry = registry;
        this.enforcer = enforcer;
        this.requests = requests;
        this.author = author;
        this.priority = priority;
    }

    /** The same limits, changed in the name of an author. */
    public NamedLimits changedBy(String author) {
        return new NamedLimits(enabled, registry, enforcer, requests, author, priority);
    }

    @Override
    public NamedLimits withPriority(@Nullable String priority) {
        return new NamedLimits(enabled, registry, enforcer, requests, author, priority);
    }

    private @Nullable String author() {
        return author != null ? author : ChangeReports.author(currentRequest());
    }

    @Override
    public boolean tryAcquire(String name, @Nullable Object key) {
        return tryAcquire(name, key, 1);
    }

    @Override
    public boolean tryAcquire(String name, @Nullable Object key, long permits) {
        return !enabled || enforcer.tryAcquire(registry.get(name), key, permits);
    }

    @Override
    public <T extends @Nullable Object> T execute(String name, @Nullable Object key, Supplier<T> call) {
        if (!enabled) {
            return call.get();
        }
        Admission admission = enforcer.enter(limitRequests(name, key, 1), currentRequest());
        Throwable error = null;
        try {
            return call.get();
        } catch (Throwable ex) {
            error = ex;
            throw ex;
        } finally {
            admission.end(CallResult.of(null, error));
        }
    }

    @Override
    public <T extends @Nullable Object> CompletableFuture<T> executeAsync(
            String name, @Nullable Object key, Supplier<? extends CompletionStage<T>> call) {
        if (!enabled) {
            return AsyncCalls.call(enforcer, LimitRequest.NONE, null, call::get);
        }
        return AsyncCalls.call(enforcer, limitRequests(name, key, 1), currentRequest(), call::get);
    }

    @Override
    public ReservedPermits reserve(String name, @Nullable Object key, long permits) {
        return enabled
                ? new AdmittedPermits(enforcer.reserve(limitRequests(name, key, permits), currentRequest()))
                : new AdmittedPermits(null);
    }

    @Override
    public CompletableFuture<ReservedPermits> reserveAsync(String name, @Nullable Object key, long permits) {
        return enabled
                ? AdmittedPermits.of(enforcer.reserveAsync(limitRequests(name, key, permits), currentRequest()))
                : CompletableFuture.completedFuture(new AdmittedPermits(null));
    }

    private LimitRequest[] limitRequests(String name, @Nullable Object key, long permits) {
        return new LimitRequest[] {LimitRequest.of(registry.get(name), key, permits, priority)};
    }

    private @Nullable CurrentRequest currentRequest() {
        return requests == null ? null : requests.current();
    }

    @Override
    public Decision peek(String name, @Nullable Object key) {
        if (!enabled) {
            return unlimited(name).peek(key, 1, 0);
        }
        ConfiguredLimit limit = registry.get(name);
        limit.requireKeyless(key);
        return peek(limit, key, limit.limiter());
    }

    private Decision peek(ConfiguredLimit limit, @Nullable Object key, RateLimiter limiter) {
        RateLimiter own = limit.limiterOf(key, limiter);
        return own.peek(key, 1, 0, limit.classes().rank(own, priority));
    }

    @Override
    public List<Decision> remaining(@Nullable Object key) {
        return remaining(key, null);
    }

    @Override
    public List<Decision> remaining(@Nullable Object key, @Nullable String tier) {
        if (!enabled) {
            return List.of();
        }
        return registry.all().stream()
                .filter(limit -> limit.isKeyed() && limit.policy() != Policy.SHADOW)
                .filter(limit -> key != null || limit.enforcement().missingKey() == MissingKey.SHARED)
                .map(limit -> peek(
                        limit,
                        key,
                        tier == null ? limit.limiter() : limit.tiers().getOrDefault(tier, limit.limiter())))
                .toList();
    }

    private static RateLimiter unlimited(String name) {
        return new InMemoryRateLimiter(
                Limit.of(name, Algorithm.TOKEN_BUCKET).rate("unlimited").build(), Ticker.system(), 1);
    }

    @Override
    public void reset(String name, @Nullable Object key) {
        if (!enabled) {
            return;
        }
        registry.get(name).reset(key);
    }

    @Override
    public Limit update(String name, UnaryOperator<Limit.Builder> change) {
        ConfiguredLimit limit = changed(name);
        return limit == null ? unlimited(name).limit() : registry.changes().update(limit, change, author());
    }

    @Override
    public Limit update(String name, LimitProperties changes) {
        ConfiguredLimit limit = changed(name);
        return limit == null ? unlimited(name).limit() : registry.changes().update(limit, changes, author());
    }

    @Override
    public Limit revert(String name) {
        ConfiguredLimit limit = changed(name);
        return limit == null ? unlimited(name).limit() : registry.changes().revert(limit, author());
    }

    @Override
    public void assign(String name, Object key, LimitProperties budget, @Nullable Duration lasting) {
        ConfiguredLimit limit = changed(name);
        if (limit != null) {
            registry.changes().assign(limit, key, budget, lasting, author());
        }
    }

    @Override
    public void revoke(String name, Object key) {
        ConfiguredLimit limit = changed(name);
        if (limit != null) {
            registry.changes().revoke(limit, key, author());
        }
    }

    /**
     * The limit that a change means; null for one that may be an annotation's, which nobody has read where nothing is limited.
     *
     * @throws IllegalArgumentException when there is none
     */
    private @Nullable ConfiguredLimit changed(String name) {
        return enabled || registry.isDefined(name) ? registry.get(name) : null;
    }

    @Override
    public Collection<NamedLimit> all() {
        if (!enabled) {
            registry.registerConfigured();
        }
        return Collections.unmodifiableCollection(registry.all());
    }

    @Override
    public NamedLimit get(String name) {
        ConfiguredLimit limit = changed(name);
        return limit == null ? new Unread(name, unlimited(name)) : limit;
    }

    /** A limit that only an annotation may define, which nobody has read where nothing is limited. */
    private record Unread(String name, RateLimiter limiter) implements NamedLimit {

        @Override
        public String place() {
            return "rate-limit.enabled";
        }

        @Override
        public Map<String, RateLimiter> tiers() {
            return Map.of();
        }

        @Override
        public Limit limit() {
            return limiter.limit();
        }

        @Override
        public LimitProperties properties() {
            return LimitProperties.of(Map.of("algorithm", "token-bucket", "rate", "unlimited"));
        }

        @Override
        public Policy policy() {
            return Policy.REJECT;
        }

        @Override
        public long maxWaitNanos() {
            return 0;
        }

        @Override
        public boolean showsHeaders() {
            return false;
        }

        @Override
        public RateLimitChangedEvent.Scope scope() {
            return RateLimitChangedEvent.Scope.INSTANCE;
        }
    }
}
