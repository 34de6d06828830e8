package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.text.LogText;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A change of one limit at run time: checked when it is made up, so that nothing is refused once it is applied. */
final class PreparedChange {

    private static final LogText.Lines LOG = LogText.lines(PreparedChange.class);

    private static final String CORRECT = "Nothing was changed; correct the value and try again.";
    private static final String RESTART = "Nothing was changed; change the configuration and restart.";

    private final ConfiguredLimit limit;
    private final ConfiguredLimit.Settings next;
    private final List<Target> targets = new ArrayList<>();

    /**
     * @param changes the earlier changes at run time, which stay
     * @param request the values to change now
     */
    private PreparedChange(
            ConfiguredLimit limit,
            List<Layer> configuration,
            Map<LimitProperty, Object> changes,
            Map<LimitProperty, ?> request) {
        this.limit = limit;
        List<Layer> layers = new ArrayList<>(List.of(
                new Layer(Layer.Strength.STATED, place(limit), CORRECT, request),
                new Layer(Layer.Strength.KEPT, place(limit), CORRECT, changes),
                limit.atStart().fixed()));
        layers.addAll(configuration);
        ResolvedLimit resolved = new ResolvedLimit(limit.name(), place(limit), layers);
        target(limit.limiter(), resolved, "");
        resolved.tiers().forEach((tier, ofTier) -> {
            RateLimiter limiter = limit.limitersOfTiers().get(tier);
            if (limiter != null) {
                target(limiter, ofTier, " of tier '" + tier + "'");
            }
        });
        Map<LimitProperty, Object> all = new EnumMap<>(LimitProperty.class);
        all.putAll(changes);
        if (request.containsKey(LimitProperty.ALGORITHM)) {
            all.keySet().removeIf(property -> !property.hasMeaningFor(resolved.algorithm()));
        }
        all.putAll(request);
        this.next = new ConfiguredLimit.Settings(configuration, all, resolved);
    }

    /**
     * Changes the given properties.
     *
     * @throws InvalidRateLimitException when that is not a valid limit, or cannot be changed at run time
     */
    static PreparedChange of(ConfiguredLimit limit, Map<LimitProperty, Object> changes) {
        return of(limit, limit.settings().changes(), changes);
    }

    private static PreparedChange of(
            ConfiguredLimit limit, Map<LimitProperty, Object> earlier, Map<LimitProperty, Object> changes) {
        Map<LimitProperty, Object> request = new EnumMap<>(LimitProperty.class);
        request.putAll(changes);
        if (request.containsKey(LimitProperty.TIERS)) {
            try {
                request.put(
                        LimitProperty.TIERS,
                        ChangeText.changed(tiersInUse(limit, earlier), LimitProperty.tiers(request)));
            } catch (IllegalArgumentException ex) {
                throw invalid(limit, String.valueOf(ex.getMessage()));
            }
        }
        return new PreparedChange(limit, limit.settings().configuration(), earlier, request);
    }

    /** Without those that the configuration has got since the start: nobody has their limits before the next one. */
    private static Map<String, Map<LimitProperty, Object>> tiersInUse(
            ConfiguredLimit limit, Map<LimitProperty, Object> changes) {
        Map<LimitProperty, Object> strongest = changes.containsKey(LimitProperty.TIERS)
                ? changes
                : configured(limit, limit.settings().configuration());
        Map<String, Map<LimitProperty, Object>> tiers = new TreeMap<>(LimitProperty.tiers(strongest));
        tiers.keySet().retainAll(limit.limitersOfTiers().keySet());
        return tiers;
    }

    /** Takes back all changes at run time. */
    static PreparedChange reverted(ConfiguredLimit limit) {
        return restored(limit, limit.settings().configuration(), Map.of());
    }

    /** Replaces the configuration and all changes at run time. */
    static PreparedChange restored(
            ConfiguredLimit limit, List<Layer> configuration, Map<LimitProperty, Object> changes) {
        return new PreparedChange(limit, configuration, changes, Map.of());
    }

    /**
     * Applies the change that all instances share, whatever this one has changed before.
     *
     * @param text as of {@link #text}
     * @throws InvalidRateLimitException when that is not a valid limit here
     * @throws IllegalArgumentException when this version of the application cannot read the text
     */
    static PreparedChange shared(ConfiguredLimit limit, List<Layer> configuration, String text) {
        return new PreparedChange(limit, configuration, read(limit, configuration, text), Map.of());
    }

    /**
     * Changes the given properties in the change that all instances share, whether this one applies it or not.
     *
     * @param text as of {@link #text}
     * @throws InvalidRateLimitException when the outcome is not a valid limit here
     * @throws IllegalArgumentException when this version of the application cannot read the text
     */
    static PreparedChange ofShared(ConfiguredLimit limit, String text, Map<LimitProperty, Object> changes) {
        return of(limit, read(limit, limit.settings().configuration(), text), changes);
    }

    private static Map<LimitProperty, Object> read(ConfiguredLimit limit, List<Layer> configuration, String text) {
        return text.isEmpty() ? Map.of() : ChangeText.read(text, configured(limit, configuration));
    }

    private static Map<LimitProperty, Object> configured(ConfiguredLimit limit, List<Layer> configuration) {
        return new ResolvedLimit(limit.name(), limit.place(), configuration).values();
    }

    /** All that is changed at run time, as instances share it; empty if nothing is. */
    String text() {
        return next.changes().isEmpty() ? "" : ChangeText.of(next.changes(), configured(limit, next.configuration()));
    }

