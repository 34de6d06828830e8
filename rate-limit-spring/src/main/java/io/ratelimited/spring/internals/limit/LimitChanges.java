package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.backend.SharedChanges;
import io.ratelimited.spring.internals.text.KeyMask;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.springframework.util.StringUtils;

/**
 * Changes limits while they are in use, here and for all instances, and follows the changes of other instances. Thread-safe.
 *
 * <ol>
 *   <li>A limit changes under the lock of this object, which nobody holds while a backend or a listener is asked, or while a call
 *       goes on that a change lets go ({@link #exclude}).
 *   <li>A change for all instances is in force when it is taken from the backend, whoever has made it: in the order in which
 *       changes were made, and in the name of its author. The thread that makes it takes it before it returns.
 *   <li>Reports are added with the lock, so that they are a chain: each begins where the one before it ended.
 * </ol>
 */
public final class LimitChanges {

    private static final LogText.Lines LOG = LogText.lines(LimitChanges.class);

    /** Attempts of a change while others change the same limit: each attempt that fails is a change that another made. */
    private static final int ATTEMPTS = 100;

    private static final Duration SHORTEST = Duration.ofMillis(1);
    private static final Duration LONGEST = Duration.ofDays(3_650);

    private final ChangeReports reports;
    private final BudgetRegistry budgets;
    /** The shared changes that this instance follows, and what takes the next of them. Changed with its own lock. */
    private final Map<SharedChanges, Supplier<SharedChanges.@Nullable Change>> followed = new ConcurrentHashMap<>();
    /** The limits that follow them, by name. */
    private final Map<String, ConfiguredLimit> following = new ConcurrentHashMap<>();

    LimitChanges(ChangeReports reports, Ticker ticker) {
        this.reports = reports;
        this.budgets = new BudgetRegistry(ticker, reports);
    }

    /**
     * Changes a limit as {@link io.ratelimited.spring.RateLimitOperations#change} describes.
     *
     * @param author the name of the author; null if nobody is known
     */
    public Limit update(ConfiguredLimit limit, Map<LimitProperty, Object> changes, @Nullable String author) {
        return change(
                limit, () -> PreparedChange.of(limit, changes), earlier -> changed(limit, earlier, changes), author);
    }

    /**
     * Takes back the changes of a limit, as {@link io.ratelimited.spring.RateLimitOperations#revert} describes.
     *
     * @param author the name of the author; null if nobody is known
     */
    public Limit revert(ConfiguredLimit limit, @Nullable String author) {
        return change(limit, () -> PreparedChange.reverted(limit), earlier -> "", author);
    }

    /**
     * Changes a limit.
     *
     * @param here the change of a limit that is this instance's own
     * @param next makes the text of the change that all instances share from the one before
     */
    private Limit change(
            ConfiguredLimit limit, Supplier<PreparedChange> here, UnaryOperator<String> next, @Nullable String author) {
        SharedChanges changes = limit.sharedChanges();
        if (changes == null) {
            Limit changed = exclude(() -> {
                apply(here.get(), Scope.INSTANCE, author, null);
                return limit.limit();
            });
            reports.send();
            return changed;
        }
        write(limit, changes, () -> {
            SharedChanges.Change present = changes.find(limit.name(), null);
            String text = exclude(() -> next.apply(present == null ? "" : present.text()));
            return changes.write(limit.name(), null, present == null ? 0 : present.version(), text, null, author, 0);
        });
        return limit.limit();
    }

    /**
     * Changes properties in the change that all instances share. This instance need not apply that one, but it must be able to
     * apply the result, which has all of its other values.
     *
     * @param text as of {@link PreparedChange#text}
     */
    private static String changed(ConfiguredLimit limit, String text, Map<LimitProperty, Object> changes) {
        try {
            return PreparedChange.ofShared(limit, text, changes).text();
        } catch (InvalidRateLimitException | IllegalArgumentException ex) {
            if (limit.notApplied() == null) {
                throw ex;
            }
            String problem = StringUtils.trimTrailingCharacter(String.valueOf(ex.getMessage()), '.');
            throw new InvalidRateLimitException(
                    limit.name(),
                    limit.place(),
                    "this instance does not apply the change for all instances, and could not apply it with this"
                            + " change either: " + problem,
                    "Nothing was changed; correct the other values in the same change, use an instance that applies"
                            + " them, or revert all changes of the limit.",
                    ex);
        }
    }

