package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Algorithm.Attribute;
import io.ratelimited.core.Policy;
import java.time.Duration;
import java.time.ZoneId;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * One limit, as far as one place says anything about it: the annotation, an entry of {@code rate-limit.limits}, a tier,
 * or {@code rate-limit.defaults}. What is null is left to the next place.
 *
 * @param algorithm Algorithm of the limit.
 * @param rate Permits per period, such as 100/s, 5/m, 20/500ms or 100/PT1M; "unlimited" exempts, 0/s closes.
 * @param burst Permits that may go at once; for a leaky bucket the capacity of the queue. Defaults to the number in the rate; for smooth-bursty to one second of it.
 * @param warmup Duration of the warm-up of WARM_UP.
 * @param maxConcurrent Calls in flight at once, for CONCURRENCY only.
 * @param key SpEL expression for whose budget a call uses.
 * @param permits Number or SpEL expression for how many permits a call takes.
 * @param when SpEL expression; when it is false the limit does not apply to the call.
 * @param tier SpEL expression naming the tier of the caller.
 * @param policy What becomes of a call over the limit.
 * @param maxWait Longest sleep under WAIT; a call that could not go by then is refused at once.
 * @param fallback Method called instead of a refused call.
 * @param zone Time zone whose days and hours the windows of FIXED_WINDOW follow.
 * @param slots Slots of a SLIDING_WINDOW.
 * @param coldFactor How many times dearer than a fresh permit the coldest stored one is, for WARM_UP.
 * @param lease Time after which a call in flight no longer counts, for CONCURRENCY.
 * @param maxWaiting Callers of the limit that may sleep at once.
 * @param missingKey What becomes of a call whose key is null or blank.
 * @param tiers Limits of plans, by the name that the tier expression yields.
 * @param backend Where the state of the limit lives.
 * @param onFailure What decides when Redis does not answer.
 * @param maxOvershoot Part of the limit, per period, that the cluster may exceed it by in exchange for fewer calls to Redis, such as 5%.
 */
