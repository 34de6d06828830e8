package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The limits of the application, by name: for code without annotations, and for changing limits at run time. A bean of
 * the starter. Thread-safe. A {@code null} key is the one budget of a limit without keys.
 *
 * <p>Every method throws {@link IllegalArgumentException} for a name that no annotation and no property has.
 */
public final class RateLimits {

    private volatile RateLimitProperties properties;
    private final Map<LimitProperties.Backend, LimiterFactory> factories = new EnumMap<>(LimitProperties.Backend.class);
    private final Map<String, NamedLimit> limits = new ConcurrentHashMap<>();
    private final Gate gate;

    RateLimits(RateLimitProperties properties, List<LimiterFactory> factories, Gate gate) {
        this.properties = properties;
        this.gate = gate;
        factories.forEach(factory -> this.factories.putIfAbsent(factory.backend(), factory));
    }

    /** Takes a permit if the call may go at once, whatever the policy of the limit. */
    public boolean tryAcquire(String name, @Nullable Object key) {
        return tryAcquire(name, key, 1);
    }

    /**
     * Takes permits if the call may go at once, whatever the policy of the limit.
     *
     * @param permits at least 1
     */
    public boolean tryAcquire(String name, @Nullable Object key, long permits) {
        NamedLimit limit = get(name);
        boolean admitted = limit.limiter().tryAcquire(key, permits);
        if (!gate.isUnobserved()) {
            Supplier<Decision> decision = () -> limit.limiter().peek(key, permits, 0);
            gate.tell(limit, admitted ? Outcome.ADMITTED : Outcome.REJECTED, key, 0, decision, null);
        }
        return admitted;
    }

    /**
     * Calls the supplier under the limit, as an annotated method is called: refuses, waits or counts as its policy says.
     *
     * @throws io.ratelimited.core.RateLimitExceededException when the call is refused
     */
    public <T extends @Nullable Object> T execute(String name, @Nullable Object key, Supplier<T> call) {
        NamedLimit limit = get(name);
        Gate.Pass pass = gate.enter(List.of(new Ask(limit, limit.limiter(), key, 1, false)), null);
        try {
            return call.get();
        } finally {
            pass.end();
        }
    }

    /**
     * Calls the supplier under the limit without blocking the caller; the call counts as in flight until its stage
     * completes.
     *
     * @return fails with {@link io.ratelimited.core.RateLimitExceededException} when the call is refused; cancelling it
     *     while it waits gives the permits back
     */
    public <T extends @Nullable Object> CompletableFuture<T> executeAsync(
            String name, @Nullable Object key, Supplier<? extends CompletionStage<T>> call) {
        NamedLimit limit = get(name);
        return AsyncCalls.call(gate, List.of(new Ask(limit, limit.limiter(), key, 1, false)), null, call::get);
    }

    /** What {@link #tryAcquire} would decide now. Changes nothing. */
    public Decision peek(String name, @Nullable Object key) {
        return get(name).limiter().peek(key, 1, 0);
    }

    /** Forgets what the key has used. */
    public void reset(String name, @Nullable Object key) {
        NamedLimit limit = get(name);
        limit.limiter().reset(key);
        limit.tiers().values().forEach(tier -> tier.reset(key));
    }

    /**
     * Changes a limit while it is in use; what was spent stays spent, as {@link RateLimiter#update} says. As in {@code
     * update("search", limit -> limit.rate("200/s").burst(400))}.
     *
     * @return the new limit
     * @throws IllegalArgumentException when the new limit is not a valid one; nothing has changed
     */
    public synchronized Limit update(String name, UnaryOperator<Limit.Builder> change) {
        NamedLimit limit = get(name);
        limit.limiter().update(change.apply(limit.limit().toBuilder()).build());
        return limit.limit();
    }

    /**
     * Changes a limit while it is in use, its policy and its tiers included; what was spent stays spent.
     *
     * @param changes what to change; null is left as it is
     * @return the new limit
     * @throws InvalidRateLimitException when the new limit is not a valid one, or something is to change that is fixed
     *     at start-up; nothing has changed
     */
    public synchronized Limit update(String name, LimitProperties changes) {
        NamedLimit limit = get(name);
        LimitUpdate.of(limit, changes).apply();
        return limit.limit();
    }

