package io.ratelimited.spring.limit;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.backend.SharedChanges;
import io.ratelimited.spring.text.KeyMask;
import io.ratelimited.spring.text.LogText;
import io.ratelimited.spring.text.PropertyText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.core.convert.ConversionException;

/**
 * Changes limits while they are in use, here and for all instances, and follows the changes of other instances. Thread-safe.
 *
 * <ol>
 *   <li>A limit changes under the lock of this object, which nobody holds while a backend or a listener is asked.
 *   <li>One thread at a time writes the shared change of a limit. Until its answer is there, a listener of the
 *       backend cannot know the author of a change: it leaves the limit to the writer, which first applies its own change in
 *       the name of its author, then those that others have written since.
 *   <li>Reports are added with the lock, so that they are a chain: each begins where the one before it ended.
 * </ol>
 */
public final class LimitChanges {

    private static final LogText.Lines LOG = LogText.lines(LimitChanges.class);

    /** Attempts of a change while others change the same limit: each attempt that fails is a change that another made. */
    private static final int ATTEMPTS = 100;

    /** The version of a change that another one has replaced before its own version was known here. */
    private static final long REPLACED = -2;

    private static final Duration SHORTEST = Duration.ofMillis(1);
    private static final Duration LONGEST = Duration.ofDays(3_650);

    private final ChangeReports reports;
    private final BudgetRegistry budgets;
    private final UnansweredWrites unanswered;
    /** The shared changes that this instance follows. */
    private final Set<SharedChanges> followed = ConcurrentHashMap.newKeySet();
    /** The limits that follow it, by name. */
    private final Map<String, Following> following = new ConcurrentHashMap<>();

    /** A limit whose changes all instances share. */
    private static final class Following {

        private final ConfiguredLimit limit;
        /** Held by the thread that writes. */
        private final ReentrantLock writing = new ReentrantLock();
        /** The callers that a listener has left to the writer; null while nobody writes. Guarded by the changes. */
        private @Nullable Set<String> left;

        private Following(ConfiguredLimit limit) {
            this.limit = limit;
        }
    }

    LimitChanges(ChangeReports reports, Ticker ticker) {
        this.reports = reports;
        this.unanswered = new UnansweredWrites(ticker);
        this.budgets = new BudgetRegistry(ticker, reports, unanswered);
    }

    /**
     * Changes a limit as {@link io.ratelimited.spring.RateLimitOperations#change} describes.
     *
     * @param author the name of the author; null if nobody is known
     */
    public Limit update(ConfiguredLimit limit, LimitProperties changes, @Nullable String author) {
        return change(limit, before -> PreparedChange.of(before, changes), author);
    }

    /**
     * Takes back the changes of a limit, as {@link io.ratelimited.spring.RateLimitOperations#revert} describes.
     *
     * @param author the name of the author; null if nobody is known
     */
    public Limit revert(ConfiguredLimit limit, @Nullable String author) {
        return change(limit, PreparedChange::reverted, author);
    }

    private Limit change(
            ConfiguredLimit limit, Function<ConfiguredLimit, PreparedChange> requested, @Nullable String author) {
        SharedChanges changes = limit.sharedChanges();
        if (changes == null) {
            Limit changed;
            synchronized (this) {
                apply(requested.apply(limit), Scope.INSTANCE, author);
                changed = limit.limit();
            }
            reports.send();
            return changed;
        }
        write(limit, changes, () -> tryChange(limit, changes, requested, author));
        return limit.limit();
    }

