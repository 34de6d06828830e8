package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.internals.text.PropertyText;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The values of a limit that one place sets.
 *
 * @param strength handling of values that have no meaning
 * @param place the place, for messages: a path of properties if it begins with {@code rate-limit.}; empty for values that
 *     the application sets for all limits, whose mistakes are reported at the place of the limit
 * @param remedy the remedy for an invalid value
 * @param values those that are set; null for a property that has its default again, whatever weaker layers set
 */
record Layer(Strength strength, String place, String remedy, Map<LimitProperty, ?> values) {

    /** The place of the defaults. */
    static final String DEFAULTS = "rate-limit.defaults";
    /** The position of the annotation in the layers of the configuration. */
    static final int ANNOTATION = 1;

    /** Handling of a value that has no meaning for the algorithm or the policy of the limit. */
    enum Strength {
        /** An operator has stated it for this limit: an error, unless a stronger layer has chosen another algorithm. */
        STATED,
        /** As {@link #STATED}, but the policy was another when it was stated. */
        KEPT,
        /** Code has stated it for its own algorithm: an error for that, left out for another. */
        DECLARED,
        /** It is meant for many limits: left out. */
        DEFAULT
    }

    /**
     * The layers of the configuration, the strongest first: the properties of the limit, the annotation, the defaults, and
     * the values that the application sets for all limits.
     *
     * @param annotation the layer of {@link #ofAnnotation}
     */
    static List<Layer> ofConfiguration(LimitSettings properties, String name, Layer annotation) {
        Map<LimitProperty, Object> all = new EnumMap<>(LimitProperty.class);
        all.put(LimitProperty.BACKEND, properties.backend());
        all.put(LimitProperty.ON_FAILURE, properties.onFailure());
        String remedy = annotation.remedy;
        return List.of(
                new Layer(Strength.STATED, PropertyText.limit(name), remedy, properties.limit(name)),
                annotation,
                new Layer(Strength.DEFAULT, DEFAULTS, remedy, properties.defaults()),
                new Layer(Strength.DEFAULT, "", remedy, Map.copyOf(all)));
    }

    /**
     * Returns the layer of an annotation.
     *
     * @param place the place where it stands
     */
    static Layer ofAnnotation(String name, String place, Map<LimitProperty, ?> declared) {
        String remedy = "Correct it in the annotation or under " + PropertyText.limit(name) + ". [RL-103]";
        return new Layer(Strength.DECLARED, place, remedy, declared);
    }

    /** The place of a property. */
    String place(LimitProperty property) {
        return isPath() ? place + "." + property.kebab() : place;
    }

    /** The place of a tier. */
    String tierPlace(String tier) {
        return isPath() ? place + ".tiers" + PropertyText.element(tier) : place + ", tier '" + tier + "'";
    }

    private boolean isPath() {
        return place.startsWith("rate-limit.");
    }

    /**
     * Returns whether values that have no meaning for the algorithm of the limit are left out.
     *
     * @param fromHere this layer and the weaker ones
     */
    boolean leavesOut(Algorithm algorithm, List<Layer> fromHere) {
        return switch (strength) {
            case STATED, KEPT -> algorithm != algorithm(fromHere);
            case DECLARED -> algorithm != algorithm(List.of(this));
            case DEFAULT -> true;
        };
    }

    /** The algorithm that the strongest layer with one sets. */
    static Algorithm algorithm(List<Layer> layers) {
        for (Layer layer : layers) {
            if (layer.values.get(LimitProperty.ALGORITHM) instanceof Algorithm algorithm) {
                return algorithm;
            }
        }
        return Algorithm.TOKEN_BUCKET;
    }
}
