package io.ratelimited.spring.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Algorithm.Attribute;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.RateLimitProperties;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;

/** Merges the properties that several places set for one limit. Everything goes by the names of the properties. */
public final class LimitMerge {

    /** These belong to each use of a limit, not to the limit. */
    private static final Set<String> OF_A_USE = Set.of("key", "permits", "when", "charge", "tier", "fallback");

    /** These belong to the limit or to its uses, and a tier cannot set them. */
    private static final List<String> NOT_OF_A_TIER = List.of(
            "key",
            "permits",
            "when",
            "charge",
            "tier",
            "policy",
            "maxWait",
            "fallback",
            "missingKey",
            "tiers",
            "backend");

    private LimitMerge() {}

    /** The properties of a limit, where the application sets its backend for all limits. */
    static LimitProperties merged(RateLimitProperties properties, String name, LimitProperties declared) {
        Map<String, Object> values = ofUse(properties, name, declared).values();
        values.putIfAbsent("backend", properties.backend());
        values.putIfAbsent("onFailure", properties.redis().onFailure());
        return LimitProperties.of(values);
    }

    /**
     * The properties of a use of a limit: properties win over the declaration, and the defaults come last. If the
     * properties choose another algorithm than the declaration, what has no meaning for it is left out.
     *
     * @param declared what the annotation states
     */
    public static LimitProperties ofUse(RateLimitProperties properties, String name, LimitProperties declared) {
        return merged(properties.limit(name), properties.orDefaults(), declared);
    }

    /**
     * The place that sets an attribute of a limit, for messages.
     *
     * @param declared what the annotation states
     * @param place where the annotation stands
     * @param attribute as the annotation names it
     */
    static String place(
            RateLimitProperties properties, String name, LimitProperties declared, String place, String attribute) {
        if (properties.limit(name).values().containsKey(attribute)) {
            return LimitSettings.property(name, attribute);
        }
        return declared.values().containsKey(attribute)
                        || !properties.orDefaults().values().containsKey(attribute)
                ? place
                : "rate-limit.defaults." + DataObjectPropertyName.toDashedForm(attribute);
    }

    static LimitProperties merged(LimitProperties own, LimitProperties defaults, LimitProperties declared) {
        Algorithm algorithm = LimitSettings.algorithm(over(over(own, declared), defaults));
        boolean replaced = algorithm != LimitSettings.algorithm(declared);
        LimitProperties suited = suitedTo(defaults, algorithm);
        return over(
                over(own, replaced ? suitedTo(declared, algorithm) : declared),
                algorithm.queues() ? without(suited, Set.of("policy")) : suited);
    }

    /** The properties of the first place, and those of the second where the first sets none. */
    static LimitProperties over(LimitProperties first, LimitProperties second) {
        if (first.equals(LimitProperties.NONE)) {
            return second;
        }
        if (second.equals(LimitProperties.NONE)) {
            return first;
        }
        Map<String, Object> values = second.values();
        values.putAll(first.values());
        return LimitProperties.of(values);
    }

    private static LimitProperties without(LimitProperties properties, Collection<String> names) {
        Map<String, Object> values = properties.values();
        return values.keySet().removeAll(names) ? LimitProperties.of(values) : properties;
    }

    /** The properties without those that have no meaning for an algorithm. */
    static LimitProperties suitedTo(LimitProperties properties, Algorithm algorithm) {
        if (properties.equals(LimitProperties.NONE)) {
            return properties;
        }
        Set<String> foreign = Stream.of(Attribute.values())
                .filter(attribute -> !algorithm.uses(attribute))
                .map(Attribute::label)
                .collect(Collectors.toSet());
        if (!algorithm.canBeLeased()) {
            foreign.add("maxOvershoot");
        }
        return without(properties, foreign);
    }

    /** The part that defines the limit, without the properties of its uses. */
    static LimitProperties definition(LimitProperties properties) {
        return without(properties, OF_A_USE);
    }

    /** Whether any property defines the limit, not only how it is used. */
    public static boolean isDefinition(LimitProperties properties) {
        return !OF_A_USE.containsAll(properties.values().keySet());
    }

    /** The first property of a tier that only the limit as a whole can have, as text; null if there is none. */
    static @Nullable String foreignToTier(LimitProperties tier) {
        Map<String, Object> values = tier.values();
        return NOT_OF_A_TIER.stream()
                .filter(values::containsKey)
                .map(name -> DataObjectPropertyName.toDashedForm(name) + ": " + values.get(name))
                .findFirst()
                .orElse(null);
    }

    /** The properties that a tier inherits: with a rate of its own it has a burst of its own. */
    static LimitProperties asBaseOf(LimitProperties limit, LimitProperties tier) {
        return without(definition(limit), tier.rate() == null ? Set.of("tiers") : Set.of("tiers", "burst"));
    }

    /** The properties of one state that another state changes, with their new values; null for a removed one. */
    static Map<String, @Nullable Object> difference(LimitProperties before, LimitProperties after) {
        Map<String, Object> old = before.values();
        Map<String, Object> changed = after.values();
        Map<String, @Nullable Object> difference = new HashMap<>();
        old.keySet().forEach(name -> difference.put(name, null));
        difference.putAll(changed);
        difference
                .entrySet()
                .removeIf(entry -> old.getOrDefault(entry.getKey(), Void.TYPE).equals(entry.getValue()));
        return difference;
    }
}
