package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.spring.call.AsyncCalls;
import io.ratelimited.spring.call.LimitEnforcer;
import io.ratelimited.spring.call.LimitRequest;
import io.ratelimited.spring.limit.LimitSettings;
import io.ratelimited.spring.limit.LimitUpdate;
import io.ratelimited.spring.limit.NamedLimitFactory;
import io.ratelimited.spring.limit.PropertyRanges;
import io.ratelimited.spring.limit.SimilarName;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
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

    /** As it was at the start, where the aspect learnt it too. */
    private final boolean enabled;

    private volatile RateLimitProperties properties;
    private final NamedLimitFactory maker;
    private final Map<String, NamedLimit> limits = new ConcurrentHashMap<>();
    private final LimitEnforcer gate;
    private final CurrentRequest.@Nullable Source requests;

    RateLimits(
            RateLimitProperties properties,
            List<LimiterFactory> factories,
            LimitEnforcer gate,
            CurrentRequest.@Nullable Source requests) {
        this.enabled = properties.enabled();
        this.properties = properties;
        this.requests = requests;
        PropertyRanges.check(properties);
        this.gate = gate;
        this.maker = new NamedLimitFactory(factories);
        maker.requireBackend(properties.backend());
    }

    /**
     * Takes a permit if the call may go at once, whatever the policy of the limit. Tells no web request: what becomes of
     * a refusal is for the caller to say.
     */
    public boolean tryAcquire(String name, @Nullable Object key) {
        return tryAcquire(name, key, 1);
    }

    /**
     * Takes permits if the call may go at once, whatever the policy of the limit.
     *
     * @param permits at least 1
     */
    public boolean tryAcquire(String name, @Nullable Object key, long permits) {
        if (!enabled) {
            return true;
        }
        NamedLimit limit = get(name);
        RateLimiter limiter = limit.limiter();
        if (gate.isUnobserved() || limit.countsInFlight()) {
            return limiter.tryAcquire(key, permits);
        }
        boolean admitted;
        Supplier<Decision> decision;
        if (limiter.source() != null) {
            admitted = limiter.tryAcquire(key, permits);
            decision = () -> limiter.peek(key, permits, 0);
        } else {
            Reservation reservation = limiter.reserve(key, permits, 0);
            admitted = !reservation.isRefused();
            decision = reservation::decision;
        }
        gate.tell(limit, admitted ? Outcome.ADMITTED : Outcome.REJECTED, key, 0, decision);
        return admitted;
    }

    /**
     * Calls the supplier under the limit, as an annotated method is called: refuses, waits or counts as its policy says,
     * and tells the web request of this thread, if there is one, whose response has the fields of the limit.
     *
     * @throws io.ratelimited.core.RateLimitExceededException when the call is refused
     */
    public <T extends @Nullable Object> T execute(String name, @Nullable Object key, Supplier<T> call) {
        if (!enabled) {
            return call.get();
        }
        LimitEnforcer.Pass pass = gate.enter(asks(name, key, 1), currentRequest());
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
        if (!enabled) {
            return AsyncCalls.call(gate, List.of(), null, call::get);
        }
        return AsyncCalls.call(gate, asks(name, key, 1), currentRequest(), call::get);
    }

    /**
     * Takes permits for a call that may turn out to cost nothing, such as a login with the right password: {@link
     * ReservedPermits#cancel} gives them back. Refuses, waits or counts as the policy of the limit says, and tells the
     * web request of this thread, if there is one.
     *
     * @param permits at least 1
     * @return to be closed when the call has ended
     * @throws io.ratelimited.core.RateLimitExceededException when the call is refused
     */
    public ReservedPermits reserve(String name, @Nullable Object key, long permits) {
        return enabled
                ? new ReservedPermits(gate.enter(asks(name, key, permits), currentRequest()))
                : new ReservedPermits(null);
    }

    /**
     * {@link #reserve} without blocking the caller.
     *
     * @return fails with {@link io.ratelimited.core.RateLimitExceededException} when the call is refused; cancelling it
     *     gives the permits back
     */
    public CompletableFuture<ReservedPermits> reserveAsync(String name, @Nullable Object key, long permits) {
        return enabled
                ? gate.enterAsync(asks(name, key, permits), currentRequest(), ReservedPermits::new)
                : CompletableFuture.completedFuture(new ReservedPermits(null));
    }

    private List<LimitRequest> asks(String name, @Nullable Object key, long permits) {
        NamedLimit limit = get(name);
        return List.of(new LimitRequest(limit, limit.limiter(), key, permits, false, null));
    }

    private @Nullable CurrentRequest currentRequest() {
        return requests == null ? null : requests.current();
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
     * @throws InvalidRateLimitException when the limit cannot be changed so at run time: calls in flight that would be
     *     counted over time, or calls whose fixed permits could never be had; nothing has changed
     */
    public synchronized Limit update(String name, UnaryOperator<Limit.Builder> change) {
        NamedLimit limit = get(name);
        LimitUpdate.to(limit, change.apply(limit.limit().toBuilder()).build()).apply();
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
    public synchronized List<String> refresh(RateLimitProperties changed) {
        RateLimitProperties before = properties;
        List<LimitUpdate> updates = new ArrayList<>();
        for (NamedLimit limit : all()) {
            LimitProperties old = NamedLimitFactory.merged(before, limit.name(), limit.definition());
            LimitProperties next = NamedLimitFactory.merged(changed, limit.name(), limit.definition());
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
            return register(name, LimitSettings.property(name), LimitProperties.NONE);
        }
        throw new IllegalArgumentException("there is no rate limit named '" + name + "'"
                + SimilarName.hint(name, limits.keySet()) + "; there are " + new TreeMap<>(limits).keySet());
    }

    public LimitEnforcer gate() {
        return gate;
    }

    /** What is said about a limit or a use of it, by properties, declaration and defaults. */
    public LimitProperties merged(String name, LimitProperties declared) {
        return NamedLimitFactory.merged(properties, name, declared);
    }

    /** Whether no limit is known so far: neither a property nor a bean that was looked at has one. */
    public boolean isEmpty() {
        return limits.isEmpty();
    }

    /**
     * The limit of a name, made by the first who asks for it.
     *
     * @param place where it is declared
     * @param declared what is said about it there
     * @throws InvalidRateLimitException when it cannot be meant, or is declared differently elsewhere
     */
    public NamedLimit register(String name, String place, LimitProperties declared) {
        NamedLimit limit =
                limits.computeIfAbsent(name, n -> maker.create(n, place, declared, properties, limits.keySet()));
        prepare(word -> false);
        LimitProperties definition = declared.definition();
        if (!definition.equals(LimitProperties.NONE) && !definition.equals(limit.definition())) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "it is defined differently at " + limit.place(),
                    "Give one of the two another name, or define the limit once, under " + LimitSettings.property(name)
                            + ".");
        }
        return limit;
    }

    /** Prepares requests for a limit, whose expressions may read some words of theirs. */
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
        Set<String> annotated = Set.copyOf(limits.keySet());
        for (Map.Entry<String, LimitProperties> entry : configured.entrySet()) {
            String name = entry.getKey();
            NamedLimit limit = get(name);
            if (annotated.contains(name)) {
                continue;
            }
            limit.warnOfTiersWithout(limit.properties().tier(), limit.place());
            SimilarName.find(name, annotated)
                    .ifPresent(near -> LOG.warn("Rate limit '" + name + "' (" + limit.place()
                            + ") is not named by any annotation; did you mean '" + near + "'?"));
        }
    }
}
