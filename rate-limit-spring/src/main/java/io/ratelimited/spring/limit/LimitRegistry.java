package io.ratelimited.spring.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.LimiterFactory;
import io.ratelimited.spring.LimiterFactory.SharedChanges;
import io.ratelimited.spring.LimiterFactory.SharedPauses;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.limit.BudgetRegistry.CallerBudgets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.springframework.core.convert.ConversionException;

/** The limits of the application by name: makes each when it is first asked for, and changes them. Thread-safe. */
public final class LimitRegistry {

    private static final LogText.Lines LOG = LogText.lines(LimitRegistry.class);

    /** How often a change is tried while others change the same limit: each attempt that fails is a change that another made. */
    private static final int ATTEMPTS = 100;

    /** What is written for all instances. */
    private record Written(String limit, String text) {}

    private static final Duration SHORTEST = Duration.ofMillis(1);
    private static final Duration LONGEST = Duration.ofDays(3_650);

    private volatile LimitSettings properties;
    private final Backends backends;
    private final Map<String, ConfiguredLimit> limits = new ConcurrentHashMap<>();
    private final CurrentRequest.@Nullable Source requests;
    private volatile RequestThreads threads;
    private final ChangeReports reports;
    private final BudgetRegistry budgets;
    /** What all instances share that this one follows. */
    private final Set<SharedChanges> followed = ConcurrentHashMap.newKeySet();
    /** The names of those who write what all instances share, by what they write. Guarded by this. */
    private final Map<Written, @Nullable String> writers = new HashMap<>();

    /**
     * A registry without limits.
     *
     * @param backends the backends that limits can name; the first of a name wins
     * @param requests is prepared for each limit; null outside web applications
     * @param threads where calls that wait may sleep
     * @param reports say what was changed
     * @param ticker the time until budgets of callers end
     * @throws InvalidRateLimitException when there is no backend for limits that name none
     */
    public LimitRegistry(
            LimitSettings properties,
            List<LimiterFactory> backends,
            CurrentRequest.@Nullable Source requests,
            RequestThreads threads,
            ChangeReports reports,
            Ticker ticker) {
        this.threads = threads;
        this.reports = reports;
        this.budgets = new BudgetRegistry(ticker);
        this.properties = properties;
        this.requests = requests;
        this.backends = new Backends(backends);
        this.backends.requireBackend(properties.backend());
    }

    /**
     * The pauses that all instances share on the backend of one of some limits, or else on that of limits without a backend of
     * their own; null if they share none.
     */
    public @Nullable SharedPauses sharedPauses(Collection<ConfiguredLimit> limits) {
        return limits.stream()
                .map(ConfiguredLimit::sharedPauses)
                .filter(Objects::nonNull)
                .findFirst()
                .orElseGet(() -> backends.sharedPauses(properties.backend()));
    }

    /** Changes a limit as {@link io.ratelimited.spring.RateLimits#update(String, UnaryOperator)} describes. */
    public Limit update(String name, UnaryOperator<Limit.Builder> change) {
        return change(
                get(name),
                limit -> LimitChange.to(
                        limit, change.apply(limit.limit().toBuilder()).build()));
    }

    /** Changes a limit as {@link io.ratelimited.spring.RateLimits#update(String, LimitProperties)} describes. */
    public Limit update(String name, LimitProperties changes) {
        return change(get(name), limit -> LimitChange.of(limit, changes));
    }

    /** Takes back what was changed, as {@link io.ratelimited.spring.RateLimits#revert} describes. */
    public Limit revert(String name) {
        return change(get(name), LimitChange::reverted);
    }

