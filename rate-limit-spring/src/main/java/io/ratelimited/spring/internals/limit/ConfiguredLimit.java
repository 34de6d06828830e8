package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.backend.SharedChanges;
import io.ratelimited.spring.internals.block.BlockReports;
import io.ratelimited.spring.internals.overload.CallClasses;
import io.ratelimited.spring.internals.overload.FoundLimitHistory;
import io.ratelimited.spring.internals.request.ThreadUse;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.RelaxedNames;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A limit of the application: its limiter, those of its tiers, and its policy. Thread-safe; the policy may change. */
public final class ConfiguredLimit implements NamedLimit {

    private static final LogText.Lines LOG = LogText.lines(ConfiguredLimit.class);

    private final ResolvedLimit atStart;
    private final RateLimiter limiter;
    private final Map<String, RateLimiter> tiers;
    private final CallerNumbers numbers;
    private final boolean countsInFlight;
    private final LimiterFactory backend;
    private final FixedPermits fixedPermits = new FixedPermits(this);
    private final BlockUses blockUses;
    private final BlockReports blockReports;
    private final LimitCandidates candidates;
    /** Blocks that have begun here. */
    private final LongAdder blocks = new LongAdder();

    private final CallClasses classes;
    private final @Nullable FoundLimitHistory found;
    private volatile Map<LimitProperty, Object> definition;
    private volatile Settings settings;
    private volatile Shared shared = Shared.NONE;
    private final CallerBudgets budgets;
    private volatile Enforcement enforcement;
    private volatile boolean warnedOfTier;
    private volatile boolean keyed;
    private volatile boolean lookedUp;
    private volatile boolean usedWithThreads;
    private volatile boolean usedWithoutThreads;
    private final AtomicBoolean calledInCode = new AtomicBoolean();

    /**
     * @param definition the values of the first annotation that names the limit, without the properties of its use
     * @param configuration the layers that the limit comes from
     * @param resolved the values that result from them
     * @param backend makes the limiters
     * @param unchanged runs an action while the limit does not change
     * @param blockReports report the blocks of limiters that {@link #reportBlocks} names
     * @param ticker the time of changes that are remembered
     */
    ConfiguredLimit(
            Map<LimitProperty, Object> definition,
            List<Layer> configuration,
            ResolvedLimit resolved,
            LimiterFactory backend,
            RateLimiter limiter,
            Map<String, RateLimiter> tiers,
            Consumer<Runnable> unchanged,
            BlockReports blockReports,
            Ticker ticker) {
        this.backend = backend;
        this.blockUses = new BlockUses(this, unchanged);
        this.budgets = new CallerBudgets(ticker, backend.sharedChanges() != null);
        this.blockReports = blockReports;
        this.candidates = new LimitCandidates(this, ticker);
        this.definition = definition;
        this.limiter = limiter;
        this.tiers = Map.copyOf(tiers);
        this.numbers = new CallerNumbers(resolved.name(), limiter);
        this.countsInFlight = limit().algorithm().countsCallsInFlight();
        this.classes = new CallClasses(limiter);
        this.found = limit().algorithm().findsItsLimit() ? new FoundLimitHistory(limit().name(), ticker) : null;
        if (found != null) {
            limiter.onLimitChange(found::add);
        }
        this.atStart = resolved;
        this.settings = new Settings(configuration, Map.of(), resolved);
        this.enforcement = enforcement(resolved);
    }

    @Override
    public String name() {
        return atStart.name();
    }

    @Override
    public String place() {
        return atStart.place();
    }

    /** Returns whether a value is that of {@code rate-limit.defaults}. */
    public boolean hasDefaults() {
        return settings.resolved.hasDefaults();
    }

    /** Decides for callers without a tier. */
    public RateLimiter limiter() {
        return limiter;
    }

    /** The definition of the limit where it is declared first, without the properties of its use. */
    Map<LimitProperty, Object> definition() {
        return definition;
    }

    void define(Map<LimitProperty, Object> first) {
        definition = first;
    }

    @Override
    public Map<String, Limit> tiers() {
        return tiers.entrySet().stream()
                .collect(Collectors.toUnmodifiableMap(
                        Map.Entry::getKey, tier -> tier.getValue().limit()));
    }

    /** Its numbers, and those of each tier: each has a limiter, which remembers keys of its own. */
    public List<Limit> limitAndTiers() {
        List<Limit> all = new ArrayList<>(tiers().values());
        all.add(0, limit());
        return all;
    }

    /** Limiters by tier. */
    public Map<String, RateLimiter> limitersOfTiers() {
        return tiers;
    }

