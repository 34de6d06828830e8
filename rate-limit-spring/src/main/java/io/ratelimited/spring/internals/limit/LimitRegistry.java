package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.backend.SharedPauses;
import io.ratelimited.spring.internals.block.BlockReports;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import io.ratelimited.spring.internals.text.SimilarName;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The limits of the application by name: makes each when it is first asked for. Thread-safe. */
public final class LimitRegistry {

    private static final LogText.Lines LOG = LogText.lines(LimitRegistry.class);

    private volatile LimitSettings properties;
    private final Backends backends;
    private final Map<String, ConfiguredLimit> limits = new ConcurrentHashMap<>();
    /** Places of the annotations without a name, by the default names of their limits. */
    private final Map<String, String> nameless = new ConcurrentHashMap<>();

    private final CurrentRequest.@Nullable Source requests;
    private final RequestThreads ownThreads;
    /** Those of the contexts that share the limits. Guarded by itself. */
    private final List<RequestThreads> addedThreads = new ArrayList<>();

    private volatile RequestThreads threads;
    /** Whether a context has read the annotations of its beans. */
    private volatile boolean annotationsRead;

    private final Ticker ticker;
    private final LimitChanges changes;
    private final BlockReports blocks;

    /**
     * A registry without limits.
     *
     * @param backends the backends that limits can name; the first of a name wins
     * @param requests is prepared for each limit; null outside web applications
     * @param threads the threads in which calls that wait may sleep
     * @param reports report changes
     * @param blocks report blocks that begin
     * @param ticker the time until budgets of callers end, and of changes that are remembered
     * @throws InvalidRateLimitException when there is no backend for limits that name none
     */
    public LimitRegistry(
            LimitSettings properties,
            List<LimiterFactory> backends,
            CurrentRequest.@Nullable Source requests,
            RequestThreads threads,
            ChangeReports reports,
            BlockReports blocks,
            Ticker ticker) {
        this.blocks = blocks;
        this.ownThreads = threads;
        this.threads = threads;
        this.ticker = ticker;
        this.changes = new LimitChanges(reports, ticker);
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
                .map(limit -> limit.backend().sharedPauses())
                .filter(Objects::nonNull)
                .findFirst()
                .orElseGet(() -> backends.sharedPauses(properties.backend()));
    }

    /** Changes the limits that are found here. */
    public LimitChanges changes() {
        return changes;
    }

    /**
     * Changes the limits in use where the properties differ from those before. A change that was made at run time stays
     * unless the properties change the same value. One that all instances share stays unless it does not suit them. A limit
     * that is no longer configured stays as it is until the next startup.
     *
     * @throws InvalidRateLimitException when a limit would not be valid; nothing has changed
     */
    public void refresh(LimitSettings refreshed) {
        String author = ChangeReports.author(requests == null ? null : requests.current());
        // Calls that it lets go continue without the lock.
        JointLocks.postponing(() -> {
            synchronized (this) {
                checkUnused(refreshed);
                changes.configure(configured(refreshed), limit -> checked(limit, refreshed), author);
                LimitSettings before = properties;
                properties = refreshed;
                // A limit that was made meanwhile has the properties before.
                changes.configure(configured(refreshed), limit -> checked(limit, refreshed), author);
                warnOfNextStartup(before, refreshed);
            }
            return refreshed;
        });
        // The new configuration may suit a change that the old one did not; if it does not either, that is reported.
        changes.followAgain(all());
    }

    /** The limits in use that annotations or the given properties define. */
    private List<ConfiguredLimit> configured(LimitSettings settings) {
        return all().stream().filter(limit -> !isRemoved(limit, settings)).toList();
    }

    /** Returns whether properties alone have defined a limit, and no longer do. */
    private static boolean isRemoved(ConfiguredLimit limit, LimitSettings settings) {
        String name = limit.name();
        return !settings.limits().containsKey(name)
                && limit.place().equals(PropertyText.limit(name))
                && limit.definition().isEmpty();
    }

    /** Checks the properties that a limit in use reads only once, too: with an invalid one the next startup would fail. */
    private List<Layer> checked(ConfiguredLimit limit, LimitSettings refreshed) {
        List<Layer> configuration = configuration(limit, refreshed);
        check(new ResolvedLimit(limit.name(), limit.place(), configuration));
        return configuration;
    }

