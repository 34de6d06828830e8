package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Algorithm.Attribute;
import io.ratelimited.core.Policy;
import java.time.Duration;
import java.time.ZoneId;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * One limit, as far as one place says anything about it: the annotation, an entry of {@code rate-limit.limits}, a tier,
 * or {@code rate-limit.defaults}. What is null is left to the next place.
 *
 * @param algorithm Algorithm of the limit.
 * @param rate Permits per period, such as 100/s, 5/m, 20/500ms or 100/PT1M; "unlimited" exempts, 0/s closes.
 * @param burst Permits that may go at once; for a leaky bucket the capacity of the queue. Defaults to the number in the rate.
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
    static final LimitProperties NONE = new LimitProperties(
            null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null, null, null);

    /** These properties, and those of the other place where these say nothing. */
    LimitProperties over(LimitProperties other) {
        return new LimitProperties(
                first(other, LimitProperties::algorithm),
                first(other, LimitProperties::rate),
                first(other, LimitProperties::burst),
                first(other, LimitProperties::warmup),
                first(other, LimitProperties::maxConcurrent),
                first(other, LimitProperties::key),
                first(other, LimitProperties::permits),
                first(other, LimitProperties::when),
                first(other, LimitProperties::tier),
                first(other, LimitProperties::policy),
                first(other, LimitProperties::maxWait),
                first(other, LimitProperties::fallback),
                first(other, LimitProperties::zone),
                first(other, LimitProperties::slots),
                first(other, LimitProperties::coldFactor),
                first(other, LimitProperties::lease),
                first(other, LimitProperties::maxWaiting),
                first(other, LimitProperties::missingKey),
                first(other, LimitProperties::tiers),
                first(other, LimitProperties::backend),
                first(other, LimitProperties::onFailure),
                first(other, LimitProperties::maxOvershoot));
    }

    private <T> @Nullable T first(LimitProperties other, Function<LimitProperties, @Nullable T> property) {
        T own = property.apply(this);
        return own != null ? own : property.apply(other);
    }

    /**
     * These properties as a fallback for a limit of an algorithm: without what has no meaning for it, and without a
     * policy for the algorithm that has one of its own.
     */
    LimitProperties suitedTo(Algorithm suited) {
        return new LimitProperties(
                algorithm,
                suited.uses(Attribute.RATE) ? rate : null,
                suited.uses(Attribute.BURST) ? burst : null,
                suited.uses(Attribute.WARMUP) ? warmup : null,
                suited.uses(Attribute.MAX_CONCURRENT) ? maxConcurrent : null,
                key,
                permits,
                when,
                tier,
                suited == Algorithm.LEAKY_BUCKET ? null : policy,
                maxWait,
                fallback,
                suited.uses(Attribute.ZONE) ? zone : null,
                suited.uses(Attribute.SLOTS) ? slots : null,
                suited.uses(Attribute.COLD_FACTOR) ? coldFactor : null,
                suited.uses(Attribute.LEASE) ? lease : null,
                maxWaiting,
                missingKey,
                tiers,
                backend,
                onFailure,
                maxOvershoot);
    }

    /** The part that defines the limit, without what belongs to each use of it. */
    LimitProperties definition() {
        return new LimitProperties(
                algorithm,
                rate,
                burst,
                warmup,
                maxConcurrent,
                null,
                null,
                null,
                null,
                policy,
                maxWait,
                null,
                zone,
                slots,
                coldFactor,
                lease,
                maxWaiting,
                missingKey,
                tiers,
                backend,
                onFailure,
                maxOvershoot);
    }

    /** As the base of a tier: a tier with a rate of its own has a burst of its own, and no tiers. */
    LimitProperties asBaseOf(LimitProperties tierProperties) {
        return new LimitProperties(
                algorithm,
                rate,
                tierProperties.rate == null ? burst : null,
                warmup,
                maxConcurrent,
                null,
                null,
                null,
                null,
                policy,
                maxWait,
                null,
                zone,
                slots,
                coldFactor,
                lease,
                maxWaiting,
                missingKey,
                null,
                backend,
                onFailure,
                maxOvershoot);
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