    /** Some calls have a key. */
    public void usedWithKeys() {
        keyed = true;
    }

    /** Some calls have a tier that their clients cannot choose, which may be numbers. */
    public void usedWithTiers() {
        lookedUp = true;
    }

    /** Returns whether callers may have a tier or their own numbers. */
    public boolean isUsedWithTiers() {
        return lookedUp || !tiers.isEmpty();
    }

    /** Returns whether each caller may have its own numbers. With tiers, an expression is expected to return their names. */
    public boolean mayHaveNumbers() {
        return lookedUp && tiers.isEmpty() && !countsInFlight;
    }

    /**
     * Checks the key of code without annotations: a limit that finds itself would find one for each key.
     *
     * @throws IllegalArgumentException when there is a key, and the limit has none
     */
    public void requireKeyless(@Nullable Object key) {
        if (key != null && found != null) {
            throw new IllegalArgumentException("rate limit '" + name()
                    + "' is ADAPTIVE, which has one limit for all calls of this instance; use null as its key");
        }
    }

    /** Returns whether some calls have a key: an annotation, a route or a property names one. */
    public boolean isKeyed() {
        return keyed || settings.resolved.values().containsKey(LimitProperty.KEY);
    }

    /** Some calls wait, where the policy lets them, in their thread, or without one. */
    public void usedBy(boolean withThread) {
        if (withThread) {
            usedWithThreads = true;
        } else {
            usedWithoutThreads = true;
        }
    }

    /**
     * Code calls the limit by its name. The first call warns of properties that such calls do not read.
     *
     * @param withKey whether it passes a key
     */
    public void calledInCode(boolean withKey) {
        if (!calledInCode.get() && calledInCode.compareAndSet(false, true)) {
            PropertyChecks.warnOfUnread(name(), settings.configuration.get(0).values(), withKey);
        }
    }

    /** Returns whether calls may sleep in their thread: the policy is to wait, and not all known calls are without one. */
    public boolean maySleep() {
        return policy() == Policy.WAIT && (usedWithThreads || !usedWithoutThreads);
    }

    /** How calls that have a thread use it. */
    public ThreadUse threadUse() {
        if (policy() == Policy.WAIT) {
            return ThreadUse.WAIT;
        }
        return limiter.source() == null ? ThreadUse.REPLY : ThreadUse.NONE;
    }

    /** Returns how many callers a property lets wait at once, of the limit or of one of its tiers; 0 where none says so. */
    public int statedMaxWaiting() {
        return Stream.concat(Stream.of(limiter), tiers.values().stream())
                .mapToInt(this::statedMaxWaiting)
                .max()
                .orElse(0);
    }

    /** {@link #statedMaxWaiting()} of the limiter of the limit, or of a tier or caller. */
    public int statedMaxWaiting(RateLimiter own) {
        int number = own.limit().maxWaiting();
        boolean stated = settings.resolved.values().containsKey(LimitProperty.MAX_WAITING)
                || number != limiter.limit().maxWaiting();
        return stated ? number : 0;
    }

    /** Returns whether the limit may remember keys in this process: code may pass keys to a limit without any other use. */
    public boolean remembersKeys() {
        return (keyed || !blockUses.isUsed()) && !countsInFlight && limiter instanceof InMemoryRateLimiter;
    }

    /** Warns of tiers that no expression chooses, and of an expression that has none to choose from. */
    public void warnOfTiersWithout(@Nullable String expression, String usedAt) {
        PropertyChecks.warnOfTiersWithout(expression, tiers.keySet(), countsInFlight, name(), usedAt);
    }

    /**
     * The limiter of a tier, or of callers with their own numbers; that of the limit itself for a tier that is not configured and
     * for numbers that it cannot have, which is warned of once.
     *
     * @param tier its name, or an enum constant, as {@link RelaxedNames} finds it; or numbers, as text or {@link CallerLimit}
     * @param chosen the expression of the tier if its numbers do not count, since a client may have chosen them; else null
     */
    public RateLimiter limiterOfTier(Object tier, @Nullable String chosen) {
        RateLimiter found = tier instanceof String ? tiers.get(tier) : null;
        if (found == null && chosen == null && (tier instanceof String || tier instanceof CallerLimit)) {
            found = numbers.known(tier);
        }
        if (found != null) {
            return found;
        }
        RateLimiter relaxed = limiterOfName(tier);
        if (relaxed != null) {
            return relaxed;
        }
        if (CallerNumbers.isNumbers(tier)) {
            return chosen == null ? numbers.limiter(tier) : numbers.chosen(chosen);
        }
        if (!warnedOfTier) {
            warnedOfTier = true;
            LOG.warn("Rate limit '" + name() + "' has no tier '" + LogText.escaped(tier.toString())
                    + "': the limit itself applies. Tiers: " + tiers.keySet() + " [RL-208]");
        }
        return limiter;
    }

