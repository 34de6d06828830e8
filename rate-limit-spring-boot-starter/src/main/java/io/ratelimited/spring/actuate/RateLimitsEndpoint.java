package io.ratelimited.spring.actuate;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.internals.client.LimitedClient;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitOperations;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.text.PropertyText;
import java.security.Principal;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.DeleteOperation;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;

/**
 * Shows limits, changes them, and shows and forgets the use of keys. Thread-safe. Every method throws {@link
 * IllegalArgumentException} for a limit that does not exist. {@link WebRequests} describes names and errors over HTTP.
 */
@Endpoint(id = "ratelimits")
public final class RateLimitsEndpoint {

    private final LimitRegistry registry;
    private final LimitOperations operations;
    private final LimitReport report;
    private final ShownKeys keys;
    private final Collection<LimitedClient> clients;

    RateLimitsEndpoint(
            LimitRegistry registry,
            LimitOperations operations,
            LimitReport report,
            ShownKeys keys,
            Collection<LimitedClient> clients) {
        this.registry = registry;
        this.operations = operations;
        this.report = report;
        this.keys = keys;
        this.clients = clients;
    }

    /** All limits, by name, and the clients of outgoing calls. */
    @ReadOperation
    public Map<String, Object> limits() {
        Map<String, Object> limits = new LinkedHashMap<>();
        registry.all().forEach(limit -> limits.put(limit.name(), report.summary(limit)));
        Map<String, Object> ofClients = new LinkedHashMap<>();
        clients.forEach(client -> ofClients.put(client.name(), client.report(keys::show)));
        return ofClients.isEmpty() ? Map.of("limits", limits) : Map.of("limits", limits, "clients", ofClients);
    }

    /**
     * A limit, or the remaining permits of one key.
     *
     * @param key text or mask of the key; null for the limit itself, with the permits of calls without a key
     */
    @ReadOperation
    public Map<String, Object> limit(
            @Selector(match = Selector.Match.ALL_REMAINING) String name, @Nullable String key) {
        ConfiguredLimit limit = registry.get(name);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("name", limit.name());
        if (key == null) {
            answer.putAll(report.full(limit));
        } else {
            answer.put("key", key);
            answer.putAll(keys.find(limit, key).stream()
                    .map(found -> report.key(limit, found))
                    .min(Comparator.comparingLong(state -> (long) state.getOrDefault("remaining", 0L)))
                    .orElseThrow());
        }
        return answer;
    }

    /**
     * Changes a limit, or one of its tiers, while it is in use, as described at {@code RateLimiter.update}.
     *
     * @param changes the members of a change, as in {@code rate=200/s, burst=400} or {@code tier=gold, rate=200/s}, or
     *     {@code revert=true}; rates to try beside it for callers without a tier or an override, as in {@code
     *     candidates=50/m; 100/m, for=24h}; a body over HTTP has them as JSON. Here {@code key=alice, tier=gold, for=24h} means
     *     one caller
     * @return the new limit, and the scope of the change
     * @throws IllegalArgumentException when a value is invalid, or the new limit would be; nothing has changed
     */
    @WriteOperation
    public Map<String, Object> update(@Selector(match = Selector.Match.ALL_REMAINING) String name, String changes) {
        Map<String, String> members = ChangeRequest.members(changes);
        return update(name, members.remove(ChangeRequest.KEY), members, null);
    }

    /**
     * Changes a limit, or gives one of its callers a budget.
     *
     * @param key text or mask of the caller's key; null for the limit itself
     * @param members as text, by name
     * @param author the name of the author of the change; null if the server does not know
     */
    Map<String, Object> update(String name, @Nullable String key, Map<String, ?> members, @Nullable Principal author) {
        LimitOperations changed = as(author);
        ConfiguredLimit limit = registry.get(name);
        ChangeRequest request = new ChangeRequest(name, members);
        String candidates = key == null ? request.candidates() : null;
        try {
            if (candidates != null) {
                limit.candidates().start(candidates, request.lasting(), "change at run time, of " + limit.place());
            } else if (key != null) {
                Object caller = keys.find(limit, key).iterator().next();
                if (request.reverts()) {
                    changed.removeOverride(name, caller);
                } else {
                    changed.override(name, caller, request.budget(), request.lasting());
                }
            } else if (request.reverts()) {
                changed.revert(name);
            } else {
                changed.change(name, request.properties());
            }
        } catch (InvalidRateLimitException ex) {
            throw new IllegalArgumentException(ex.getMessage() + " " + ex.remedy(), ex);
        }
        Map<String, Object> answer = limit(name, key);
        answer.put("scope", PropertyText.of(candidates == null ? limit.scope() : Scope.INSTANCE));
        return answer;
    }

    /**
     * Resets the used permits of a key.
     *
     * @param key text or mask of the key; null for those of calls without a key
     */
    @DeleteOperation
    public void forget(@Selector(match = Selector.Match.ALL_REMAINING) String name, @Nullable String key) {
        forget(name, key, null);
    }

    /**
     * Resets the used permits of a key.
     *
     * @param author the name of the author of the reset; null if the server does not know
     */
    void forget(String name, @Nullable String key, @Nullable Principal author) {
        LimitOperations resetting = as(author);
        ConfiguredLimit limit = registry.get(name);
        if (key == null) {
            resetting.reset(name, null);
        } else {
            resetting.resetAll(name, keys.find(limit, key));
        }
    }

    private LimitOperations as(@Nullable Principal author) {
        return author == null ? operations : operations.changedBy(author.getName());
    }
}