    /** @return whether it is written; otherwise another instance was faster */
    private boolean tryChange(
            ConfiguredLimit limit,
            SharedChanges changes,
            Function<ConfiguredLimit, PreparedChange> requested,
            @Nullable String author) {
        ConfiguredLimit.Shared seen;
        String text;
        synchronized (this) {
            follow(limit, changes);
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
        SharedChanges.Written outcome = unanswered.write(
                new UnansweredWrites.Write(limit.name(), null, seen.version(), text, author),
                () -> changes.write(limit.name(), null, seen.version(), text, null, 0));
        synchronized (this) {
            if (outcome == SharedChanges.Written.DONE) {
                SharedChanges.Change newest = newest(limit, changes);
                boolean replaced = !newest.text().equals(text);
                follow(limit, new SharedChanges.Change(replaced ? REPLACED : newest.version(), text, null), author);
            }
            follow(limit, changes);
        }
        return outcome == SharedChanges.Written.DONE;
    }

    /**
     * Writes the shared change of a limit, until no other instance is faster.
     *
     * @param attempt makes an attempt, and returns whether it is written
     */
    private void write(ConfiguredLimit limit, SharedChanges changes, BooleanSupplier attempt) {
        Following own = following.computeIfAbsent(limit.name(), name -> new Following(limit));
        try {
            own.writing.lock();
            try {
                synchronized (this) {
                    own.left = new HashSet<>();
                }
                for (int i = 0; i < ATTEMPTS; i++) {
                    if (attempt.getAsBoolean()) {
                        return;
                    }
                }
            } finally {
                synchronized (this) {
                    Set<String> left = Objects.requireNonNullElse(own.left, Set.of());
                    own.left = null;
                    follow(limit, changes);
                    budgets.follow(limit, changes, left);
                }
                own.writing.unlock();
            }
        } finally {
            reports.send();
        }
        throw new IllegalStateException("limit '" + limit.name()
                + "' was changed on other instances at the same time; nothing was changed here, try again");
    }

    /** Applies a change made here or by another instance, with the lock. */
    private void apply(PreparedChange change, Scope scope, @Nullable String author) {
        ConfiguredLimit limit = change.limit();
        Map<String, Object> before = ChangeReports.members(limit);
        change.apply();
        budgets.limitChanged(limit);
        reports.add(limit.name(), null, before, ChangeReports.members(limit), scope, author);
    }

    /**
     * Gives a caller a budget, as {@link io.ratelimited.spring.RateLimitOperations#override} describes.
     *
     * @param author the name of the author; null if nobody is known
     */
    public void assign(
            ConfiguredLimit limit,
            Object key,
            LimitProperties budget,
            @Nullable Duration lasting,
            @Nullable String author) {
        if (lasting != null && (lasting.compareTo(SHORTEST) < 0 || lasting.compareTo(LONGEST) > 0)) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    "per-caller override of " + limit.place(),
                    "an override lasts from 1 ms to 3650d: " + PropertyText.of(lasting),
                    "Nothing was changed; correct the duration, or omit it for no end.");
        }
        String text;
        synchronized (this) {
            text = budgets.text(limit, budget);
        }
        writeBudget(limit, key, text, lasting, author);
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
            write(limit, changes, () -> tryWriteBudget(limit, changes, caller, text, lasting, author));
            return;
        }
        synchronized (this) {
            Map<String, Object> before = limit.ownBudget(key);
            if (text.isEmpty()) {
                budgets.remove(limit, caller);
            } else {
                Long endsAt = lasting == null ? null : budgets.ticker().nanos() + lasting.toNanos();
                budgets.assign(limit, caller, text, endsAt);
            }
            String mask = KeyMask.mask(CanonicalKey.text(key));
            reports.add(limit.name(), mask, before, limit.ownBudget(key), Scope.INSTANCE, author);
        }
        reports.send();
    }

    private boolean tryWriteBudget(
            ConfiguredLimit limit,
            SharedChanges changes,
            String caller,
            String text,
            @Nullable Duration lasting,
            @Nullable String author) {
        SharedChanges.Change change = changes.find(limit.name(), caller);
        long basedOn = change == null ? 0 : change.version();
        SharedChanges.Written outcome = unanswered.write(
                new UnansweredWrites.Write(limit.name(), caller, basedOn, text, author),
                () -> changes.write(limit.name(), caller, basedOn, text, lasting, BudgetRegistry.MAXIMUM));
        synchronized (this) {
            if (outcome == SharedChanges.Written.DONE) {
                Long endsAt = lasting == null ? null : budgets.ticker().nanos() + lasting.toNanos();
                budgets.follow(limit, caller, new SharedChanges.Change(REPLACED, text, endsAt), author);
            }
            budgets.follow(limit, changes, Set.of(caller));
        }
        if (outcome == SharedChanges.Written.FULL) {
            throw BudgetRegistry.full(limit);
        }
        return outcome == SharedChanges.Written.DONE;
    }

    /** Applies the shared change of a limit, if it is another one than the last that was seen; with the lock. */
    private void follow(ConfiguredLimit limit, SharedChanges changes) {
        SharedChanges.Change newest = newest(limit, changes);
        follow(limit, newest, unanswered.author(limit.name(), null, newest));
    }

    private static SharedChanges.Change newest(ConfiguredLimit limit, SharedChanges changes) {
        SharedChanges.Change change = changes.find(limit.name(), null);
        return change == null ? new SharedChanges.Change(0, "", null) : change;
    }

    private void follow(ConfiguredLimit limit, SharedChanges.Change change, @Nullable String author) {
        if (change.version() == limit.shared().version()) {
            return;
        }
        String text = change.text();
        try {
            apply(PreparedChange.shared(limit, limit.settings().configuration(), text), Scope.FLEET, author);
            limit.shared(new ConfiguredLimit.Shared(change.version(), text, null));
        } catch (InvalidRateLimitException | IllegalArgumentException | ConversionException ex) {
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
        following.computeIfAbsent(limit.name(), name -> new Following(limit));
        if (followed.add(changes)) {
            changes.onChange((name, caller) -> changed(changes, name, caller));
        }
        changed(changes, limit.name(), null);
        Collection<String> callers = changes.callers(limit.name());
        synchronized (this) {
            budgets.begin(limit, changes, callers);
        }
    }

    private void changed(SharedChanges changes, String name, @Nullable String caller) {
        Following own = following.get(name);
        if (own == null || own.limit.sharedChanges() != changes) {
            return;
        }
        synchronized (this) {
            if (own.left == null && caller == null) {
                follow(own.limit, changes);
            } else if (own.left == null) {
                budgets.follow(own.limit, changes, Set.of(caller));
            } else if (caller != null) {
                own.left.add(caller);
            }
        }
        reports.send();
    }

    /**
     * Changes limits where their configuration has changed. To be followed by {@link #followAgain}.
     *
     * @throws InvalidRateLimitException when a limit would not be valid; nothing has changed
     */
    synchronized void configure(
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
        changes.forEach(change -> apply(change, Scope.INSTANCE, author));
    }

    /** Reports changes, and tries those again that all instances share and this one does not apply. Without a lock. */
    void followAgain(Collection<ConfiguredLimit> limits) {
        for (ConfiguredLimit limit : limits) {
            SharedChanges changes = limit.sharedChanges();
            if (changes != null && limit.isWithoutShared()) {
                synchronized (this) {
                    limit.forgetShared();
                }
                changed(changes, limit.name(), null);
            }
        }
        reports.send();
    }

    /** Adds the values of its annotation to a limit, before anybody uses it; nothing is reported. */
    synchronized void complete(ConfiguredLimit limit, List<Layer> configuration) {
        PreparedChange change = PreparedChange.between(limit, configuration);
        if (change != null) {
            change.apply();
            budgets.limitChanged(limit);
        }
    }

    /** Ends every wait under limits. */
    synchronized void close(Collection<ConfiguredLimit> limits) {
        limits.forEach(ConfiguredLimit::close);
    }
}
