package io.ratelimited.spring.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.LimiterFactory;
import io.ratelimited.spring.RateLimitProperties;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/** The limits of the application by name: makes each when it is first asked for, and changes them. Thread-safe. */
public final class LimitRegistry {

    private static final Log LOG = LogFactory.getLog(LimitRegistry.class);

    private volatile RateLimitProperties properties;
    private final NamedLimitFactory factory;
    private final Map<String, ConfiguredLimit> limits = new ConcurrentHashMap<>();
    private final CurrentRequest.@Nullable Source requests;
    private final RequestThreads threads;

    /**
     * A registry without limits.
     *
     * @param backends the backends that limits can name; the first of a name wins
     * @param requests is prepared for each limit; null outside web applications
     * @param threads where calls that wait may sleep
     * @throws InvalidRateLimitException when a property that belongs to no single limit is invalid
     */
    public LimitRegistry(
            RateLimitProperties properties,
            List<LimiterFactory> backends,
            CurrentRequest.@Nullable Source requests,
            RequestThreads threads) {
        this.threads = threads;
        this.properties = threads.withDefaults(properties);
        this.requests = requests;
        this.factory = new NamedLimitFactory(backends);
        PropertyRanges.check(properties);
        if (properties.enabled()) {
            factory.requireBackend(properties.backend());
        }
    }

    /** Changes a limit as {@link io.ratelimited.spring.RateLimits#update(String, UnaryOperator)} describes. */
    public synchronized Limit update(String name, UnaryOperator<Limit.Builder> change) {
        ConfiguredLimit limit = get(name);
        LimitUpdate.to(limit, change.apply(limit.limit().toBuilder()).build()).apply();
        return limit.limit();
    }

    /** Changes a limit as {@link io.ratelimited.spring.RateLimits#update(String, LimitProperties)} describes. */
    public synchronized Limit update(String name, LimitProperties changes) {
        ConfiguredLimit limit = get(name);
        LimitUpdate.of(limit, changes).apply();
        return limit.limit();
    }

    /**
     * Changes the limits in use where the properties differ from those before. A change that {@link #update} made stays
     * unless the properties change the same value.
     *
     * @return the names of the limits that were changed
     * @throws InvalidRateLimitException when a limit would not be valid; nothing has changed
     */
    synchronized List<String> refresh(RateLimitProperties refreshed) {
        RateLimitProperties changed = threads.withDefaults(refreshed);
        List<LimitUpdate> updates = new ArrayList<>();
        for (ConfiguredLimit limit : all()) {
            LimitProperties old = LimitMerge.merged(properties, limit.name(), limit.definition());
            LimitProperties next = LimitMerge.merged(changed, limit.name(), limit.definition());
            if (!next.equals(old)) {
                updates.add(LimitUpdate.between(limit, old, next));
            }
        }
        updates.forEach(LimitUpdate::apply);
        properties = changed;
        return updates.stream().map(LimitUpdate::name).toList();
    }

    /**
     * Gives a limit back the properties that it had; for tests, which see to its limiters themselves.
     *
     * @param earlier what {@link ConfiguredLimit#properties()} returned for this limit
     */
    public synchronized void restore(String name, LimitProperties earlier) {
        get(name).properties(earlier);
    }

    /** All limits, by name. */
    public Collection<ConfiguredLimit> all() {
        return new TreeMap<>(limits).values();
    }

    /**
     * The limit of a name.
     *
     * @throws IllegalArgumentException when there is none
     */
    public ConfiguredLimit get(String name) {
        ConfiguredLimit limit = limits.get(name);
        if (limit != null) {
            return limit;
        }
        if (properties.limits() != null && properties.limits().containsKey(name)) {
            return register(name, LimitSettings.property(name), LimitProperties.NONE);
        }
        throw new IllegalArgumentException("there is no rate limit named '" + name + "'"
                + SimilarName.hint(name, limits.keySet()) + "; there are " + new TreeMap<>(limits).keySet());
    }

    /** The properties of a use of a limit, from properties, declaration and defaults. */
    public LimitProperties ofUse(String name, LimitProperties declared) {
        return LimitMerge.ofUse(properties, name, declared);
    }

    /**
     * The place that sets an attribute of a use of a limit, for messages.
     *
     * @param declared what the annotation states
     * @param place where the annotation stands
     * @param attribute as the annotation names it
     */
    public String place(String name, LimitProperties declared, String place, String attribute) {
        return LimitMerge.place(properties, name, declared, place, attribute);
    }

    /** Whether no limit is known so far: neither a property nor a bean that was looked at has one. */
    public boolean isEmpty() {
        return limits.isEmpty();
    }

    /**
     * The limit of a name, made when it is first asked for.
     *
     * @param place the annotation or property that declares it
     * @param declared the properties that are set there
     * @throws InvalidRateLimitException when it is invalid, or is declared differently elsewhere
     */
    public ConfiguredLimit register(String name, String place, LimitProperties declared) {
        LimitProperties definition = LimitMerge.definition(declared);
        ConfiguredLimit limit = limits.computeIfAbsent(
                name, n -> factory.create(n, place, declared, definition, properties, limits.keySet()));
        prepare(word -> false);
        if (!definition.equals(limit.definition()) && !definition.equals(LimitProperties.NONE)) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "it is defined differently at " + limit.place(),
                    "Give one of the two another name, or define the limit once, under " + LimitSettings.property(name)
                            + ".");
        }
        return limit;
    }

    /**
     * Prepares requests for a limit.
     *
     * @param reads whether an expression of the limit may read a word of requests
     */
    public void prepare(Predicate<String> reads) {
        if (requests != null) {
            requests.prepare(reads);
        }
    }

    /** Makes the limits that only the properties name. */
    public void registerConfigured() {
        Map<String, LimitProperties> configured = properties.limits();
        if (configured == null) {
            return;
        }
        Set<String> annotated = new TreeSet<>(limits.keySet());
        for (String name : configured.keySet()) {
            ConfiguredLimit limit = get(name);
            if (annotated.contains(name)) {
                continue;
            }
            limit.warnOfTiersWithout(limit.properties().tier(), limit.place());
            SimilarName.find(name, annotated)
                    .ifPresent(similar -> LOG.warn("Rate limit '" + name + "' (" + limit.place()
                            + ") is not named by any annotation; did you mean '" + similar + "'?"));
        }
    }
}