public record LimitProperties(
        @Nullable Algorithm algorithm,
        @Nullable String rate,
        @Nullable Long burst,
        @Nullable Duration warmup,
        @Nullable Integer maxConcurrent,
        @Nullable String key,
        @Nullable String permits,
        @Nullable String when,
        @Nullable String tier,
        @Nullable Policy policy,
        @Nullable Duration maxWait,
        @Nullable String fallback,
        @Nullable ZoneId zone,
        @Nullable Integer slots,
        @Nullable Double coldFactor,
        @Nullable Duration lease,
        @Nullable Integer maxWaiting,
        @Nullable MissingKey missingKey,
        @Nullable Map<String, LimitProperties> tiers,
        @Nullable Backend backend,
        @Nullable OnFailure onFailure,
        @Nullable String maxOvershoot) {

    /** Nothing is said. */
    public static final LimitProperties NONE = new LimitProperties(
            null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null, null, null);

    /** What belongs to each use of a limit, not to the limit. */
    private static final Set<String> OF_A_USE = Set.of("key", "permits", "when", "tier", "fallback");

    /** Only the algorithm is said. */
    public static LimitProperties of(Algorithm algorithm) {
        return new LimitProperties(
                algorithm, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
                null, null, null, null, null, null);
    }

    /** Only the backend is said, and what decides while it does not answer. */
    public static LimitProperties of(Backend backend, OnFailure onFailure) {
        return new LimitProperties(
                null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
                null, null, backend, onFailure, null);
    }

    /** All properties, each as it is chosen. */
    public static LimitProperties of(Choice choice) {
        return new LimitProperties(
                choice.of("algorithm", LimitProperties::algorithm),
                choice.of("rate", LimitProperties::rate),
                choice.of("burst", LimitProperties::burst),
                choice.of("warmup", LimitProperties::warmup),
                choice.of("maxConcurrent", LimitProperties::maxConcurrent),
                choice.of("key", LimitProperties::key),
                choice.of("permits", LimitProperties::permits),
                choice.of("when", LimitProperties::when),
                choice.of("tier", LimitProperties::tier),
                choice.of("policy", LimitProperties::policy),
                choice.of("maxWait", LimitProperties::maxWait),
                choice.of("fallback", LimitProperties::fallback),
                choice.of("zone", LimitProperties::zone),
                choice.of("slots", LimitProperties::slots),
                choice.of("coldFactor", LimitProperties::coldFactor),
                choice.of("lease", LimitProperties::lease),
                choice.of("maxWaiting", LimitProperties::maxWaiting),
                choice.of("missingKey", LimitProperties::missingKey),
                choice.of("tiers", LimitProperties::tiers),
                choice.of("backend", LimitProperties::backend),
                choice.of("onFailure", LimitProperties::onFailure),
                choice.of("maxOvershoot", LimitProperties::maxOvershoot));
    }

    /** What a property of that name shall be. */
    public interface Choice {

        public <T> @Nullable T of(String name, Function<LimitProperties, @Nullable T> property);
    }

    /** These properties, and those of the other place where these say nothing. */
    public LimitProperties over(LimitProperties other) {
        return of(new Choice() {
            @Override
            public <T> @Nullable T of(String name, Function<LimitProperties, @Nullable T> property) {
                T own = property.apply(LimitProperties.this);
                return own != null ? own : property.apply(other);
            }
        });
    }

    /** These properties without those of some names. */
    private LimitProperties without(Predicate<String> left) {
        return of(new Choice() {
            @Override
            public <T> @Nullable T of(String name, Function<LimitProperties, @Nullable T> property) {
                return left.test(name) ? null : property.apply(LimitProperties.this);
            }
        });
    }

    /** Whether the property of a name is set. */
    public boolean says(String name) {
        return !equals(without(name::equals));
    }

    /** These properties without what has no meaning for an algorithm that they were not written for. */
    public LimitProperties suitedTo(Algorithm suited) {
        Set<String> foreign = Stream.of(Attribute.values())
                .filter(attribute -> !suited.uses(attribute))
                .map(Attribute::label)
                .collect(Collectors.toSet());
        if (!suited.canBeLeased()) {
            foreign.add("maxOvershoot");
        }
        return without(foreign::contains);
    }

    /** These properties without a policy. */
    public LimitProperties withoutPolicy() {
        return without("policy"::equals);
    }

    /** The part that defines the limit, without what belongs to each use of it. */
    public LimitProperties definition() {
        return without(OF_A_USE::contains);
    }

    /** Whether anything is said that defines the limit, not only how it is used. */
    public boolean isDefinition() {
        return !definition().equals(NONE);
    }

    /** What a tier may not say, because it belongs to the limit or to its uses: the first of these that is said. */
    @Nullable
    public String foreignToTier() {
        Map<String, @Nullable Object> foreign = new LinkedHashMap<>();
        foreign.put("key", key);
        foreign.put("permits", permits);
        foreign.put("when", when);
        foreign.put("tier", tier);
        foreign.put("policy", policy);
        foreign.put("max-wait", maxWait);
        foreign.put("fallback", fallback);
        foreign.put("missing-key", missingKey);
        foreign.put("tiers", tiers);
        foreign.put("backend", backend);
        return foreign.entrySet().stream()
                .filter(entry -> entry.getValue() != null)
                .map(entry -> entry.getKey() + ": " + entry.getValue())
                .findFirst()
                .orElse(null);
    }

    /** As the base of a tier: a tier with a rate of its own has a burst of its own, and no tiers. */
    public LimitProperties asBaseOf(LimitProperties tierProperties) {
        return definition()
                .without(name -> name.equals("tiers") || (name.equals("burst") && tierProperties.rate != null));
    }

    /** Where the state of limits lives. */
    public enum Backend {
        /** In this process. */
        MEMORY,
        /** On Redis or Valkey, shared by all instances. */
        REDIS
    }

    /** What decides when Redis does not answer. */
    public enum OnFailure {
        /** A limiter in this process, with the limit divided by the number of instances. */
        LOCAL,
        /** Nobody: every call goes. */
        ALLOW,
        /** Nobody: every call is refused. */
        DENY,
        /** The error of Redis is thrown. */
        THROW
    }
}
