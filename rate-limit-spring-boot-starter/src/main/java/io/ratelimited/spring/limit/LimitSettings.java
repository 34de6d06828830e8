package io.ratelimited.spring.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.LimiterFactory;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;

/** Converts the properties of a limit to the limit, and checks them. */
public final class LimitSettings {

    private static final Duration MAX_MAX_WAIT = Duration.ofDays(365);
    private static final Pattern PLAIN_NAME = Pattern.compile("[a-z0-9-]+");
    /** Whatever the algorithm of the limit, a tier whose rate is unlimited is one of a rate. */
    private static final LimitProperties EXEMPT = LimitProperties.of(Map.of("algorithm", Algorithm.TOKEN_BUCKET));

    /** Properties of a limit that some backends read and others do not. */
    public static final List<String> OF_SOME_BACKENDS = List.of("onFailure", "maxOvershoot");

    private LimitSettings() {}

    /** Finds the place that sets an attribute of a limit, for messages. */
    interface Places {

        /**
         * The place of an attribute.
         *
         * @param attribute as the annotation names it; a word that is no attribute stands for the whole limit
         */
        String of(String attribute);
    }

    /**
     * The limit that the properties describe.
     *
     * @throws InvalidRateLimitException when they are invalid
     */
    static Limit limit(String name, Places places, LimitProperties properties) {
        try {
            return apply(properties, Limit.of(name, algorithm(properties))).build();
        } catch (IllegalArgumentException ex) {
            String problem = String.valueOf(ex.getMessage());
            throw new InvalidRateLimitException(
                    name,
                    places.of(problem.split(" ", 2)[0]), // the message begins with the attribute
                    problem,
                    "Correct it in the annotation or under " + property(name) + ".",
                    ex);
        }
    }

    /**
     * The properties of a tier: its own, and those it inherits from the limit.
     *
     * @throws InvalidRateLimitException when it sets a property of the limit as a whole
     */
    static LimitProperties tierProperties(String name, String place, LimitProperties stated, LimitProperties base) {
        String foreign = LimitMerge.foreignToTier(stated);
        if (foreign != null) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "a tier cannot set " + foreign,
                    "Set it for the limit as a whole, under " + property(name) + ".");
        }
        boolean exempt = stated.algorithm() == null
                && stated.rate() != null
                && stated.rate().strip().equalsIgnoreCase("unlimited");
        LimitProperties own = exempt ? LimitMerge.over(EXEMPT, stated) : stated;
        LimitProperties inherited = LimitMerge.asBaseOf(base, own);
        return LimitMerge.over(
                own, own.algorithm() == null ? inherited : LimitMerge.suitedTo(inherited, own.algorithm()));
    }

    /** Checks what the limit itself does not know of. */
    static void check(String name, Places places, LimitProperties all) {
        Duration maxWait = all.maxWait();
        if (maxWait != null && (maxWait.isNegative() || maxWait.compareTo(MAX_MAX_WAIT) > 0)) {
            throw new InvalidRateLimitException(
                    name, places.of("maxWait"), "maxWait must be from 0s to 365d: " + maxWait, "Correct the duration.");
        }
        String overshoot = all.maxOvershoot();
        if (overshoot != null && !overshoot.strip().matches("(100|\\d{1,2}([.]\\d+)?)\\s*%")) {
            throw new InvalidRateLimitException(
                    name,
                    places.of("maxOvershoot"),
                    "maxOvershoot must be from 0% to 100%: \"" + overshoot + "\"",
                    "Write it as in 5%.");
        }
        if (overshoot != null && !algorithm(all).canBeLeased()) {
            throw new InvalidRateLimitException(
                    name,
                    places.of("maxOvershoot"),
                    "maxOvershoot has no meaning for " + algorithm(all) + ", which is always exact: " + overshoot,
                    "Remove it, or use one of " + leasable() + ".");
        }
        if (all.charge() != null && algorithm(all).countsCallsInFlight()) {
            throw new InvalidRateLimitException(
                    name,
                    places.of("charge"),
                    "charge has no meaning for CONCURRENCY, which counts calls in flight: \"" + all.charge() + "\"",
                    "Remove it, or use an algorithm that counts over time.");
        }
    }

    /** Checks that a place that chooses a backend sets nothing that only other backends read. */
    static void checkBackend(String name, LimitProperties own, LimiterFactory factory) {
        if (own.backend() == null) {
            return;
        }
        Map<String, Object> values = own.values();
        for (String property : OF_SOME_BACKENDS) {
            if (values.containsKey(property) && !factory.properties().contains(property)) {
                Object value = values.get(property);
                throw new InvalidRateLimitException(
                        name,
                        property(name, property),
                        property + " has no meaning for backend " + own.backend() + ": "
                                + (value instanceof Enum<?> constant ? kebab(constant) : value),
                        "Remove it, or set backend to redis or another one that reads it.");
            }
        }
    }

    /** The properties without those that a backend does not read. */
    static LimitProperties suitedTo(LimitProperties properties, LimiterFactory factory) {
        Map<String, Object> values = properties.values();
        values.keySet()
                .removeIf(name ->
                        OF_SOME_BACKENDS.contains(name) && !factory.properties().contains(name));
        return LimitProperties.of(values);
    }

    /** Checks that a longest wait that one place states for the limit has a meaning. */
    static void checkMaxWait(String name, String place, LimitProperties stated, LimitProperties... effective) {
        if (stated.maxWait() == null) {
            return;
        }
        Policy policy = Policy.REJECT;
        for (LimitProperties properties : effective) {
            policy = properties.policy() == null ? algorithm(properties).defaultPolicy() : properties.policy();
            if (policy == Policy.WAIT) {
                return;
            }
        }
        throw new InvalidRateLimitException(
                name,
                place,
                "maxWait has no meaning under policy " + policy + ": " + stated.maxWait(),
                "Set the policy to WAIT, or remove maxWait.");
    }

    /** Sets the values of the properties. */
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

    private static String leasable() {
        return Algorithm.all().stream()
                .filter(Algorithm::canBeLeased)
                .map(Algorithm::name)
                .collect(Collectors.joining(", "));
    }

    static Algorithm algorithm(LimitProperties properties) {
        Algorithm algorithm = properties.algorithm();
        return algorithm == null ? Algorithm.TOKEN_BUCKET : algorithm;
    }

    /** The property of a limit: its name stands in brackets unless it is plain. */
    public static String property(String limit) {
        return "rate-limit.limits" + element(limit);
    }

    /** A name in the path of a property. */
    static String element(String name) {
        return PLAIN_NAME.matcher(name).matches() ? "." + name : "[" + name + "]";
    }

    /** The property of an attribute of a limit. */
    static String property(String limit, String attribute) {
        return property(limit) + "." + DataObjectPropertyName.toDashedForm(attribute);
    }

    /** The values that a property of an enum can have, as they are written there. */
    public static List<String> values(Class<?> type) {
        return Stream.of(type.getEnumConstants())
                .filter(constant -> constant != Algorithm.DEFAULT && constant != Policy.DEFAULT)
                .map(constant -> kebab((Enum<?>) constant))
                .toList();
    }

    /** A constant as it is written in a property. */
    public static String kebab(@Nullable Enum<?> constant) {
        return constant == null ? "" : constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