    /**
     * Applies the differences between two states of the configuration. A change at run time stays where there is none, and
     * everywhere if all instances share it and it suits the new configuration.
     *
     * @return null if they do not differ
     * @throws InvalidRateLimitException when the outcome is not a valid limit
     */
    static @Nullable PreparedChange between(ConfiguredLimit limit, List<Layer> configuration) {
        Map<LimitProperty, Object> old = configured(limit, limit.settings().configuration());
        Map<LimitProperty, Object> next = configured(limit, configuration);
        if (old.equals(next)) {
            return null;
        }
        Map<String, Object> fixed = fixed(old);
        if (!fixed.equals(fixed(next))) {
            LOG.warn("Rate limit '" + limit.name() + "': a change of properties takes effect at the next startup, from "
                    + fixed + " to " + fixed(next));
        }
        String shared = limit.shared().text();
        if (!shared.isEmpty()) {
            // A restart would apply it to the new configuration, too, and go on without it where it does not suit.
            try {
                return shared(limit, configuration, shared);
            } catch (InvalidRateLimitException | IllegalArgumentException ex) {
                return shared(limit, configuration, "");
            }
        }
        Map<LimitProperty, Object> changes = unaffected(limit.settings().changes(), old, next);
        Map<String, Map<LimitProperty, Object>> tiers =
                unaffectedTiers(limit.settings().changes(), old, next);
        changes.remove(LimitProperty.TIERS);
        if (!tiers.isEmpty()) {
            changes.put(LimitProperty.TIERS, tiers);
        }
        return new PreparedChange(limit, configuration, changes, Map.of());
    }

    /** The changes of properties that the configuration still sets as it did. */
    private static Map<LimitProperty, Object> unaffected(
            Map<LimitProperty, ?> changes, Map<LimitProperty, ?> old, Map<LimitProperty, ?> next) {
        Map<LimitProperty, Object> unaffected = new EnumMap<>(LimitProperty.class);
        unaffected.putAll(changes);
        unaffected.keySet().removeIf(property -> !Objects.equals(old.get(property), next.get(property)));
        return unaffected;
    }

    /** All tiers as the configuration sets them next, with the changes that it does not affect; empty if there is none. */
    private static Map<String, Map<LimitProperty, Object>> unaffectedTiers(
            Map<LimitProperty, Object> changes, Map<LimitProperty, ?> old, Map<LimitProperty, ?> next) {
        Map<String, Map<LimitProperty, Object>> before = LimitProperty.tiers(old);
        Map<String, Map<LimitProperty, Object>> after = LimitProperty.tiers(next);
        Map<String, Map<LimitProperty, Object>> unaffected = new TreeMap<>();
        LimitProperty.tiers(changes).forEach((tier, changed) -> {
            Map<LimitProperty, Object> oldTier = before.get(tier);
            Map<LimitProperty, Object> nextTier = after.get(tier);
            if (oldTier != null && nextTier != null) {
                Map<LimitProperty, Object> own = new EnumMap<>(changed);
                own.entrySet().removeAll(oldTier.entrySet());
                unaffected.put(tier, unaffected(own, oldTier, nextTier));
            }
        });
        unaffected.values().removeIf(Map::isEmpty);
        return unaffected.isEmpty() ? Map.of() : ChangeText.changed(after, unaffected);
    }

    /** Returns the values that are read only once: some properties, also of tiers, and the names of tiers. */
    private static Map<String, Object> fixed(Map<LimitProperty, Object> values) {
        Map<String, Object> fixed = new TreeMap<>();
        addFixed(values, LimitProperty::label, fixed);
        Map<String, Map<LimitProperty, Object>> tiers = LimitProperty.tiers(values);
        fixed.put(LimitProperty.TIERS.label(), tiers.keySet());
        tiers.forEach((tier, own) -> addFixed(own, property -> LimitProperty.ofTier(tier, property.label()), fixed));
        return fixed;
    }

    private static void addFixed(
            Map<LimitProperty, Object> values, Function<LimitProperty, String> name, Map<String, Object> fixed) {
        values.forEach((property, value) -> {
            if (!property.isChangeable()) {
                fixed.put(name.apply(property), value);
            }
        });
    }

    private void target(RateLimiter limiter, ResolvedLimit resolved, String whose) {
        limit.blockUses().require(resolved, " " + CORRECT);
        Limit target = limit.blockUses().suited(resolved.limit());
        requireKind(limit, limiter.limit().algorithm(), target.algorithm());
        Backends.requireSupport(limit.backend(), resolved, target, CORRECT);
        limit.fixedPermits().requireRoom(target, whose, place(limit), CORRECT);
        targets.add(new Target(limiter, target));
    }

    private static void requireKind(ConfiguredLimit limit, Algorithm from, Algorithm to) {
        if (!from.canChangeTo(to)) {
            throw invalid(
                    limit,
                    "algorithm cannot change from " + from + " to " + to
                            + " at run time: "
                            + (from.countsCallsInFlight() && to.countsCallsInFlight()
                                    ? "ADAPTIVE belongs to one process and has no keys"
                                    : "an algorithm that counts calls in flight cannot replace one that counts over time, or the reverse"));
        }
    }

    private static InvalidRateLimitException invalid(ConfiguredLimit limit, String problem) {
        return new InvalidRateLimitException(limit.name(), place(limit), problem, RESTART);
    }

    private static String place(ConfiguredLimit limit) {
        return "change at run time, of " + limit.place();
    }

    ConfiguredLimit limit() {
        return limit;
    }

    /** Changes the limit and its tiers, as far as they differ from those in use. */
    void apply() {
        targets.stream()
                .filter(target -> !target.limit.equals(target.limiter.limit()))
                .forEach(target -> target.limiter.update(target.limit));
        limit.settings(next);
    }

    /** A limiter, of the limit or of a tier, and the limit that it shall apply. */
    private record Target(RateLimiter limiter, Limit limit) {}
}
