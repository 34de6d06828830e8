package io.ratelimited.spring.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import java.time.Duration;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;

/** From what was said about a limit to the limit. */
public final class LimitSettings {

    private static final Duration MAX_MAX_WAIT = Duration.ofDays(365);
    /** Whatever the algorithm of the limit, a tier whose rate is unlimited is one of a rate. */
    private static final LimitProperties EXEMPT = LimitProperties.of(Algorithm.TOKEN_BUCKET);

    private LimitSettings() {}

    /** Where an attribute of a limit is said, for messages. */
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
     * @throws InvalidRateLimitException when they cannot be meant
     */
    static Limit limit(String name, Places places, LimitProperties properties) {
        try {
            return apply(properties, Limit.of(name, algorithm(properties))).build();
        } catch (IllegalArgumentException ex) {
            String problem = String.valueOf(ex.getMessage());
            throw new InvalidRateLimitException(
                    name,
                    places.of(problem.split(" ", 2)[0]), // what is wrong begins with the attribute
                    problem,
                    "Correct it in the annotation or under " + property(name) + ".",
                    ex);
        }
    }

    /**
     * The properties of a tier: what it says itself, and what it inherits.
     *
     * @throws InvalidRateLimitException when it says what belongs to the limit as a whole
     */
    static LimitProperties tierProperties(String name, String place, LimitProperties said, LimitProperties base) {
        String foreign = said.foreignToTier();
        if (foreign != null) {
            throw new InvalidRateLimitException(
                    name,
                    place,
                    "a tier cannot say " + foreign,
                    "Say it for the limit as a whole, under " + property(name) + ".");
        }
        boolean exempt = said.algorithm() == null
                && said.rate() != null
                && said.rate().strip().equalsIgnoreCase("unlimited");
        LimitProperties own = exempt ? EXEMPT.over(said) : said;
        LimitProperties inherited = base.asBaseOf(own);
        return own.over(own.algorithm() == null ? inherited : inherited.suitedTo(own.algorithm()));
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
                    "Remove it, or use TOKEN_BUCKET, GCRA, FIXED_WINDOW or SLIDING_WINDOW.");
        }
    }

    /** Checks that a limit that is said to be in memory does not say in the same place what only Redis does. */
    static void checkBackend(String name, LimitProperties said) {
        if (said.backend() != LimitProperties.Backend.MEMORY) {
            return;
        }
        String attribute = said.onFailure() != null ? "onFailure" : "maxOvershoot";
        String foreign = said.onFailure() != null
                ? "onFailure has no meaning for backend memory: " + kebab(said.onFailure())
                : said.maxOvershoot() != null
                        ? "maxOvershoot has no meaning for backend memory: " + said.maxOvershoot()
                        : null;
        if (foreign != null) {
            throw new InvalidRateLimitException(
                    name, property(name, attribute), foreign, "Remove it, or set backend to redis.");
        }
    }

    /** Checks that a longest wait that one place states for the limit has a meaning. */
    static void checkMaxWait(String name, String place, LimitProperties said, LimitProperties... effective) {
        if (said.maxWait() == null) {
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
                "maxWait has no meaning under policy " + policy + ": " + said.maxWait(),
                "Set the policy to WAIT, or remove maxWait.");
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

    /** The property of a limit: its name stands in brackets unless it is plain. */
    public static String property(String limit) {
        return "rate-limit.limits" + element(limit);
    }

    /** A name in the path of a property. */
    static String element(String name) {
        return name.matches("[a-z0-9-]+") ? "." + name : "[" + name + "]";
    }

    /** The property of an attribute of a limit. */
    public static String property(String limit, String attribute) {
        return property(limit) + "." + DataObjectPropertyName.toDashedForm(attribute);
    }

    /** A constant as it is written in a property. */
    public static String kebab(@Nullable Enum<?> constant) {
        return constant == null ? "" : constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
