package io.ratelimited.spring.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.LimiterFactory;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitProperties;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.util.ClassUtils;

/** Makes limits from what annotations and properties say about them. */
public final class NamedLimitFactory {

    private static final Log LOG = LogFactory.getLog(NamedLimitFactory.class);

    private static final String REMEDY = "Add the dependency io.ratelimited:rate-limit-redis, which brings"
            + " Lettuce, and set rate-limit.redis.url, such as redis://localhost:6379; or set backend: memory.";

    private final Map<LimitProperties.Backend, LimiterFactory> factories = new EnumMap<>(LimitProperties.Backend.class);

    public NamedLimitFactory(List<LimiterFactory> factories) {
        factories.forEach(factory -> this.factories.putIfAbsent(factory.backend(), factory));
    }

    /**
     * What is said about a limit or a use of it: the properties win over what is declared, the defaults come last. What
     * was said for another algorithm than the one that the properties choose is left out.
     */
    public static LimitProperties merged(RateLimitProperties properties, String name, LimitProperties declared) {
        LimitProperties backend =
                LimitProperties.of(properties.backend(), properties.redis().onFailure());
        return merged(properties.limit(name), properties.orDefaults(), declared).over(backend);
    }

    private static LimitProperties merged(LimitProperties own, LimitProperties defaults, LimitProperties declared) {
        Algorithm algorithm = LimitSettings.algorithm(own.over(declared).over(defaults));
        boolean replaced = algorithm != LimitSettings.algorithm(declared);
        LimitProperties suited = defaults.suitedTo(algorithm);
        return own.over(replaced ? declared.suitedTo(algorithm) : declared)
                .over(algorithm.queues() ? suited.withoutPolicy() : suited);
    }

    /**
     * Makes a limit.
     *
     * @param declaredAt where it is declared
     * @param declared what is said about it there
     * @param known the names of other limits, to guess from
     * @throws InvalidRateLimitException when it cannot be meant
     */
    public NamedLimit create(
            String name,
            String declaredAt,
            LimitProperties declared,
            RateLimitProperties properties,
            Set<String> known) {
        LimitProperties own = properties.limit(name);
        String ownPlace = LimitSettings.property(name);
        String place = own.equals(LimitProperties.NONE) || declaredAt.equals(ownPlace)
                ? declaredAt
                : declaredAt + " with " + ownPlace;
        LimitProperties all = merged(properties, name, declared);
        requireDefined(name, place, all, properties, known);
        LimitSettings.Places places = attribute -> {
            if (own.says(attribute)) {
                return LimitSettings.property(name, attribute);
            }
            return declared.says(attribute) || !properties.orDefaults().says(attribute)
                    ? place
                    : "rate-limit.defaults." + DataObjectPropertyName.toDashedForm(attribute);
        };
        LimitSettings.check(name, places, all);
        LimitSettings.checkBackend(name, own);
        LimitSettings.checkMaxWait(name, LimitSettings.property(name, "maxWait"), own, all);
        LimitSettings.checkMaxWait(
                name, declaredAt, declared, all, merged(LimitProperties.NONE, properties.orDefaults(), declared));
        RateLimiter limiter = limiter(name, places.of("backend"), LimitSettings.limit(name, places, all), "", all);
        Map<String, RateLimiter> tiers = new TreeMap<>();
        if (all.tiers() != null) {
            all.tiers().forEach((tier, said) -> {
                String tierPlace = place + ", tier '" + tier + "'";
                LimitSettings.Places ofTierPlaces = attribute -> said.says(attribute)
                        ? LimitSettings.property(name) + ".tiers" + LimitSettings.element(tier) + "."
                                + DataObjectPropertyName.toDashedForm(attribute)
                        : tierPlace;
                LimitProperties ofTier = LimitSettings.tierProperties(name, tierPlace, said, all);
                LimitSettings.check(name, ofTierPlaces, ofTier);
                tiers.put(
                        tier, limiter(name, tierPlace, LimitSettings.limit(name, ofTierPlaces, ofTier), tier, ofTier));
            });
        }
        if (LimitSettings.algorithm(declared) != LimitSettings.algorithm(all)
                && !declared.equals(declared.suitedTo(LimitSettings.algorithm(all)))) {
            LOG.info("Rate limit '" + name + "': what " + declaredAt + " says for "
                    + LimitSettings.algorithm(declared) + " alone is ignored, since the properties make it "
                    + LimitSettings.algorithm(all));
        }
        return new NamedLimit(name, declaredAt, declared.definition(), all, limiter, tiers);
    }

    private static void requireDefined(
            String name, String place, LimitProperties all, RateLimitProperties properties, Set<String> others) {
        if (all.rate() != null || all.maxConcurrent() != null) {
            return;
        }
        Set<String> known = new TreeSet<>(others);
        if (properties.limits() != null) {
            known.addAll(properties.limits().keySet());
        }
        String missing = LimitSettings.algorithm(all).countsCallsInFlight() ? "maxConcurrent" : "rate";
        throw new InvalidRateLimitException(
                name,
                place,
                "no limit of this name is defined: neither an annotation nor a property says its " + missing
                        + SimilarName.hint(name, known),
                "Say it in the annotation or as " + LimitSettings.property(name) + "."
                        + (missing.equals("rate") ? "rate" : "max-concurrent") + ", or correct the name.");
    }

    private RateLimiter limiter(String name, String place, Limit limit, String tier, LimitProperties all) {
        LimitProperties.Backend backend = all.backend() == null ? LimitProperties.Backend.MEMORY : all.backend();
        LimiterFactory factory = factories.get(backend);
        if (factory == null) {
            throw new InvalidRateLimitException(
                    name, place, "backend is " + LimitSettings.kebab(backend) + ", but " + missing(), REMEDY);
        }
        try {
            return factory.create(limit, tier, all);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    name, place, String.valueOf(ex.getMessage()), "Correct it, or choose another backend.", ex);
        }
    }

    /**
     * Checks that the backend is there, before any limit is.
     *
     * @throws InvalidRateLimitException when nothing provides it
     */
    public void requireBackend(LimitProperties.Backend backend) {
        if (backend != LimitProperties.Backend.MEMORY && !factories.containsKey(backend)) {
            throw new InvalidRateLimitException(
                    "Property rate-limit.backend is " + LimitSettings.kebab(backend) + ", but " + missing(), REMEDY);
        }
    }

    private static String missing() {
        if (!ClassUtils.isPresent("io.ratelimited.redis.RedisBackend", null)) {
            return "the module rate-limit-redis is not on the class path";
        }
        if (!ClassUtils.isPresent("io.lettuce.core.RedisClient", null)) {
            return "its client Lettuce (io.lettuce:lettuce-core) is not on the class path";
        }
        return "nothing provides it";
    }
}