    /**
     * Goes over to other properties: what differs from those before is changed in the limits in use, and what was
     * changed by {@link #update} stays unless it differs too.
     *
     * @return the names of the limits that were changed
     * @throws InvalidRateLimitException when a limit would not be valid; nothing has changed
     */
    synchronized List<String> refresh(RateLimitProperties changed) {
        RateLimitProperties before = properties;
        List<LimitUpdate> updates = new ArrayList<>();
        for (NamedLimit limit : all()) {
            LimitProperties old = merged(before, limit.name(), limit.definition());
            LimitProperties next = merged(changed, limit.name(), limit.definition());
            if (!next.equals(old)) {
                updates.add(LimitUpdate.between(limit, old, next));
            }
        }
        updates.forEach(LimitUpdate::apply);
        properties = changed;
        return updates.stream().map(LimitUpdate::name).toList();
    }

    /** All limits, by name. */
    public Collection<NamedLimit> all() {
        return new TreeMap<>(limits).values();
    }

    /**
     * The limit of a name.
     *
     * @throws IllegalArgumentException when there is none
     */
    public NamedLimit get(String name) {
        NamedLimit limit = limits.get(name);
        if (limit != null) {
            return limit;
        }
        if (properties.limits() != null && properties.limits().containsKey(name)) {
            return register(name, "rate-limit.limits." + LimitSettings.propertyName(name), LimitProperties.NONE);
        }
        throw new IllegalArgumentException(
                "there is no rate limit named '" + name + "'; there are " + new TreeMap<>(limits).keySet());
    }

    Gate gate() {
        return gate;
    }

    /** What is said about each use of a limit: the properties win over what is declared, the defaults come last. */
    LimitProperties merged(String name, LimitProperties declared) {
        return merged(properties, name, declared);
    }

    private static LimitProperties merged(RateLimitProperties properties, String name, LimitProperties declared) {
        LimitProperties own = properties.limit(name);
        LimitProperties defaults = properties.orDefaults();
        Algorithm algorithm = LimitSettings.algorithm(own.over(declared).over(defaults));
        boolean replaced = own.algorithm() != null && own.algorithm() != declared.algorithm();
        return own.over(replaced ? declared.suitedTo(algorithm) : declared).over(defaults.suitedTo(algorithm));
    }

    /**
     * The limit of a name, made by the first who asks for it.
     *
     * @param place where it is declared
     * @param declared what is said about it there
     * @throws InvalidRateLimitException when it cannot be meant, or is declared differently elsewhere
     */
    NamedLimit register(String name, String place, LimitProperties declared) {
        NamedLimit limit = limits.computeIfAbsent(name, n -> create(n, place, declared));
        LimitProperties definition = declared.definition();
        if (!definition.equals(LimitProperties.NONE) && !definition.equals(limit.definition())) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "it is defined differently at " + limit.place(),
                    "Give one of the two another name, or define the limit once, under rate-limit.limits."
                            + LimitSettings.propertyName(name) + ".");
        }
        return limit;
    }

    private NamedLimit create(String name, String place, LimitProperties declared) {
        LimitProperties all = merged(name, declared);
        LimiterFactory factory = factory(name, place, all);
        RateLimiter limiter = factory.create(LimitSettings.limit(name, place, all), all);
        Map<String, RateLimiter> tiers = new TreeMap<>();
        if (all.tiers() != null) {
            all.tiers().forEach((tier, tierProperties) -> {
                LimitProperties ofTier = tierProperties.over(all.asBaseOf(tierProperties));
                tiers.put(tier, factory.create(LimitSettings.tier(name, place, tier, ofTier), ofTier));
            });
        }
        return new NamedLimit(name, place, declared.definition(), all, limiter, tiers);
    }

    private LimiterFactory factory(String name, String place, LimitProperties all) {
        LimitProperties.Backend backend = all.backend() == null ? properties.backend() : all.backend();
        LimiterFactory factory = factories.get(backend);
        if (factory == null) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "backend is " + LimitSettings.kebab(backend) + ", but nothing provides it",
                    "Add the module rate-limit-redis and a Redis connection (spring.data.redis), or set backend: memory.");
        }
        return factory;
    }
}