    private void check(ResolvedLimit next) {
        requireDefined(next);
        LimiterFactory backend = backends.atNextStartup(next);
        next.on(backend).check(backend);
    }

    /** Checks limits that are not made yet, as {@link #registerConfigured} makes them at the next startup. */
    private void checkUnused(LimitSettings refreshed) {
        unused(refreshed).filter(limit -> lacking(limit) == null).forEach(this::check);
    }

    /** The limits of properties that are not made yet, without annotations. */
    private Stream<ResolvedLimit> unused(LimitSettings settings) {
        return settings.limits().keySet().stream()
                .filter(name -> !limits.containsKey(name))
                .map(name -> alone(settings, name));
    }

    /** Warns of what this refresh has added or removed, and only the next startup applies. */
    private void warnOfNextStartup(LimitSettings before, LimitSettings refreshed) {
        unused(refreshed)
                .filter(limit -> !refreshed.limit(limit.name()).equals(before.limit(limit.name())))
                .forEach(limit -> {
                    String lacking = lacking(limit);
                    if (lacking != null) {
                        warnOfIgnored(limit.name(), lacking, limits.keySet());
                    } else if (backends.isForNextStartup(limit)) {
                        LOG.warn("Rate limit '" + limit.name() + "' takes effect at the next startup, which connects to"
                                + " Redis. Until then, calls that use it fail.");
                    }
                });
        for (ConfiguredLimit limit : all()) {
            String name = limit.name();
            if (before.limits().containsKey(name) && isRemoved(limit, refreshed)) {
                LOG.warn("Rate limit '" + name + "' is no longer configured. It stays as it is until the next startup."
                        + (limit.blockUses().isUsed()
                                ? " Remove the route, client or annotation that uses it, too, or that startup fails."
                                : ""));
            }
        }
    }

    private static List<Layer> configuration(ConfiguredLimit limit, LimitSettings properties) {
        return Layer.ofConfiguration(
                properties, limit.name(), limit.settings().configuration().get(Layer.ANNOTATION));
    }

    /** Completes a limit whose properties were refreshed while it was made: the refresh may not have seen it. */
    private synchronized void completeRefresh(ConfiguredLimit made) {
        if (!isRemoved(made, properties)) {
            changes.complete(made, configuration(made, properties));
        }
    }

    /** Ends every wait, as {@link RateLimiter#close} says. */
    public void close() {
        changes.close(all());
    }

    /** Calls that wait may also sleep in the threads of a child context that starts: limits leave some of these free. */
    public void addThreads(Collection<RequestThreads> added) {
        synchronized (addedThreads) {
            addedThreads.addAll(added);
            added.forEach(more -> threads = threads.orFewer(more));
        }
    }

    /** Forgets the threads of a child context that closes. */
    public void removeThreads(Collection<RequestThreads> removed) {
        synchronized (addedThreads) {
            removed.forEach(addedThreads::remove);
            RequestThreads fewest = ownThreads;
            for (RequestThreads added : addedThreads) {
                fewest = fewest.orFewer(added);
            }
            threads = fewest;
        }
    }

    /** The fewest threads that serve the requests of a context. */
    public RequestThreads threads() {
        return threads;
    }

    /**
     * Remembers the changes and the callers' own budgets of a limit, for tests.
     *
     * @return brings them back, and starts the configured candidates again; the budgets in limiters are left to the tests
     */
    public Runnable memento(String name) {
        ConfiguredLimit limit = get(name);
        return memento(limit, limit.settings().changes(), limit.budgets().memento());
    }

    /** {@link #memento} of a limit as its configuration has it: without changes, and without budgets of callers. */
    public Runnable asConfigured(String name) {
        ConfiguredLimit limit = get(name);
        return memento(limit, Map.of(), limit.budgets()::clear);
    }

    private Runnable memento(ConfiguredLimit limit, Map<LimitProperty, Object> changed, Runnable budgets) {
        List<Layer> configuration = limit.settings().configuration();
        Map<LimitProperty, Object> definition = limit.definition();
        return () -> {
            budgets.run();
            // An annotation that was read later has completed the configuration, which stays so.
            boolean same = definition.equals(limit.definition());
            changes.restore(limit, same ? configuration : limit.settings().configuration(), changed);
            limit.atStart().restartCandidates(limit.candidates());
        };
    }

