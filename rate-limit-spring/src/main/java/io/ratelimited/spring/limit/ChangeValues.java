package io.ratelimited.spring.limit;

import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.text.PropertyText;
import io.ratelimited.spring.text.SimilarName;
import java.util.HashMap;
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
     * The values of a change of a limit, or of one of its tiers.
     *
     * @throws IllegalArgumentException when there is none, one is unknown, or one cannot be read
     */
    public static LimitProperties ofLimit(String limit, LimitChange change) {
        Map<String, String> texts = new TreeMap<>(change.values());
        String tier = texts.remove(TIER);
        if (texts.isEmpty()) {
            throw new IllegalArgumentException(
                    "The change of rate limit '" + limit + "' sets nothing, but must set some of " + OF_LIMIT);
        }
        LimitProperties values = read(limit, texts, OF_LIMIT);
        return tier == null ? values : LimitProperties.of(Map.of("tiers", Map.of(tier, values)));
    }

    /**
     * The values of a caller's override.
     *
     * @throws IllegalArgumentException when one is unknown, or cannot be read
     */
    public static LimitProperties ofCaller(String limit, LimitChange change) {
        return read(limit, change.values(), OF_CALLER);
    }

    private static LimitProperties read(String limit, Map<String, String> texts, Set<String> known) {
        Map<String, Object> values = new HashMap<>();
        texts.forEach((name, text) -> {
            if (!known.contains(name)) {
                throw new IllegalArgumentException("The change of rate limit '" + limit + "' sets " + name
                        + ", but can only set " + known + SimilarName.hint(name, known));
            }
            LimitProperty property = LimitProperty.ofKebab(name);
            try {
                values.put(property.label(), PropertyText.read(text, property.type()));
            } catch (IllegalArgumentException ex) {
                throw new IllegalArgumentException(
                        "The change of rate limit '" + limit + "' is invalid: " + name + " is \"" + text + "\": "
                                + ex.getMessage(),
                        ex);
            }
        });
        return LimitProperties.of(values);
    }
}