    /** Makes a shared change of a limit, until no other instance or thread is faster. */
    private void write(ConfiguredLimit limit, SharedChanges changes, Supplier<SharedChanges.Written> attempt) {
        try {
            for (int i = 0; i < ATTEMPTS; i++) {
                SharedChanges.Written outcome = attempt.get();
                take(changes);
                if (outcome == SharedChanges.Written.FULL) {
                    throw BudgetRegistry.full(limit);
                }
                if (outcome == SharedChanges.Written.DONE) {
                    return;
                }
            }
        } finally {
            reports.send();
        }
        throw new IllegalStateException("limit '" + limit.name()
                + "' was changed on other instances at the same time; nothing was changed here, try again");
    }

    /** Applies the shared changes that this instance has not applied yet. */
    private void take(SharedChanges changes) {
        exclude(() -> takeUntaken(changes));
    }

    private void takeUntaken(SharedChanges changes) {
        Supplier<SharedChanges.@Nullable Change> untaken = followed.get(changes);
        if (untaken == null) {
            return;
        }
        for (SharedChanges.Change next = untaken.get(); next != null; next = untaken.get()) {
            ConfiguredLimit limit = following.get(next.limit());
            if (limit == null || limit.sharedChanges() != changes) {
                continue;
            }
            if (next.caller() == null) {
                follow(limit, next);
            } else {
                budgets.follow(limit, next.caller(), next);
            }
        }
    }

    /** Applies a change made here or by another instance, with the lock. */
    private void apply(PreparedChange change, Scope scope, @Nullable String author, @Nullable Instant madeAt) {
        ConfiguredLimit limit = change.limit();
        Map<String, Object> before = ChangeReports.members(limit);
        change.apply();
        budgets.limitChanged(limit);
        reports.add(limit.name(), null, before, ChangeReports.members(limit), scope, author, madeAt);
    }