    /** The limiter of a tier of this name, or of these numbers; that of the limit itself for others, without a warning. */
    public RateLimiter limiterOfKnownTier(String tier) {
        RateLimiter found = limiterOfName(tier);
        return found != null ? found : CallerNumbers.isNumbers(tier) ? limiterOfTier(tier, null) : limiter;
    }

    private @Nullable RateLimiter limiterOfName(Object tier) {
        String name = RelaxedNames.find(tiers.keySet(), tier);
        return name == null ? null : tiers.get(name);
    }

    /** The classes of its calls. */
    public CallClasses classes() {
        return classes;
    }

    /** The last changes of the limit that it has found, the newest first; none unless it finds one. */
    public List<FoundLimitHistory.Entry> lastChanges() {
        return found == null ? List.of() : found.last();
    }

    /** Returns whether calls count while they are in flight. */
    public boolean countsInFlight() {
        return countsInFlight;
    }

    /** Returns whether it finds by itself how many calls to admit, as it does from the start on or never. */
    public boolean findsItsLimit() {
        return found != null;
    }

    /** Returns the rules for a call that begins now, read once for each call. */
    public Enforcement enforcement() {
        return enforcement;
    }

    @Override
    public Limit limit() {
        return limiter.limit();
    }

    @Override
    public Map<String, String> properties() {
        return settings.resolved.texts();
    }

    /** The values that are set, in the order of the table. */
    public Map<LimitProperty, Object> values() {
        return Collections.unmodifiableMap(settings.resolved.values());
    }

    /** The value of a property that is a text, such as an expression; null if it is not set. */
    public @Nullable String text(LimitProperty property) {
        return settings.resolved.text(property);
    }

    /** The values that the limit was made of. */
    ResolvedLimit atStart() {
        return atStart;
    }

    Settings settings() {
        return settings;
    }

    /** What the configuration says of the limit and of its tiers, on one line; without the changes at run time. */
    String configuredTerms() {
        ResolvedLimit configured = new ResolvedLimit(name(), place(), settings.configuration).on(backend);
        StringBuilder text = new StringBuilder(LimitProperty.text(configured.limit()));
        configured
                .tiers()
                .forEach((tier, ofTier) -> text.append(", tier ")
                        .append(tier)
                        .append(" (")
                        .append(LimitProperty.text(ofTier.limit()))
                        .append(')'));
        return text.toString();
    }

    /** The fixed numbers of permits that calls ask for. */
    public FixedPermits fixedPermits() {
        return fixedPermits;
    }

    /** The candidates that are tried beside it. */
    public LimitCandidates candidates() {
        return candidates;
    }

    /** The uses of the limit that its blocks depend on. */
    public BlockUses blockUses() {
        return blockUses;
    }

    /** Reports each block that begins in a limiter of the limit, of a tier or of a caller. */
    void reportBlocks(RateLimiter own) {
        if (backend.blocks()) {
            own.onBlock(block -> {
                blocks.increment();
                blockReports.begin(this, block);
            });
        }
    }

    /** Returns how many blocks have begun on this instance since its start. */
    public long blocks() {
        return blocks.sum();
    }

    @Override
    public long keys() {
        return limiters().stream().mapToLong(RateLimiter::keys).sum();
    }

    @Override
    public int waiting() {
        return limiters().stream().mapToInt(RateLimiter::waiting).sum();
    }

    /** All limiters of the limit: its own, those of its tiers, and those of budgets that callers have of their own. */
    public List<RateLimiter> limiters() {
        List<RateLimiter> all = new ArrayList<>(tiers.values());
        all.add(0, limiter);
        all.addAll(budgets.limiters.values());
        return all;
    }

    void settings(Settings changed) {
        settings = changed;
        numbers.limitChanged();
        enforcement = enforcement(changed.resolved);
    }

    @Override
    public Policy policy() {
        return enforcement.policy;
    }

    @Override
    public long maxWaitNanos() {
        return enforcement.policy == Policy.WAIT ? enforcement.maxWaitNanos : 0;
    }

    /** The longest wait, by which a dry run judges; 0 if calls never wait. */
    public long enforcedMaxWaitNanos() {
        return enforcement.maxWaitNanos;
    }

    @Override
    public boolean showsHeaders() {
        return enforcement.showsHeaders;
    }

