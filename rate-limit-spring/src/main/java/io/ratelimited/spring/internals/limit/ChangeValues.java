package io.ratelimited.spring.internals.limit;

import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.internals.text.SimilarName;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Reads the texts of a change as values of properties. */
public final class ChangeValues {

    /** The tier whose values change, or the plan of a caller. */
    private static final String TIER = LimitProperty.TIER.kebab();

    /** All but the tiers, of which a change names one. */
    private static final Set<String> OF_LIMIT = Stream.of(LimitProperty.values())
            .filter(property -> property.isChangeable() && property != LimitProperty.TIERS)
            .map(LimitProperty::kebab)
            .collect(Collectors.toCollection(TreeSet::new));

    private static final Set<String> OF_CALLER = new TreeSet<>(Set.of(TIER, "rate", "burst"));

    private ChangeValues() {}

    /**
     * The values of a change of a limit, or of the tier that they name.
     *
     * @throws IllegalArgumentException when there is none, one is unknown, or one cannot be read
     */
    public static Map<LimitProperty, Object> ofLimit(String limit, LimitChange change) {
        Map<String, String> texts = new TreeMap<>(change.values());
        String tier = texts.remove(TIER);
        if (texts.isEmpty()) {
            throw new IllegalArgumentException(
                    "The change of rate limit '" + limit + "' sets nothing, but must set some of " + OF_LIMIT);
        }
        Map<LimitProperty, Object> values = read(limit, texts, OF_LIMIT);
        if (tier != null) {
            values.put(LimitProperty.TIER, tier);
        }
        return values;
    }

    /**
     * The values of a caller's override.
     *
     * @throws IllegalArgumentException when one is unknown, or cannot be read
     */
    public static Map<LimitProperty, Object> ofCaller(String limit, LimitChange change) {
        return read(limit, change.values(), OF_CALLER);
    }

    private static Map<LimitProperty, Object> read(String limit, Map<String, String> texts, Set<String> known) {
        for (String name : texts.keySet()) {
            LimitProperty property = LimitProperty.of(name.substring(name.lastIndexOf('.') + 1));
            if (property == null || !known.contains(property.kebab())) {
                throw new IllegalArgumentException("The change of rate limit '" + limit + "' sets " + name
                        + ", but can only set " + known + SimilarName.hint(name, known));
            }
        }
        try {
            return LimitProperty.read(texts);
        } catch (IllegalArgumentException ex) {
            throw new IllegalArgumentException(
                    "The change of rate limit '" + limit + "' is invalid: " + ex.getMessage(), ex);
        }
    }
}
