package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.backend.SharedPauses;
import io.ratelimited.spring.internals.text.PropertyText;
import io.ratelimited.spring.internals.text.SimilarName;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;

/** The backends of the application, by name. */
final class Backends {

    private static final String REDIS_REMEDY = "Add the dependency io.ratelimited:rate-limit-redis, which brings"
            + " Lettuce, and set rate-limit.redis.url, such as redis://localhost:6379; or set backend: memory.";

    /** Checks nothing; makes no limiter that decides about a call. */
    private static final LimiterFactory UNKNOWN_REDIS =
            new InMemoryLimiterFactory("redis", LimitProperty.ofSomeBackends(), Ticker.system(), limit -> 1);

    private final Map<String, LimiterFactory> factories = new TreeMap<>();

    Backends(List<LimiterFactory> factories) {
        factories.forEach(factory -> this.factories.putIfAbsent(factory.backend(), factory));
    }

    /**
     * The backend that a limit names.
     *
     * @throws InvalidRateLimitException when there is none
     */
    LimiterFactory of(ResolvedLimit limit) {
        String backend = String.valueOf(limit.values().get(LimitProperty.BACKEND));
        LimiterFactory factory = factories.get(backend);
        if (factory == null) {
            throw new InvalidRateLimitException(
                    limit.name(), limit.place(LimitProperty.BACKEND), "backend " + missing(backend), remedy(backend));
        }
        return factory;
    }

    /**
     * The backend that a limit names, or in place of Redis one that supports every limit: the next startup connects to Redis if
     * a property names it and its libraries are present.
     *
     * @throws InvalidRateLimitException when there will be none
     */
    LimiterFactory atNextStartup(ResolvedLimit limit) {
        return isForNextStartup(limit) ? UNKNOWN_REDIS : of(limit);
    }

    /** Returns whether a limit names Redis, to which only the next startup connects. */
    boolean isForNextStartup(ResolvedLimit limit) {
        boolean redis = "redis".equals(limit.values().get(LimitProperty.BACKEND));
        return redis && !factories.containsKey("redis") && lackingOfRedis() == null;
    }

    /** The pauses that all instances share on a backend; null if they share none. */
    @Nullable
    SharedPauses sharedPauses(String backend) {
        LimiterFactory factory = factories.get(backend);
        return factory == null ? null : factory.sharedPauses();
    }

    /**
     * Makes the limiter of a limit, or of one of its tiers.
     *
     * @throws InvalidRateLimitException when the limit is invalid, or the backend cannot have it
     */
    static RateLimiter limiter(LimiterFactory factory, ResolvedLimit resolved, String tier) {
        Limit limit = resolved.limit();
        requireSupport(factory, resolved, limit, "[RL-111]");
        try {
            return factory.create(limit, tier, resolved.texts());
        } catch (IllegalArgumentException ex) {
            throw unsupported(resolved, ex, "[RL-111]");
        }
    }

    /**
     * Checks that a backend can have a limit, new or changed.
     *
     * @param resolved the values that it was made of
     * @throws InvalidRateLimitException when the backend does not support it
     */
    static void requireSupport(LimiterFactory factory, ResolvedLimit resolved, Limit limit, String endOfRemedy) {
        requireBlocks(factory, resolved, limit, endOfRemedy);
        try {
            factory.check(limit);
        } catch (IllegalArgumentException ex) {
            throw unsupported(resolved, ex, endOfRemedy);
        }
    }

    private static InvalidRateLimitException unsupported(
            ResolvedLimit resolved, IllegalArgumentException ex, String endOfRemedy) {
        String setting = ex instanceof InvalidLimitException invalid ? invalid.attribute() : "backend";
        return new InvalidRateLimitException(
                resolved.name(),
                resolved.place(setting),
                String.valueOf(ex.getMessage()),
                "Correct it, or choose another backend. " + endOfRemedy,
                ex);
    }

    /** Otherwise the backend would not notice the blocks. */
    private static void requireBlocks(LimiterFactory factory, ResolvedLimit resolved, Limit limit, String endOfRemedy) {
        if (limit.block() != null && !factory.blocks()) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    resolved.place(LimitProperty.BLOCK),
                    "block is " + PropertyText.of((Object) limit.block()) + ", but backend " + factory.backend()
                            + " does not support it",
                    "Remove block, or set it to 0s; or choose another backend. " + endOfRemedy);
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
                ? REDIS_REMEDY + " [RL-111]"
                : "Use one of " + known() + ", or declare a bean of type " + LimiterFactory.class.getName()
                        + " whose backend() returns \"" + backend + "\". [RL-111]";
    }

    private String missing(String backend) {
        if (backend.isEmpty()) {
            return "has no value";
        }
        if (!backend.equals("redis")) {
            return "is " + backend + ", but there is no backend of this name" + SimilarName.hint(backend, known())
                    + "; there are " + known();
        }
        String lacking = lackingOfRedis();
        return "is redis, but " + (lacking == null ? "nothing provides it" : lacking + " is not on the class path");
    }

    /** With that of Redis, of which nothing is made unless a property names it: a misspelled name must not hide it. */
    private Set<String> known() {
        Set<String> known = new TreeSet<>(factories.keySet());
        known.add("redis");
        return known;
    }

    private static @Nullable String lackingOfRedis() {
        if (!ClassUtils.isPresent("io.ratelimited.redis.RedisBackend", null)) {
            return "the module rate-limit-redis";
        }
        return ClassUtils.isPresent("io.lettuce.core.RedisClient", null)
                ? null
                : "its client Lettuce (io.lettuce:lettuce-core)";
    }
}