    /** The reasons why this instance does not apply changes of all instances, by the names of the limits. */
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

    /** The limits that remember keys in this process. */
    public List<ConfiguredLimit> rememberingKeys() {
        return all().stream().filter(ConfiguredLimit::remembersKeys).toList();
    }

    /** Returns whether properties or code that was read define a limit of a name. */
    public boolean isDefined(String name) {
        return limits.containsKey(name)
                || (properties.limits().containsKey(name) && lacking(alone(properties, name)) == null);
    }

    /**
     * The limit of a name.
     *
     * @throws IllegalArgumentException when there is none, or its properties are incomplete, so that startup has ignored it
     */
    public ConfiguredLimit get(String name) {
        String remedy = annotationsRead
                ? ""
                : ". Annotations are read once all beans are created: wait for ContextRefreshedEvent or"
                        + " ApplicationReadyEvent, or define " + PropertyText.limit(name);
        try {
            return get(name, remedy);
        } catch (InvalidRateLimitException ex) {
            throw new IllegalArgumentException(
                    "there is no rate limit named '" + name + "': " + ex.getMessage() + " " + ex.remedy() + remedy, ex);
        }
    }

    /** {@link #get} for routes and clients, which are created before beans with annotations. */
    public ConfiguredLimit getOfProperties(String name) {
        return get(name, "");
    }

    private ConfiguredLimit get(String name, String remedy) {
        ConfiguredLimit limit = limits.get(name);
        if (limit != null) {
            return limit;
        }
        if (properties.limits().containsKey(name)) {
            return register(name, PropertyText.limit(name), Map.of());
        }
        Set<String> known = known();
        throw new IllegalArgumentException("there is no rate limit named '" + name + "'" + SimilarName.hint(name, known)
                + "; there are " + known + remedy);
    }

    /** The names of the limits that properties or code that was read define. */
    private Set<String> known() {
        Set<String> known = new TreeSet<>(limits.keySet());
        known.addAll(properties.limits().keySet());
        return known;
    }

    /** What to do if a route or a client names a limit that is not there: they are created before beans with annotations. */
    public static String remedyOfUnknown(String name) {
        return remedyOfUnknown(name, LimitProperty.RATE);
    }

    private static String remedyOfUnknown(String name, LimitProperty missing) {
        return "Set " + PropertyText.limit(name) + "." + missing.kebab()
                + ", or correct the name; routes and clients use"
                + " limits of properties, so repeat the values of a limit that an annotation defines.";
    }

    /**
     * The properties of a use of a limit, from properties, declaration and defaults.
     *
     * @param place the place of the annotation
     * @param declared the values of the annotation
     */
    public ResolvedLimit ofUse(String name, String place, Map<LimitProperty, Object> declared) {
        return ResolvedLimit.ofUse(properties, name, place, declared);
    }

    /** Returns whether a limit that is known finds by itself how many calls to admit. */
    public boolean findsItsLimit(String name) {
        ConfiguredLimit limit = limits.get(name);
        return limit != null && limit.findsItsLimit();
    }

    /** Returns whether no limit is known so far: neither a property nor a bean that was looked at has one. */
    public boolean isEmpty() {
        return limits.isEmpty();
    }

