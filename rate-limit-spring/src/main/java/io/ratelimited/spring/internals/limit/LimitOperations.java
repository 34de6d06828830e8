package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.internals.expression.CallerNames;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Looks limits up in the registry, reads the texts of changes, and makes them. Thread-safe. */
public final class LimitOperations implements RateLimitOperations {

    private final boolean enabled;
    private final LimitRegistry registry;
    private final CurrentRequest.@Nullable Source requests;
    /** The name of the author of changes; null to find it on the thread. */
    private final @Nullable String author;

    /**
     * Operations whose changes have the author that their thread knows.
     *
     * @param enabled false where no method is limited, so that annotations are not read
     * @param requests know the author of a change; null outside web applications
     */
    public LimitOperations(boolean enabled, LimitRegistry registry, CurrentRequest.@Nullable Source requests) {
        this(enabled, registry, requests, null);
    }

    private LimitOperations(
            boolean enabled,
            LimitRegistry registry,
            CurrentRequest.@Nullable Source requests,
            @Nullable String author) {
        this.enabled = enabled;
        this.registry = registry;
        this.requests = requests;
        this.author = author;
    }

    /** The same operations, in the name of an author. */
    public LimitOperations changedBy(String author) {
        return new LimitOperations(enabled, registry, requests, author);
    }

    private @Nullable String author() {
        return author != null ? author : ChangeReports.author(requests == null ? null : requests.current());
    }

    @Override
    public Limit change(String name, LimitChange change) {
        return change(name, ChangeValues.ofLimit(name, change));
    }

    /**
     * {@link #change(String, LimitChange)} by values that were read already.
     *
     * @param values with {@link LimitProperty#TIER}, the others are those of this tier
     */
    public Limit change(String name, Map<LimitProperty, Object> values) {
        ConfiguredLimit limit = find(name);
        return limit == null
                ? registry.unlimited(name).limit()
                : registry.changes().update(limit, ofTier(values), author());
    }

    private static Map<LimitProperty, Object> ofTier(Map<LimitProperty, Object> values) {
        Object tier = values.get(LimitProperty.TIER);
        if (tier == null) {
            return values;
        }
        Map<LimitProperty, Object> own = new EnumMap<>(values);
        own.remove(LimitProperty.TIER);
        return Map.of(LimitProperty.TIERS, Map.of(tier, own));
    }

    @Override
    public Limit revert(String name) {
        ConfiguredLimit limit = find(name);
        return limit == null
                ? registry.unlimited(name).limit()
                : registry.changes().revert(limit, author());
    }

    @Override
    public void override(String name, Object key, LimitChange change, @Nullable Duration lasting) {
        override(name, key, ChangeValues.ofCaller(name, change), lasting);
    }

    /** {@link #override(String, Object, LimitChange, Duration)} by values that were read already. */
    public void override(String name, Object key, Map<LimitProperty, Object> values, @Nullable Duration lasting) {
        ConfiguredLimit limit = find(name);
        if (limit != null) {
            registry.changes().assign(limit, caller(key), values, lasting, author());
        }
    }

    @Override
    public void removeOverride(String name, Object key) {
        ConfiguredLimit limit = find(name);
        if (limit != null) {
            registry.changes().revoke(limit, caller(key), author());
        }
    }

    private static Object caller(Object key) {
        return Objects.requireNonNullElse(CallerNames.inKey(key), key);
    }

    @Override
    public void reset(String name, @Nullable Object key) {
        resetAll(name, Collections.singleton(CallerNames.inKey(key)));
    }

    /** Resets the keys that have one text, as one reset, whose report has the first of them. */
    public void resetAll(String name, Set<Object> keys) {
        if (enabled) {
            registry.changes().reset(registry.get(name), keys, author());
        }
    }

    @Override
    public Collection<NamedLimit> limits() {
        if (!enabled) {
            registry.registerDefined();
        }
        return Collections.unmodifiableCollection(registry.all());
    }

    @Override
    public NamedLimit limit(String name) {
        ConfiguredLimit limit = find(name);
        return limit == null ? registry.unlimited(name) : limit;
    }

    /**
     * The limit of a name; null for one that may be an annotation's, which nobody has read where nothing is limited.
     *
     * @throws IllegalArgumentException when there is none
     */
    private @Nullable ConfiguredLimit find(String name) {
        return enabled || registry.isDefined(name) ? registry.get(name) : null;
    }
}
