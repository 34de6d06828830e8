package io.ratelimited.spring.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RequestFacts;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The limits of a registry as operators see them. Thread-safe. */
public final class LimitOperations implements RateLimitOperations {

    private final boolean enabled;
    private final LimitRegistry registry;
    private final Supplier<? extends @Nullable RequestFacts> requests;

    /**
     * @param enabled false if no call is limited
     * @param requests the web request of this thread, whose caller is the author of a change
     */
    public LimitOperations(
            boolean enabled, LimitRegistry registry, Supplier<? extends @Nullable RequestFacts> requests) {
        this.enabled = enabled;
        this.registry = registry;
        this.requests = requests;
    }

    private @Nullable String author() {
        return ChangeReports.author(requests.get());
    }

    @Override
    public Limit change(String name, LimitChange change) {
        ConfiguredLimit limit = registry.get(name);
        return registry.changes().update(limit, ChangeValues.ofLimit(name, change), author());
    }

    @Override
    public Limit revert(String name) {
        return registry.changes().revert(registry.get(name), author());
    }

    @Override
    public void override(String name, Object key, LimitChange change, @Nullable Duration lasting) {
        ConfiguredLimit limit = registry.get(name);
        registry.changes().assign(limit, key, ChangeValues.ofCaller(name, change), lasting, author());
    }

    @Override
    public void removeOverride(String name, Object key) {
        registry.changes().revoke(registry.get(name), key, author());
    }

    @Override
    public void reset(String name, @Nullable Object key) {
        ConfiguredLimit limit = registry.get(name);
        if (enabled) {
            limit.reset(key);
        }
    }

    @Override
    public Collection<NamedLimit> limits() {
        if (!enabled) {
            registry.registerConfigured();
        }
        return Collections.unmodifiableCollection(registry.all());
    }
}