    /**
     * The limit of a name, made when it is first asked for.
     *
     * @param place the annotation or property that declares it
     * @param declared the values that are set there
     * @throws InvalidRateLimitException when it is invalid, or is declared differently elsewhere
     */
    public ConfiguredLimit register(String name, String place, Map<LimitProperty, Object> declared) {
        Map<LimitProperty, Object> definition = LimitProperty.definition(declared);
        LimitSettings before = properties;
        ConfiguredLimit known = limits.get(name);
        ConfiguredLimit limit =
                known != null ? known : limits.computeIfAbsent(name, n -> create(n, place, declared, definition));
        if (known == null) {
            changes.follow(limit);
            if (!properties.equals(before)) {
                completeRefresh(limit);
            }
        }
        prepare(word -> false);
        if (known != null && known.definition().isEmpty()) {
            define(known, place, definition);
        }
        if (!definition.equals(limit.definition()) && !definition.isEmpty()) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "it is defined differently by " + limit.place() + ": " + difference(limit.definition(), definition),
                    "Give one of the two another name, or define the limit once, under " + PropertyText.limit(name)
                            + ". [RL-105]");
        }
        return limit;
    }

    /**
     * Reserves the default name of a limit for one class or method, in all contexts that share the limits.
     *
     * @param place that of the annotation on the class or method
     * @throws InvalidRateLimitException if another class or method has the same default name
     */
    public void reserveDefaultName(String name, String place) {
        String other = nameless.putIfAbsent(name, place);
        if (other != null && !other.equals(place)) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "its default name is also that of " + other,
                    "Give one of the two a name, as in @RateLimited(name = \"…\"). [RL-105]");
        }
    }

    private static String difference(Map<LimitProperty, Object> there, Map<LimitProperty, Object> here) {
        Set<LimitProperty> either = EnumSet.noneOf(LimitProperty.class);
        either.addAll(here.keySet());
        either.addAll(there.keySet());
        return either.stream()
                .filter(property -> !Objects.equals(there.get(property), here.get(property)))
                .map(property -> property.label() + " is " + text(there.get(property)) + " there and "
                        + text(here.get(property)) + " here")
                .collect(Collectors.joining(", "));
    }

    private static String text(@Nullable Object value) {
        return value == null ? "not set" : PropertyText.text(value);
    }

    /**
     * Adds the values of the first annotation to a limit that properties alone have defined, as those of a parent context
     * do.
     */
    private synchronized void define(ConfiguredLimit limit, String place, Map<LimitProperty, Object> definition) {
        if (definition.isEmpty() || !limit.definition().isEmpty()) {
            return;
        }
        changes.complete(
                limit,
                Layer.ofConfiguration(properties, limit.name(), Layer.ofAnnotation(limit.name(), place, definition)));
        limit.define(definition);
    }

    private ConfiguredLimit create(
            String name,
            String declaredAt,
            Map<LimitProperty, Object> declared,
            Map<LimitProperty, Object> definition) {
        String property = PropertyText.limit(name);
        String place = properties.limit(name).isEmpty() || declaredAt.equals(property)
                ? declaredAt
                : declaredAt + " with " + property;
        List<Layer> layers = Layer.ofConfiguration(properties, name, Layer.ofAnnotation(name, place, declared));
        ResolvedLimit merged = new ResolvedLimit(name, place, layers);
        requireDefined(merged);
        LimiterFactory backend = backends.of(merged);
        ResolvedLimit resolved = merged.on(backend);
        RateLimiter limiter = Backends.limiter(backend, resolved, "");
        Map<String, RateLimiter> tiers = new HashMap<>();
        resolved.tiers().forEach((tier, ofTier) -> tiers.put(tier, Backends.limiter(backend, ofTier, tier)));
        if (resolved.ignoresAnnotation()) {
            LOG.info("Rate limit '" + name + "': the values of " + declaredAt + " that only "
                    + declared.getOrDefault(LimitProperty.ALGORITHM, Algorithm.TOKEN_BUCKET)
                    + " supports are ignored, because the properties set algorithm " + resolved.algorithm());
        }
        ConfiguredLimit created = new ConfiguredLimit(
                definition, layers, resolved, backend, limiter, tiers, changes::exclude, blocks, ticker);
        created.limiters().forEach(created::reportBlocks);
        resolved.startCandidates(created.candidates());
        return created;
    }

    /** A limit of a name that may be an annotation's, which nobody reads where nothing is limited; it is not kept. */
    ConfiguredLimit unlimited(String name) {
        String place = "rate-limit.enabled";
        Map<LimitProperty, Object> values =
                Map.of(LimitProperty.ALGORITHM, Algorithm.TOKEN_BUCKET, LimitProperty.RATE, "unlimited");
        List<Layer> layers = List.of(Layer.ofAnnotation(name, place, values));
        ResolvedLimit resolved = new ResolvedLimit(name, place, layers);
        LimiterFactory memory = new InMemoryLimiterFactory("memory", Set.of(), ticker, limit -> 1);
        RateLimiter limiter = Backends.limiter(memory, resolved, "");
        return new ConfiguredLimit(
                values, layers, resolved, memory, limiter, Map.of(), changes::exclude, blocks, ticker);
    }

    private void requireDefined(ResolvedLimit limit) {
        LimitProperty missing = size(limit.algorithm());
        if (missing == null
                || limit.values().containsKey(LimitProperty.RATE)
                || limit.values().containsKey(LimitProperty.MAX_CONCURRENT)) {
            return;
        }
        String property = PropertyText.limit(limit.name());
        boolean annotated = !limit.place().equals(property);
        throw new InvalidRateLimitException(
                limit.name(),
                limit.place(),
                missing.label() + " is missing: " + (annotated ? "neither an annotation nor a" : "no")
                        + " property sets it" + SimilarName.hint(limit.name(), known()),
                annotated
                        ? "Set it in the annotation or as " + property + "." + missing.kebab()
                                + ", or correct the name. [RL-104]"
                        : remedyOfUnknown(limit.name(), missing) + " [RL-104]");
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

    /**
     * Makes the limits that only the properties name, when all annotations of a context have been read. One that no annotation, route or client of this context uses may have
     * the rest of its definition in a bean that is not there: it is left out, and reported.
     */
    public void registerConfigured() {
        annotationsRead = true;
        Set<String> annotated = new TreeSet<>(limits.keySet());
        for (String name : properties.limits().keySet()) {
            if (annotated.contains(name)) {
                continue;
            }
            String lacking = lacking(alone(properties, name));
            if (lacking != null) {
                warnOfIgnored(name, lacking, annotated);
                continue;
            }
            ConfiguredLimit limit = get(name, "");
            limit.warnOfTiersWithout(limit.text(LimitProperty.TIER), limit.place());
            SimilarName.find(name, annotated)
                    .or(() -> defaultName(name, annotated))
                    .ifPresent(similar -> LOG.warn("Rate limit '" + name + "' (" + limit.place()
                            + ") is not named by any annotation; did you mean '" + similar + "'? [RL-206]"));
        }
    }

    /** Makes the limits that the properties define where nobody reads annotations, which may define the others. */
    public void registerDefined() {
        properties.limits().keySet().stream().filter(this::isDefined).forEach(name -> get(name, ""));
    }

    private static void warnOfIgnored(String name, String lacking, Set<String> known) {
        LOG.warn("Rate limit '" + name + "' (" + PropertyText.limit(name) + ") is ignored: nothing uses it"
                + SimilarName.hint(name, known) + ", and " + lacking
                + ". Complete it, or remove it, unless a bean outside of this context uses it. [RL-207]");
    }

    /** Finds the default name of a class or method whose default name an operator has taken {@code name} for. */
    private static Optional<String> defaultName(String name, Set<String> annotated) {
        return annotated.stream()
                .filter(other -> isPart(name, other) || isPart(other, name))
                .findFirst();
    }

    /** {@code Shop} of {@code Shop.search}, and {@code Shop.search} of {@code Shop.search(String)}. */
    private static boolean isPart(String part, String name) {
        return name.startsWith(part + "(")
                || (name.startsWith(part + ".") && Character.isUpperCase(part.charAt(0)) && part.indexOf('.') < 0);
    }

    /** A limit of properties without an annotation. */
    private static ResolvedLimit alone(LimitSettings properties, String name) {
        String place = PropertyText.limit(name);
        Layer annotation = Layer.ofAnnotation(name, place, Map.of());
        return new ResolvedLimit(name, place, Layer.ofConfiguration(properties, name, annotation));
    }

    /** Returns the value that the properties of a limit lack without an annotation; null if they are complete. */
    private static @Nullable String lacking(ResolvedLimit alone) {
        LimitProperty size = size(alone.algorithm());
        if (size != null && !alone.values().containsKey(size)) {
            return size.kebab() + " is missing";
        }
        Layer stated = alone.layers().get(0);
        return stated.values().containsKey(LimitProperty.ALGORITHM)
                ? null
                : stated.values().keySet().stream()
                        .filter(property -> !property.hasMeaningFor(alone.algorithm()))
                        .findFirst()
                        .map(property -> property.kebab() + " is set, but " + alone.algorithm()
                                + " does not support it, and no other algorithm is set")
                        .orElse(null);
    }

    /** The property without which no limit of an algorithm can be; null if it needs none. */
    private static @Nullable LimitProperty size(Algorithm algorithm) {
        if (algorithm.findsItsLimit()) {
            return null;
        }
        return algorithm.countsCallsInFlight() ? LimitProperty.MAX_CONCURRENT : LimitProperty.RATE;
    }
}