    private Limit change(ConfiguredLimit limit, Function<ConfiguredLimit, LimitChange> requested) {
        SharedChanges changes = limit.sharedChanges();
        String principal = reports.principal();
        if (changes == null) {
            Runnable report;
            Limit changed;
            synchronized (this) {
                report = apply(requested.apply(limit), Scope.INSTANCE, principal);
                changed = limit.limit();
            }
            report.run();
            return changed;
        }
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            follow(limit, changes);
            ConfiguredLimit.Shared seen;
            String text;
            synchronized (this) {
                seen = limit.shared();
                text = requested.apply(limit).text();
            }
            if (seen.problem() != null && !text.isEmpty()) {
                throw new InvalidRateLimitException(
                        limit.name(),
                        limit.place(),
                        "this instance does not apply what was changed for all instances: " + seen.problem(),
                        "Nothing was changed; change it on an instance that does, or take the change back.");
            }
            // Without the lock, which the thread that reads the answer may want.
            if (write(limit, changes, seen.version(), text, principal) == SharedChanges.Outcome.WRITTEN) {
                return limit.limit();
            }
        }
        throw new IllegalStateException("limit '" + limit.name()
                + "' was changed on other instances at the same time; nothing was changed here, try again");
    }

    /** Writes a change for all instances, and applies what they share then. */
    private SharedChanges.Outcome write(
            ConfiguredLimit limit, SharedChanges changes, long basedOn, String text, @Nullable String principal) {
        Written written = new Written(limit.name(), text);
        synchronized (this) {
            writers.put(written, principal);
        }
        try {
            SharedChanges.Outcome outcome = changes.write(limit.name(), null, basedOn, text, null, 0);
            follow(limit, changes);
            return outcome;
        } finally {
            synchronized (this) {
                writers.remove(written);
            }
        }
    }

    /**
     * Applies a change made here or by another instance; with the lock of this registry.
     *
     * @param scope where it holds then
     * @param principal who makes it; null if nobody is known
     * @return reports the change; to be run without the lock, since a listener may wait for another change
     */
    private Runnable apply(LimitChange change, Scope scope, @Nullable String principal) {
        ConfiguredLimit limit = change.limit();
        Map<String, Object> before = ChangeReports.members(limit);
        change.apply();
        budgets.limitChanged(limit);
        Map<String, Object> after = ChangeReports.members(limit);
        return () -> reports.report(limit.name(), null, before, after, scope, principal);
    }

    /** Gives a caller a budget, as {@link io.ratelimited.spring.RateLimits#assign} describes. */
    public void assign(String name, Object key, LimitProperties budget, @Nullable Duration lasting) {
        ConfiguredLimit limit = get(name);
        if (lasting != null && (lasting.compareTo(SHORTEST) < 0 || lasting.compareTo(LONGEST) > 0)) {
            throw new InvalidRateLimitException(
                    name,
                    "budget of a caller, of " + limit.place(),
                    "a budget lasts from 1 ms to 3650d: " + PropertyText.of(lasting),
                    "Nothing was changed; correct the duration, or leave it out for ever.");
        }
        String text;
        synchronized (this) {
            text = budgets.text(limit, budget);
        }
        writeBudget(limit, key, text, lasting);
    }

    /** Ends the budget of a caller, as {@link io.ratelimited.spring.RateLimits#revoke} describes. */
    public void revoke(String name, Object key) {
        writeBudget(get(name), key, "", null);
    }

    private void writeBudget(ConfiguredLimit limit, Object key, String text, @Nullable Duration lasting) {
        Map<String, Object> before = limit.ownBudget(key);
        tryWriteBudget(limit, key, text, lasting);
        reports.report(limit.name(), key, before, limit.ownBudget(key), limit.scope());
    }

    private void tryWriteBudget(ConfiguredLimit limit, Object key, String text, @Nullable Duration lasting) {
        SharedChanges changes = limit.sharedChanges();
        String caller = CallerBudgets.caller(key, changes != null);
        if (changes == null) {
            synchronized (this) {
                if (text.isEmpty()) {
                    budgets.remove(limit, caller);
                } else {
                    Long endsAt = lasting == null ? null : budgets.ticker().nanos() + lasting.toNanos();
                    budgets.assign(limit, caller, text, endsAt);
                }
            }
            return;
        }
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            SharedChanges.Change change = changes.find(limit.name(), caller);
            LimiterFactory.SharedChanges.Outcome outcome = changes.write(
                    limit.name(), caller, change == null ? 0 : change.version(), text, lasting, BudgetRegistry.MAXIMUM);
            synchronized (this) {
                budgets.follow(limit, changes, caller);
            }
            if (outcome == LimiterFactory.SharedChanges.Outcome.WRITTEN) {
                return;
            }
            if (outcome == LimiterFactory.SharedChanges.Outcome.FULL) {
                throw BudgetRegistry.full(limit);
            }
        }
        throw new IllegalStateException("the budget of a caller of limit '" + limit.name()
                + "' was changed on other instances at the same time; nothing was changed here, try again");
    }

    /** Applies what all instances share of a limit, if it is another change than the last that was seen. */
    private void follow(ConfiguredLimit limit, SharedChanges changes) {
        Runnable report = () -> {};
        synchronized (this) {
            SharedChanges.Change change = changes.find(limit.name(), null);
            long version = change == null ? 0 : change.version();
            if (version == limit.shared().version()) {
                return;
            }
            String text = change == null ? "" : change.text();
            try {
                // Whatever thread hears of it first: that of who has written it, or one that knows nobody.
                report = apply(
                        LimitChange.shared(limit, limit.settings().configuration(), text),
                        Scope.FLEET,
                        writers.get(new Written(limit.name(), text)));
                limit.shared(new ConfiguredLimit.Shared(version, text, null));
            } catch (InvalidRateLimitException | IllegalArgumentException | ConversionException ex) {
                String problem = String.valueOf(ex.getMessage());
                LOG.warn("Rate limit '" + limit.name() + "' stays as it is on this instance, which cannot apply the"
                        + " change that all instances share (" + LogText.escaped(text) + "): " + problem);
                limit.shared(new ConfiguredLimit.Shared(version, limit.shared().text(), problem));
            }
        }
        report.run();
    }

    /** Follows what all instances share, from now on. */
    private void follow(ConfiguredLimit limit) {
        SharedChanges changes = limit.sharedChanges();
        if (changes == null) {
            return;
        }
        if (followed.add(changes)) {
            changes.onChange((name, caller) -> changed(changes, name, caller));
        }
        follow(limit, changes);
        synchronized (this) {
            changes.callers(limit.name()).forEach(caller -> budgets.follow(limit, changes, caller));
        }
    }

    private void changed(SharedChanges changes, String name, @Nullable String caller) {
        ConfiguredLimit limit = limits.get(name);
        if (limit == null || limit.sharedChanges() != changes) {
            return;
        }
        if (caller == null) {
            follow(limit, changes);
        } else {
            synchronized (this) {
                budgets.follow(limit, changes, caller);
            }
        }
    }

    /**
     * Changes the limits in use where the properties differ from those before. A change that {@link #update} made stays
     * unless the properties change the same value. One that all instances share stays unless it does not suit them.
     *
     * @throws InvalidRateLimitException when a limit would not be valid; nothing has changed
     */
    public void refresh(LimitSettings refreshed) {
        List<Runnable> reported;
        List<ConfiguredLimit> without;
        String principal = reports.principal();
        synchronized (this) {
            List<LimitChange> changes = new ArrayList<>();
            for (ConfiguredLimit limit : all()) {
                LimitChange change = LimitChange.between(
                        limit,
                        layers(
                                refreshed,
                                limit.name(),
                                limit.settings().configuration().get(Layer.ANNOTATION)));
                if (change != null) {
                    changes.add(change);
                }
            }
            // Also of a limit that all instances share: the others have a configuration of their own.
            reported = changes.stream()
                    .map(change -> apply(change, Scope.INSTANCE, principal))
                    .toList();
            properties = refreshed;
            without = limits.values().stream()
                    .filter(ConfiguredLimit::isWithoutShared)
                    .toList();
            without.forEach(ConfiguredLimit::forgetShared);
        }
        reported.forEach(Runnable::run);
        // The new configuration may suit a change that the old one did not; or it does not, which is to be said.
        without.forEach(this::follow);
    }

    /** Ends every wait, as {@link RateLimiter#close} says. */
    public synchronized void close() {
        limits.values().forEach(ConfiguredLimit::close);
    }

    /** Calls that wait may also sleep in the threads of a child context that starts: limits leave some of these free. */
    public void addThreads(RequestThreads added) {
        if (added.half() < threads.half()) {
            threads = added;
            refresh(properties);
        }
    }

    /** The fewest threads that serve the requests of a context. */
    public RequestThreads threads() {
        return threads;
    }

    private List<Layer> layers(LimitSettings of, String name, Layer annotation) {
        return Layer.ofConfiguration(of, threads.maxWaiting(), name, annotation);
    }

    /**
     * Remembers the settings and the callers' own budgets of a limit, for tests.
     *
     * @return brings them back; what limiters have in use is left to the tests
     */
    public Runnable memento(String name) {
        ConfiguredLimit limit = get(name);
        ConfiguredLimit.Settings settings = limit.settings();
        CallerBudgets budgets = CallerBudgets.copy(limit.budgets());
        return () -> {
            limit.settings(settings);
            limit.budgets(CallerBudgets.copy(budgets));
        };
    }

    /** Why this instance does not apply what was changed for all instances, by the names of the limits. */
    public Map<String, String> notApplied() {
        Map<String, String> problems = new TreeMap<>();
        limits.forEach((name, limit) -> {
            String problem = limit.notApplied();
            if (problem != null) {
                problems.put(name, problem);
            }
        });
        return problems;
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
        if (properties.limits().containsKey(name)) {
            return register(name, PropertyText.limit(name), LimitProperties.NONE);
        }
        throw new IllegalArgumentException("there is no rate limit named '" + name + "'"
                + SimilarName.hint(name, limits.keySet()) + "; there are " + new TreeMap<>(limits).keySet());
    }

    /**
     * The properties of a use of a limit, from properties, declaration and defaults.
     *
     * @param place where the annotation stands
     * @param declared what the annotation states
     */
    public ResolvedLimit ofUse(String name, String place, LimitProperties declared) {
        return ResolvedLimit.ofUse(properties, name, place, declared);
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
        LimitProperties definition = LimitProperty.definition(declared);
        ConfiguredLimit known = limits.get(name);
        ConfiguredLimit limit =
                known != null ? known : limits.computeIfAbsent(name, n -> create(n, place, declared, definition));
        if (known == null) {
            follow(limit);
        }
        prepare(word -> false);
        if (known != null && known.definition().equals(LimitProperties.NONE)) {
            define(known, place, definition);
        }
        if (!definition.equals(limit.definition()) && !definition.equals(LimitProperties.NONE)) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "it is defined differently at " + limit.place(),
                    "Give one of the two another name, or define the limit once, under " + PropertyText.limit(name)
                            + ".");
        }
        return limit;
    }

    /** What the properties alone have defined, as those of a parent context do, gets what the first annotation adds. */
    private synchronized void define(ConfiguredLimit limit, String place, LimitProperties definition) {
        if (definition.equals(LimitProperties.NONE) || !limit.definition().equals(LimitProperties.NONE)) {
            return;
        }
        LimitChange change = LimitChange.between(
                limit, layers(properties, limit.name(), Layer.ofAnnotation(limit.name(), place, definition)));
        if (change != null) {
            change.apply();
            budgets.limitChanged(limit);
        }
        limit.define(definition);
    }

    private ConfiguredLimit create(
            String name, String declaredAt, LimitProperties declared, LimitProperties definition) {
        String property = PropertyText.limit(name);
        String place = properties.limit(name).equals(LimitProperties.NONE) || declaredAt.equals(property)
                ? declaredAt
                : declaredAt + " with " + property;
        List<Layer> layers = layers(properties, name, Layer.ofAnnotation(name, place, declared));
        ResolvedLimit merged = ResolvedLimit.resolve(name, place, layers);
        requireDefined(merged);
        LimiterFactory backend = backends.of(merged);
        ResolvedLimit resolved = merged.on(backend);
        RateLimiter limiter = Backends.limiter(backend, resolved, "");
        Map<String, RateLimiter> tiers = new HashMap<>();
        resolved.tiers().forEach((tier, ofTier) -> tiers.put(tier, Backends.limiter(backend, ofTier, tier)));
        if (resolved.ignoresAnnotation()) {
            LOG.info("Rate limit '" + name + "': what " + declaredAt + " sets for "
                    + Objects.requireNonNullElse(declared.algorithm(), Algorithm.TOKEN_BUCKET)
                    + " alone is ignored, since the properties make it " + resolved.algorithm());
        }
        return new ConfiguredLimit(definition, layers, resolved, backend, limiter, tiers);
    }

    private void requireDefined(ResolvedLimit limit) {
        if (limit.values().containsKey(LimitProperty.RATE)
                || limit.values().containsKey(LimitProperty.MAX_CONCURRENT)) {
            return;
        }
        Set<String> known = new TreeSet<>(limits.keySet());
        known.addAll(properties.limits().keySet());
        LimitProperty missing =
                limit.algorithm().countsCallsInFlight() ? LimitProperty.MAX_CONCURRENT : LimitProperty.RATE;
        throw new InvalidRateLimitException(
                limit.name(),
                limit.place(),
                "no limit of this name is defined: neither an annotation nor a property sets its " + missing.label()
                        + SimilarName.hint(limit.name(), known),
                "Set it in the annotation or as " + PropertyText.limit(limit.name()) + "." + missing.kebab()
                        + ", or correct the name.");
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
        Set<String> annotated = new TreeSet<>(limits.keySet());
        for (String name : properties.limits().keySet()) {
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