    @Override
    public Scope scope() {
        return sharedChanges() == null ? Scope.INSTANCE : Scope.FLEET;
    }

    /** The changes that all instances share; null if a change is the instance's own. */
    @Nullable
    SharedChanges sharedChanges() {
        return backend.sharedChanges();
    }

    /**
     * The limiter of a caller.
     *
     * @param key null for a call without a key
     * @param limiter that of the limit or of the caller's tier, which applies unless the caller has a budget of its own
     */
    public RateLimiter limiterOf(@Nullable Object key, RateLimiter limiter) {
        return key == null || budgets.budgets.isEmpty() ? limiter : budgets.limiter(key, limiter);
    }

    /** {@link #limiterOf} for a call that states no tier: by the numbers with which the key has called last. */
    public RateLimiter limiterOf(@Nullable Object key) {
        return limiterOf(key, key == null || !numbers.isUsed() ? limiter : limiter.ofKnownCaller(key));
    }

    /** Returns how many callers have a budget of their own. */
    public int ownBudgets() {
        return budgets.size();
    }

    /** The budget of a caller, as {@link CallerBudgets#describe} shows it; empty if it has none of its own. */
    public Map<String, Object> ownBudget(Object key) {
        return budgets.describe(key);
    }

    CallerBudgets budgets() {
        return budgets;
    }

    /** Forgets what a key has used, whichever limit of this name applies to it, and its block. */
    void reset(@Nullable Object key) {
        limiter.reset(key);
        limiterOf(key, limiter).reset(key);
        tiers.values().forEach(tier -> tier.reset(key));
    }

    /** Ends every wait. */
    void close() {
        limiters().forEach(RateLimiter::close);
        candidates.close();
    }

    LimiterFactory backend() {
        return backend;
    }

    /** The change that all instances share, as this one has seen it last. */
    Shared shared() {
        return shared;
    }

    void shared(Shared seen) {
        shared = seen;
    }

    /** Returns whether a change that all instances share is not applied: it never was, or a new configuration replaced it. */
    boolean isWithoutShared() {
        return shared.problem != null || (!shared.text.isEmpty() && settings.changes.isEmpty());
    }

    /** Lets the change that all instances share be applied again. */
    void forgetShared() {
        shared = new Shared(-1, settings.changes.isEmpty() ? "" : shared.text, null);
    }

    /**
     * The change that all instances share, applied here or not.
     *
     * @param key that of the caller whose own budget it is; null for the limit itself
     * @return null if there is none
     */
    public SharedChanges.@Nullable Change sharedChange(@Nullable Object key) {
        SharedChanges changes = sharedChanges();
        SharedChanges.Change found =
                changes == null ? null : changes.find(name(), key == null ? null : CallerBudgets.caller(key, true));
        return found == null || found.text().isEmpty() ? null : found;
    }

    /** The reason why this instance cannot apply the change that all instances share; null if it does. */
    public @Nullable String notApplied() {
        return shared.problem;
    }

    /**
     * A change that all instances share.
     *
     * @param version 0 if there is none
     * @param text as of {@link PreparedChange#text}, if it is applied
     * @param problem the reason why it is not applied; null if it is
     */
    record Shared(long version, String text, @Nullable String problem) {

        static final Shared NONE = new Shared(0, "", null);
    }

    /**
     * The properties that apply to each call, computed once.
     *
     * @param policy the policy for calls over the limit
     * @param maxWaitNanos the longest wait, by which a dry run judges; 0 if calls never wait
     * @param missingKey handling of calls without a key
     * @param showsHeaders whether responses have the rate limit headers of the limit
     * @param mayTry whether a call may be admitted without a reservation: it does not wait, nothing ends with it, and
     *     nobody has to ask the limiter again over a network to know the place of the decision, or the time of a retry
     */
    public record Enforcement(
            Policy policy, long maxWaitNanos, MissingKey missingKey, boolean showsHeaders, boolean mayTry) {}

    private Enforcement enforcement(ResolvedLimit resolved) {
        boolean mayTry = resolved.policy() == Policy.REJECT && !countsInFlight && limiter.source() != null;
        return new Enforcement(
                resolved.policy(), resolved.maxWaitNanos(), resolved.missingKey(), resolved.showsHeaders(), mayTry);
    }

    /**
     * The settings of a limit.
     *
     * @param configuration the layers of its configuration
     * @param changes the values that were changed at run time
     * @param resolved the values that result from them
     */
    record Settings(List<Layer> configuration, Map<LimitProperty, Object> changes, ResolvedLimit resolved) {}
}
