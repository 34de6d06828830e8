package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.internals.text.KeyMask;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The callers of a limit that have a budget of their own, until it ends. Thread-safe. */
final class CallerBudgets {

    private final Ticker ticker;
    private final boolean shared;
    final Map<String, Budget> budgets = new ConcurrentHashMap<>();

    /** Limiters of budgets that are not those of a tier, by their texts. Changed with the lock of {@link LimitChanges}. */
    final Map<String, RateLimiter> limiters = new ConcurrentHashMap<>();
    /** Reasons why the limit cannot have the budgets of some callers. Guarded by {@link LimitChanges}. */
    final Map<String, String> unsuited = new LinkedHashMap<>();
    /** The callers of the last warning. Guarded by {@link LimitChanges}. */
    final Set<String> warnedOf = new HashSet<>();

    /**
     * A budget of a caller.
     *
     * @param text its properties, as of {@link ChangeText}
     * @param limiter null if this instance cannot apply it
     * @param problem the reason why it cannot; null if it can
     * @param version of the change that all instances share; 0 if they do not
     * @param endsAt in nanoseconds of the ticker; null for never
     */
    record Budget(
            String text,
            @Nullable RateLimiter limiter,
            @Nullable String problem,
            long version,
            @Nullable Long endsAt) {

        /** Returns whether the other has the same text and end, but for what clocks are apart. */
        boolean lastsAs(Budget other) {
            Long end = other.endsAt;
            boolean same =
                    endsAt == null ? end == null : end != null && Math.abs(endsAt - end) < TimeUnit.SECONDS.toNanos(1);
            return same && text.equals(other.text);
        }

        /** The same budget, that many nanoseconds later. */
        Budget later(long nanos) {
            return endsAt == null ? this : new Budget(text, limiter, problem, version, endsAt + nanos);
        }

        boolean hasEnded(Ticker ticker) {
            return endsAt != null && ticker.nanos() - endsAt >= 0;
        }
    }

    /** @param shared whether callers are known by digests, as instances share them */
    CallerBudgets(Ticker ticker, boolean shared) {
        this.ticker = ticker;
        this.shared = shared;
    }

    /** Remembers the budgets, for tests; running the result brings them back, each for the time that it still had. */
    Runnable memento() {
        Map<String, Budget> before = Map.copyOf(budgets);
        long then = ticker.nanos();
        return () -> {
            clear();
            long since = ticker.nanos() - then;
            before.forEach((caller, budget) -> budgets.put(caller, budget.later(since)));
        };
    }

    void clear() {
        budgets.clear();
    }

    /** The name of a caller: the text of its key, or its digest. As in the endpoint, 42 is the string and the number. */
    static String caller(Object key, boolean shared) {
        String text = CanonicalKey.text(key);
        if (text.startsWith("(Long)") || text.startsWith("(Integer)") || text.startsWith("(UUID)")) {
            text = text.substring(text.indexOf(')') + 1);
        }
        return shared ? CanonicalKey.digest(text) : text;
    }

    /** The mask of a caller, which is that of its key wherever it is shown. */
    String mask(String caller) {
        return shared ? KeyMask.ofDigest(caller) : KeyMask.mask(caller);
    }

    /** The limiter of a caller; the other one for a caller without a budget of its own. */
    RateLimiter limiter(Object key, RateLimiter other) {
        Budget budget = find(caller(key, shared));
        return budget == null || budget.limiter == null ? other : budget.limiter;
    }

    @Nullable
    Budget find(String caller) {
        Budget budget = budgets.get(caller);
        if (budget != null && budget.hasEnded(ticker)) {
            budgets.remove(caller, budget);
            return null;
        }
        return budget;
    }

    /**
     * The members of a caller's budget: tier, or rate and burst, or why it is not applied, and {@code for}: the seconds it
     * still lasts, rounded up.
     */
    Map<String, Object> describe(Object key) {
        return members(caller(key, shared));
    }

    Map<String, Object> members(String caller) {
        Budget budget = find(caller);
        Map<String, Object> members = new LinkedHashMap<>();
        if (budget != null && budget.problem != null) {
            members.put("changeNotApplied", budget.problem);
        } else if (budget != null) {
            ChangeText.read(budget.text, Map.of())
                    .forEach((property, value) -> members.put(property.label(), PropertyText.of(value)));
        }
        if (budget != null && budget.endsAt != null) {
            long seconds = TimeUnit.NANOSECONDS.toSeconds(budget.endsAt - ticker.nanos() - 1) + 1;
            members.put("for", PropertyText.of(Duration.ofSeconds(seconds)));
        }
        return members;
    }

    /** The budgets that this instance cannot apply, by the caller. */
    Map<String, Budget> notApplied() {
        Map<String, Budget> found = new HashMap<>();
        budgets.forEach((caller, budget) -> {
            if (budget.problem != null) {
                found.put(caller, budget);
            }
        });
        return found;
    }

    void put(String caller, Budget budget) {
        budgets.put(caller, budget);
        if (budget.problem == null) {
            suits(caller);
        } else {
            unsuited.put(caller, budget.problem);
        }
    }

    void remove(String caller) {
        budgets.remove(caller);
        suits(caller);
    }

    private void suits(String caller) {
        unsuited.remove(caller);
        warnedOf.remove(caller);
    }

    /** Returns whether there are as many, without those that have ended, which are looked for only then. */
    boolean isFull(int maximum) {
        return budgets.size() >= maximum && size() >= maximum;
    }

    /** Returns how many there are, without those that have ended. */
    int size() {
        budgets.values().removeIf(budget -> budget.hasEnded(ticker));
        return budgets.size();
    }

    /** The different budgets, without those that have ended. */
    Set<String> texts() {
        return budgets.values().stream()
                .filter(budget -> !budget.hasEnded(ticker))
                .map(Budget::text)
                .collect(Collectors.toSet());
    }
}
