package io.ratelimited.spring.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.LimiterFactory;
import io.ratelimited.spring.RateLimitProperties;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.util.ClassUtils;

/** Makes limits from annotations and properties. */
final class NamedLimitFactory {

    private static final Log LOG = LogFactory.getLog(NamedLimitFactory.class);

    private static final String REDIS_REMEDY = "Add the dependency io.ratelimited:rate-limit-redis, which brings"
            + " Lettuce, and set rate-limit.redis.url, such as redis://localhost:6379; or set backend: memory.";

    private final Map<String, LimiterFactory> factories = new TreeMap<>();

    NamedLimitFactory(List<LimiterFactory> factories) {
        factories.forEach(factory -> this.factories.putIfAbsent(factory.backend(), factory));
    }

    /**
     * Makes a limit.
     *
     * @param declaredAt where it is declared
     * @param declared the properties that are set there
     * @param definition those of them that define the limit
     * @param known the names of other limits, to guess from
     * @throws InvalidRateLimitException when it is invalid
     */
    ConfiguredLimit create(
            String name,
            String declaredAt,
            LimitProperties declared,
            LimitProperties definition,
            RateLimitProperties properties,
            Set<String> known) {
        LimitProperties own = properties.limit(name);
        String place = own.equals(LimitProperties.NONE) || declaredAt.equals(LimitSettings.property(name))
                ? declaredAt
                : declaredAt + " with " + LimitSettings.property(name);
        LimitProperties merged = LimitMerge.merged(properties, name, declared);
        requireDefined(name, place, merged, properties, known);
        LimitSettings.Places places = attribute -> LimitMerge.place(properties, name, declared, place, attribute);
        LimitSettings.check(name, places, merged);
        LimiterFactory factory = factory(name, places, merged);
        LimitSettings.checkBackend(name, own, factory);
        LimitProperties all = LimitSettings.suitedTo(merged, factory);
        if (own.maxWait() != null) {
            LimitSettings.checkMaxWait(name, LimitSettings.property(name, "maxWait"), own, all);
        }
        LimitSettings.checkMaxWait(
                name,
                declaredAt,
                declared,
                all,
                LimitMerge.merged(LimitProperties.NONE, properties.orDefaults(), declared));
        RateLimiter limiter = limiter(factory, places, LimitSettings.limit(name, places, all), "", all);
        Map<String, RateLimiter> tiers = new TreeMap<>();
        if (all.tiers() != null) {
            all.tiers().forEach((tier, stated) -> {
                String tierPlace = place + ", tier '" + tier + "'";
                LimitSettings.Places ofTierPlaces = attribute -> stated.values().containsKey(attribute)
                        ? LimitSettings.property(name) + ".tiers" + LimitSettings.element(tier) + "."
                                + DataObjectPropertyName.toDashedForm(attribute)
                        : tierPlace;
                LimitProperties ofTier = LimitSettings.tierProperties(name, tierPlace, stated, all);
                LimitSettings.check(name, ofTierPlaces, ofTier);
                tiers.put(
                        tier,
                        limiter(
                                factory,
                                attribute -> tierPlace,
                                LimitSettings.limit(name, ofTierPlaces, ofTier),
                                tier,
                                ofTier));
            });
        }
        if (LimitSettings.algorithm(declared) != LimitSettings.algorithm(all)
                && !declared.equals(LimitMerge.suitedTo(declared, LimitSettings.algorithm(all)))) {
            LOG.info("Rate limit '" + name + "': what " + declaredAt + " sets for "
                    + LimitSettings.algorithm(declared) + " alone is ignored, since the properties make it "
                    + LimitSettings.algorithm(all));
        }
        return new ConfiguredLimit(name, place, definition, all, limiter, tiers);
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
                "no limit of this name is defined: neither an annotation nor a property sets its " + missing
                        + SimilarName.hint(name, known),
                "Set it in the annotation or as " + LimitSettings.property(name) + "."
                        + (missing.equals("rate") ? "rate" : "max-concurrent") + ", or correct the name.");
    }

    private LimiterFactory factory(String name, LimitSettings.Places places, LimitProperties all) {
        String backend = String.valueOf(all.backend());
        LimiterFactory factory = factories.get(backend);
        if (factory == null) {
            throw new InvalidRateLimitException(
                    name, places.of("backend"), "backend " + missing(backend), remedy(backend));
        }
        return factory;
    }

    private static RateLimiter limiter(
            LimiterFactory factory, LimitSettings.Places places, Limit limit, String tier, LimitProperties all) {
        try {
            return factory.create(limit, tier, all);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    places.of("backend"),
                    String.valueOf(ex.getMessage()),
                    "Correct it, or choose another backend.",
                    ex);
        }
    }

    /**
     * Checks that there is a backend of a name, before any limit is made.
     *
     * @throws InvalidRateLimitException when no bean provides it
     */
    void requireBackend(String backend) {
        if (!factories.containsKey(backend)) {
            throw new InvalidRateLimitException("Property rate-limit.backend " + missing(backend), remedy(backend));
        }
    }

    private String remedy(String backend) {
        return backend.equals("redis")
                ? REDIS_REMEDY
                : "Use one of " + factories.keySet() + ", or declare a bean of type " + LimiterFactory.class.getName()
                        + " whose backend() returns \"" + backend + "\".";
    }

    private String missing(String backend) {
        if (backend.isEmpty()) {
            return "has no value";
        }
        if (!backend.equals("redis")) {
            return "is " + backend + ", but there is no backend of this name"
                    + SimilarName.hint(backend, factories.keySet()) + "; there are " + factories.keySet();
        }
        if (!ClassUtils.isPresent("io.ratelimited.redis.RedisBackend", null)) {
            return "is redis, but the module rate-limit-redis is not on the class path";
        }
        if (!ClassUtils.isPresent("io.lettuce.core.RedisClient", null)) {
            return "is redis, but its client Lettuce (io.lettuce:lettuce-core) is not on the class path";
        }
        return "is redis, but nothing provides it";
    }
}
