package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** From what was said about a limit to the limit. */
final class LimitSettings {

    private LimitSettings() {}

    /**
     * The limit that the properties describe.
     *
     * @throws InvalidRateLimitException when they cannot be meant
     */
    static Limit limit(String name, String place, LimitProperties properties) {
        try {
            return apply(properties, Limit.of(name, algorithm(properties))).build();
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    String.valueOf(ex.getMessage()),
                    "Correct it in the annotation or under rate-limit.limits." + propertyName(name) + ".",
                    ex);
        }
    }

    /** The limit of a tier that the properties describe. */
    static Limit tier(String name, String place, String tier, LimitProperties properties) {
        return limit(name, place + ", tier '" + tier + "'", properties);
    }

    /** Sets what the properties say. */
    static Limit.Builder apply(LimitProperties properties, Limit.Builder builder) {
        set(properties.rate(), builder::rate);
        set(properties.burst(), builder::burst);
        set(properties.warmup(), builder::warmup);
        set(properties.maxConcurrent(), builder::maxConcurrent);
        set(properties.zone(), builder::zone);
        set(properties.slots(), builder::slots);
        set(properties.coldFactor(), builder::coldFactor);
        set(properties.lease(), builder::lease);
        set(properties.maxWaiting(), builder::maxWaiting);
        return builder;
    }

    private static <T> void set(@Nullable T value, Consumer<T> setter) {
        if (value != null) {
            setter.accept(value);
        }
    }

    static Algorithm algorithm(LimitProperties properties) {
        Algorithm algorithm = properties.algorithm();
        return algorithm == null ? Algorithm.TOKEN_BUCKET : algorithm;
    }

    /** The name as it is written in a property: in brackets unless it is plain. */
    static String propertyName(String limit) {
        boolean plain = limit.matches("[a-z0-9-]+");
        return plain ? limit : "[" + limit + "]";
    }

    /** A constant as it is written in a property. */
    static String kebab(@Nullable Enum<?> constant) {
        return constant == null ? "" : constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
