package io.ratelimited.spring.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import java.time.Duration;
import java.util.Collection;
import org.jspecify.annotations.Nullable;

/** Reads the texts of changes, and makes them. Thread-safe. */
public record LimitOperations(RateLimits rateLimits) implements RateLimitOperations {

    @Override
    public Limit change(String name, LimitChange change) {
        return rateLimits.update(name, ChangeValues.ofLimit(name, change));
    }

    @Override
    public Limit revert(String name) {
        return rateLimits.revert(name);
    }

    @Override
    public void override(String name, Object key, LimitChange change, @Nullable Duration lasting) {
        rateLimits.assign(name, key, ChangeValues.ofCaller(name, change), lasting);
    }

    @Override
    public void removeOverride(String name, Object key) {
        rateLimits.revoke(name, key);
    }

    @Override
    public void reset(String name, @Nullable Object key) {
        rateLimits.reset(name, key);
    }

    @Override
    public Collection<NamedLimit> limits() {
        return rateLimits.all();
    }
}
