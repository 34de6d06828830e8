package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * The limits of the application, by name: for code without annotations, and for changing limits at run time. A bean of
 * the starter. Thread-safe. A {@code null} key is the one budget of a limit without keys.
 *
 * <p>Every method throws {@link IllegalArgumentException} for a name that no annotation and no property has. With {@code
 * rate-limit.enabled: false} every call goes, whatever its name; the methods that look at limits know none.
 */
public final class RateLimits {

    private static final Log LOG = LogFactory.getLog(RateLimits.class);

    private final RateLimitProperties properties;
    private final Map<LimitProperties.Backend, LimiterFactory> factories = new EnumMap<>(LimitProperties.Backend.class);
    private final Map<String, NamedLimit> limits = new ConcurrentHashMap<>();
    private final Gate gate;

    RateLimits(RateLimitProperties properties, List<LimiterFactory> factories, Gate gate) {
        this.properties = properties;
        this.gate = gate;
        PropertyRanges.check(properties);
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
        if (!properties.enabled()) {
            return true;
        }
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
        if (!properties.enabled()) {
            return call.get();
        }
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
        if (!properties.enabled()) {
            return AsyncCalls.call(gate, List.of(), null, call::get);
        }
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
    public Limit update(String name, UnaryOperator<Limit.Builder> change) {
        NamedLimit limit = get(name);
        synchronized (limit) {
            limit.limiter().update(change.apply(limit.limit().toBuilder()).build());
            return limit.limit();
        }
    }

    /** Changes a limit by what the properties say, its policy included. */
    Limit update(String name, LimitProperties changes) {
        NamedLimit limit = get(name);
        synchronized (limit) {
            update(name, builder -> LimitSettings.apply(changes, builder));
            limit.properties(changes.over(limit.properties()));
            return limit.limit();
        }
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
        throw new IllegalArgumentException("there is no rate limit named '" + name + "'"
                + NearName.hint(name, limits.keySet()) + "; there are " + new TreeMap<>(limits).keySet());
    }

    Gate gate() {
        return gate;
    }

    /**
     * What is said about a limit or a use of it: the properties win over what is declared, the defaults come last. What
     * was said for another algorithm than the one that the properties choose is left out.
     */
    LimitProperties merged(String name, LimitProperties declared) {
        return merged(properties.limit(name), declared);
    }

    private LimitProperties merged(LimitProperties own, LimitProperties declared) {
        LimitProperties defaults = properties.orDefaults();
        Algorithm algorithm = LimitSettings.algorithm(own.over(declared).over(defaults));
        boolean replaced = algorithm != LimitSettings.algorithm(declared);
        LimitProperties suited = defaults.suitedTo(algorithm);
        return own.over(replaced ? declared.suitedTo(algorithm) : declared)
                .over(algorithm == Algorithm.LEAKY_BUCKET ? suited.withoutPolicy() : suited);
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

    private NamedLimit create(String name, String declaredAt, LimitProperties declared) {
        LimitProperties own = properties.limit(name);
        String ownPlace = "rate-limit.limits." + LimitSettings.propertyName(name);
        String place = own.equals(LimitProperties.NONE) || declaredAt.equals(ownPlace)
                ? declaredAt
                : declaredAt + " with " + ownPlace;
        LimitProperties all = merged(own, declared);
        requireDefined(name, place, all);
        LimitSettings.check(name, place, all);
        LimitSettings.checkMaxWait(name, ownPlace, own, all);
        LimitSettings.checkMaxWait(name, declaredAt, declared, all, merged(LimitProperties.NONE, declared));
        LimiterFactory factory = factory(name, place, all);
        RateLimiter limiter = factory.create(LimitSettings.limit(name, place, all), all);
        Map<String, RateLimiter> tiers = new TreeMap<>();
        if (all.tiers() != null) {
            all.tiers().forEach((tier, said) -> {
                String tierPlace = place + ", tier '" + tier + "'";
                LimitProperties ofTier = LimitSettings.tier(name, tierPlace, said, all);
                LimitSettings.check(name, tierPlace, ofTier);
                tiers.put(tier, factory.create(LimitSettings.limit(name, tierPlace, ofTier), ofTier));
            });
        }
        if (LimitSettings.algorithm(declared) != LimitSettings.algorithm(all)
                && !declared.equals(declared.suitedTo(LimitSettings.algorithm(all)))) {
            LOG.info("Rate limit '" + name + "': what " + declaredAt + " says for "
                    + LimitSettings.algorithm(declared) + " alone is ignored, since the properties make it "
                    + LimitSettings.algorithm(all));
        }
        return new NamedLimit(name, declaredAt, declared.definition(), all, limiter, tiers);
    }

    private void requireDefined(String name, String place, LimitProperties all) {
        boolean defined = LimitSettings.algorithm(all) == Algorithm.CONCURRENCY
                ? all.maxConcurrent() != null || all.rate() != null
                : all.rate() != null || all.maxConcurrent() != null;
        if (defined) {
            return;
        }
        Set<String> known = new TreeSet<>(limits.keySet());
        if (properties.limits() != null) {
            known.addAll(properties.limits().keySet());
        }
        String missing = LimitSettings.algorithm(all) == Algorithm.CONCURRENCY ? "maxConcurrent" : "rate";
        throw new InvalidRateLimitException(
                name,
                place,
                "no limit of this name is defined: neither an annotation nor a property says its " + missing
                        + NearName.hint(name, known),
                "Say it in the annotation or as rate-limit.limits." + LimitSettings.propertyName(name) + "."
                        + (missing.equals("rate") ? "rate" : "max-concurrent") + ", or correct the name.");
    }

    /** Makes the limits that only the properties name. */
    void registerConfigured() {
        Map<String, LimitProperties> configured = properties.limits();
        if (configured == null) {
            return;
        }
        Set<String> annotated = Set.copyOf(limits.keySet());
        for (Map.Entry<String, LimitProperties> entry : configured.entrySet()) {
            String name = entry.getKey();
            NamedLimit limit = get(name);
            if (annotated.contains(name)) {
                continue;
            }
            if (!limit.tiers().isEmpty() && limit.properties().tier() == null) {
                throw new InvalidRateLimitException(
                        name,
                        limit.place(),
                        "it has the tiers " + limit.tiers().keySet() + " but no tier expression to choose one",
                        "Add tier, or remove the tiers.");
            }
            NearName.find(name, annotated)
                    .ifPresent(near -> LOG.warn("Rate limit '" + name + "' (" + limit.place()
                            + ") is not named by any annotation; did you mean '" + near + "'?"));
        }
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
