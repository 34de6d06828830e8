package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.backend.SharedChanges;
import io.ratelimited.spring.internals.limit.CallerBudgets.Budget;
import io.ratelimited.spring.internals.text.LogText;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The per-caller overrides of limits, until these end. Only one thread at a time changes those of a limit, with the lock of
 * {@link LimitChanges}.
 */
record BudgetRegistry(Ticker ticker, ChangeReports reports) {

    private static final LogText.Lines LOG = LogText.lines(BudgetRegistry.class);

    /** Callers of one limit that may have a budget of their own at the same time. Each different budget has a limiter. */
    static final int MAXIMUM = 10_000;

    /** Callers and reasons in one warning. */
    private static final int SHOWN = 3;

    private static final String CORRECT = "Nothing was changed; correct the value and try again.";

    /**
     * The text of a budget.
     *
     * @param values a tier, or a rate, with or without a burst
     * @throws InvalidRateLimitException when it is something else, or the limit cannot have it
     */
    String text(ConfiguredLimit limit, Map<LimitProperty, Object> values) {
        boolean tier = values.keySet().equals(Set.of(LimitProperty.TIER));
        boolean rate = values.containsKey(LimitProperty.RATE)
                && Set.of(LimitProperty.RATE, LimitProperty.BURST).containsAll(values.keySet());
        if (!tier && !rate) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    place(limit),
                    "an override must be a tier, or a rate with or without a burst, but is "
                            + LimitProperty.texts(values),
                    CORRECT);
        }
        String text = ChangeText.of(values, Map.of());
        limiter(limit, text);
        return text;
    }

    /**
     * Makes room for another budget: many of those given for a time, here or by other instances, may be over. Those that calls
     * still wait for stay, since they follow changes and end with the application.
     */
    private static void forgetUnused(ConfiguredLimit limit) {
        CallerBudgets own = limit.budgets();
        if (own.limiters.size() >= MAXIMUM) {
            Set<String> used = own.texts();
            own.limiters
                    .entrySet()
                    .removeIf(entry ->
                            !used.contains(entry.getKey()) && entry.getValue().waiting() == 0);
        }
    }

    /**
     * The limiter of a budget. Equal budgets share it.
     *
     * @throws InvalidRateLimitException when the limit cannot have it
     * @throws IllegalArgumentException when the text is of another version of the application
     */
    private static RateLimiter limiter(ConfiguredLimit limit, String text) {
        Map<LimitProperty, Object> values = ChangeText.read(text, Map.of());
        Object tier = values.get(LimitProperty.TIER);
        if (tier != null) {
            RateLimiter found = limit.limitersOfTiers().get(tier.toString());
            if (found == null) {
                throw new InvalidRateLimitException(
                        limit.name(),
                        place(limit),
                        "there is no tier '" + LogText.escaped(tier.toString()) + "'; there are "
                                + limit.limitersOfTiers().keySet().stream()
                                        .sorted()
                                        .toList(),
                        CORRECT);
            }
            return found;
        }
        RateLimiter known = limit.budgets().limiters.get(text);
        if (known != null) {
            return known;
        }
        ResolvedLimit resolved = resolve(limit, values);
        // On Redis the name of a budget has its text, so that all instances mean the same.
        RateLimiter made = Backends.limiter(limit.backend(), resolved, "=" + text);
        limit.blockUses().suit(made);
        limit.reportBlocks(made);
        forgetUnused(limit);
        limit.budgets().limiters.put(text, made);
        return made;
    }

    private static ResolvedLimit resolve(ConfiguredLimit limit, Map<LimitProperty, Object> values) {
        ResolvedLimit resolved = limit.settings().resolved().part(place(limit), place(limit), CORRECT, values);
        limit.fixedPermits().requireRoom(resolved.limit(), " of a caller", place(limit), CORRECT);
        return resolved;
    }

    private static String place(ConfiguredLimit limit) {
        return "per-caller override of " + limit.place();
    }

    /** Budgets follow a change of their limit. Those that it cannot have stay as they were, with one warning of all. */
    void limitChanged(ConfiguredLimit limit) {
        Map<String, String> problems = new HashMap<>();
        CallerBudgets own = limit.budgets();
        own.limiters.forEach((text, limiter) -> {
            try {
                ResolvedLimit resolved = resolve(limit, ChangeText.read(text, Map.of()));
                Limit changed = limit.blockUses().suited(resolved.limit());
                Backends.requireSupport(limit.backend(), resolved, changed, CORRECT);
                if (!changed.equals(limiter.limit())) {
                    limiter.update(changed);
                }
            } catch (IllegalArgumentException | InvalidRateLimitException ex) {
                problems.put(text, String.valueOf(ex.getMessage()));
            }
        });
        own.notApplied().forEach((caller, budget) -> own.put(caller, tried(limit, budget)));
        own.unsuited.clear();
        own.budgets.forEach((caller, budget) -> {
            String problem = budget.problem() != null ? budget.problem() : problems.get(budget.text());
            if (problem != null) {
                own.unsuited.put(caller, problem);
            }
        });
        if (!own.unsuited.keySet().equals(own.warnedOf)) {
            warn(limit, own);
        }
    }

    /** One warning of all budgets of callers that do not suit a limit. */
    private static void warn(ConfiguredLimit limit, CallerBudgets own) {
        own.warnedOf.clear();
        own.warnedOf.addAll(own.unsuited.keySet());
        if (own.unsuited.isEmpty()) {
            return;
        }
        String callers = own.unsuited.keySet().stream()
                .limit(SHOWN)
                .map(own::mask)
                .collect(Collectors.joining(", ", "", own.unsuited.size() > SHOWN ? ", ..." : ""));
        Set<String> reasons = own.unsuited.entrySet().stream()
                .map(entry -> {
                    Budget budget = own.budgets.get(entry.getKey());
                    return (budget == null ? "" : LogText.escaped(budget.text()) + ": ") + entry.getValue();
                })
                .distinct()
                .limit(SHOWN)
                .collect(Collectors.toCollection(LinkedHashSet::new));
        LOG.warn("Rate limit '" + limit.name() + "': this instance cannot apply the overrides of " + own.unsuited.size()
                + " callers (" + callers
                + "). Overrides in use do not change; the other callers have the limit itself. "
                + String.join("; ", reasons));
    }

    /** A budget that all instances share, with its limiter if the limit can have it now. */
    private static Budget tried(ConfiguredLimit limit, Budget budget) {
        try {
            return new Budget(budget.text(), limiter(limit, budget.text()), null, budget.version(), budget.endsAt());
        } catch (InvalidRateLimitException | IllegalArgumentException ex) {
            return new Budget(budget.text(), null, String.valueOf(ex.getMessage()), budget.version(), budget.endsAt());
        }
    }

    /** Gives a caller of a limit of this instance a budget. */
    void assign(ConfiguredLimit limit, String caller, String text, @Nullable Long endsAt) {
        CallerBudgets own = limit.budgets();
        if (own.find(caller) == null && own.isFull(MAXIMUM)) {
            throw full(limit);
        }
        own.put(caller, new Budget(text, limiter(limit, text), null, 0, endsAt));
    }

    static InvalidRateLimitException full(ConfiguredLimit limit) {
        boolean shared = limit.sharedChanges() != null;
        return new InvalidRateLimitException(
                limit.name(),
                place(limit),
                MAXIMUM + " callers have an override"
                        + (shared ? ", or " + 2 * MAXIMUM + " have had one within the last hour" : "")
                        + ", which is the maximum",
                "Nothing was changed; remove one of them" + (shared ? " or wait for up to an hour" : "")
                        + ", or assign a tier with the tier expression.");
    }

    /** Applies the shared budgets of all callers when this instance begins to follow them: that is no change to report. */
    void begin(ConfiguredLimit limit, SharedChanges changes) {
        changes.callers(limit.name()).forEach(caller -> apply(limit, caller, changes.find(limit.name(), caller)));
        warnOfMore(limit);
    }

    /** Applies a shared change of a caller, and reports it unless it is the one that is in force. */
    void follow(ConfiguredLimit limit, String caller, SharedChanges.Change change) {
        Map<String, Object> before = members(limit, caller);
        if (apply(limit, caller, change)) {
            reports.add(
                    limit.name(),
                    limit.budgets().mask(caller),
                    before,
                    members(limit, caller),
                    Scope.FLEET,
                    change.author(),
                    change.madeAt());
        }
        warnOfMore(limit);
    }

    /** Warns when twice as many callers as in the last warning have a budget that this instance cannot apply. */
    private static void warnOfMore(ConfiguredLimit limit) {
        CallerBudgets own = limit.budgets();
        if (own.unsuited.size() > own.warnedOf.size() && own.unsuited.size() >= 2 * own.warnedOf.size()) {
            warn(limit, own);
        }
    }

    /**
     * Applies a change that all instances share of a caller; null if there is none.
     *
     * @return whether it is another budget than before
     */
    private boolean apply(ConfiguredLimit limit, String caller, SharedChanges.@Nullable Change change) {
        CallerBudgets own = limit.budgets();
        Budget before = own.find(caller);
        if (change == null || change.text().isEmpty()) {
            own.remove(caller);
            return before != null;
        }
        Budget next = new Budget(change.text(), null, null, change.version(), change.endsAt());
        if (before != null && before.version() == change.version()) {
            own.put(
                    caller,
                    new Budget(before.text(), before.limiter(), before.problem(), next.version(), next.endsAt()));
            return false;
        }
        own.put(caller, tried(limit, next));
        return before == null || !before.lastsAs(next);
    }

    /** The members of a caller's budget, as {@link CallerBudgets#describe} shows them. */
    private static Map<String, Object> members(ConfiguredLimit limit, String caller) {
        return limit.budgets().members(caller);
    }
}