    /**
     * Gives a caller a budget, as {@link io.ratelimited.spring.RateLimitOperations#override} describes.
     *
     * @param author the name of the author; null if nobody is known
     */
    public void assign(
            ConfiguredLimit limit,
            Object key,
            Map<LimitProperty, Object> budget,
            @Nullable Duration lasting,
            @Nullable String author) {
        if (lasting != null && (lasting.compareTo(SHORTEST) < 0 || lasting.compareTo(LONGEST) > 0)) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    "per-caller override of " + limit.place(),
                    "an override lasts from 1 ms to 3650d: " + PropertyText.of(lasting),
                    "Nothing was changed; correct the duration, or omit it for no end.");
        }
        writeBudget(limit, key, exclude(() -> budgets.text(limit, budget)), lasting, author);
    }

    /**
     * Ends the budget of a caller, as {@link io.ratelimited.spring.RateLimitOperations#removeOverride} describes.
     *
     * @param author the name of the author; null if nobody is known
     */
    public void revoke(ConfiguredLimit limit, Object key, @Nullable String author) {
        writeBudget(limit, key, "", null, author);
    }

    private void writeBudget(
            ConfiguredLimit limit, Object key, String text, @Nullable Duration lasting, @Nullable String author) {
        SharedChanges changes = limit.sharedChanges();
        String caller = CallerBudgets.caller(key, changes != null);
        if (changes != null) {
            write(limit, changes, () -> {
                SharedChanges.Change present = changes.find(limit.name(), caller);
                long basedOn = present == null ? 0 : present.version();
                return changes.write(limit.name(), caller, basedOn, text, lasting, author, BudgetRegistry.MAXIMUM);
            });
            return;
        }
        exclude(() -> {
            Map<String, Object> before = limit.ownBudget(key);
            if (text.isEmpty()) {
                limit.budgets().remove(caller);
            } else {
                Long endsAt = lasting == null ? null : budgets.ticker().nanos() + lasting.toNanos();
                budgets.assign(limit, caller, text, endsAt);
            }
            String mask = KeyMask.mask(CanonicalKey.text(key));
            reports.add(limit.name(), mask, before, limit.ownBudget(key), Scope.INSTANCE, author, null);
        });
        reports.send();
    }

    /**
     * Resets keys, as {@link io.ratelimited.spring.RateLimitOperations#reset} describes.
     *
     * @param keys with one text; the report has the first. Only null for the calls without a key
     * @param author the name of the author; null if nobody is known
     */
    public void reset(ConfiguredLimit limit, Set<Object> keys, @Nullable String author) {
        Object first = keys.iterator().next();
        String mask = first == null ? null : KeyMask.mask(CanonicalKey.text(first));
        boolean made = false;
        try {
            keys.forEach(limit::reset);
            made = true;
        } finally {
            reports.reset(limit.name(), mask, limit.scope(), author, made);
        }
    }

    /** Applies a shared change of a limit, if it is another one than the last that was seen; with the lock. */
    private void follow(ConfiguredLimit limit, SharedChanges.Change change) {
        if (change.version() == limit.shared().version()) {
            return;
        }
        String text = change.text();
        try {
            PreparedChange prepared =
                    PreparedChange.shared(limit, limit.settings().configuration(), text);
            apply(prepared, Scope.FLEET, change.author(), change.madeAt());
            limit.shared(new ConfiguredLimit.Shared(change.version(), text, null));
        } catch (InvalidRateLimitException | IllegalArgumentException ex) {
            String problem = String.valueOf(ex.getMessage());
            LOG.warn("Rate limit '" + limit.name() + "' stays as it is on this instance, which cannot apply the"
                    + " change that all instances share (" + LogText.escaped(text) + "): " + problem);
            limit.shared(
                    new ConfiguredLimit.Shared(change.version(), limit.shared().text(), problem));
        }
    }

    /** Follows the shared changes of a limit, from now on. */
    void follow(ConfiguredLimit limit) {
        SharedChanges changes = limit.sharedChanges();
        if (changes == null) {
            return;
        }
        synchronized (followed) {
            if (!followed.containsKey(changes)) {
                followed.put(changes, changes.follow(() -> {
                    take(changes);
                    reports.send();
                }));
            }
        }
        exclude(() -> {
            take(changes);
            following.put(limit.name(), limit);
            followNewest(limit, changes);
            budgets.begin(limit, changes);
        });
        reports.send();
    }

    private void followNewest(ConfiguredLimit limit, SharedChanges changes) {
        SharedChanges.Change newest = changes.find(limit.name(), null);
        if (newest != null) {
            follow(limit, newest);
        }
    }

    /**
     * Changes limits where their configuration has changed. To be followed by {@link #followAgain}.
     *
     * @throws InvalidRateLimitException when a limit would not be valid; nothing has changed
     */
    void configure(
            Collection<ConfiguredLimit> limits,
            Function<ConfiguredLimit, List<Layer>> configuration,
            @Nullable String author) {
        exclude(() -> configureAll(limits, configuration, author));
    }

    private void configureAll(
            Collection<ConfiguredLimit> limits,
            Function<ConfiguredLimit, List<Layer>> configuration,
            @Nullable String author) {
        List<PreparedChange> changes = new ArrayList<>();
        for (ConfiguredLimit limit : limits) {
            PreparedChange change = PreparedChange.between(limit, configuration.apply(limit));
            if (change != null) {
                changes.add(change);
            }
        }
        // Also of a limit that all instances share: the others have a configuration of their own.
        changes.forEach(change -> apply(change, Scope.INSTANCE, author, null));
    }

    /** Reports changes, and tries those again that all instances share and this one does not apply. Without a lock. */
    void followAgain(Collection<ConfiguredLimit> limits) {
        for (ConfiguredLimit limit : limits) {
            SharedChanges changes = limit.sharedChanges();
            if (changes != null && limit.isWithoutShared()) {
                exclude(() -> {
                    take(changes);
                    limit.forgetShared();
                    followNewest(limit, changes);
                });
            }
        }
        reports.send();
    }

    /** Adds the values of its annotation to a limit, before anybody uses it; nothing is reported. */
    void complete(ConfiguredLimit limit, List<Layer> configuration) {
        exclude(() -> {
            PreparedChange change = PreparedChange.between(limit, configuration);
            if (change != null) {
                change.apply();
                budgets.limitChanged(limit);
            }
        });
    }

    /** Replaces the configuration and the changes of a limit, for tests; nothing is reported. */
    void restore(ConfiguredLimit limit, List<Layer> configuration, Map<LimitProperty, Object> changes) {
        exclude(() -> {
            PreparedChange.restored(limit, configuration, changes).apply();
            budgets.limitChanged(limit);
        });
    }

    /** Runs an action while no other thread changes a limit. Calls that it lets go continue when it has returned, without the lock. */
    void exclude(Runnable action) {
        exclude(() -> {
            action.run();
            return action;
        });
    }

    private <T> T exclude(Supplier<T> action) {
        return JointLocks.postponing(() -> {
            synchronized (this) {
                return action.get();
            }
        });
    }

    /** Ends every wait under limits. Without the lock: callers continue here. */
    void close(Collection<ConfiguredLimit> limits) {
        limits.forEach(ConfiguredLimit::close);
    }
}
