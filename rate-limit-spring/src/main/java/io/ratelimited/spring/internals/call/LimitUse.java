package io.ratelimited.spring.internals.call;

import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.internals.expression.CallExpression;
import io.ratelimited.spring.internals.expression.InvalidCallException;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.FixedPermits;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.ResolvedLimit;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.text.LogText;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ObjectUtils;

/**
 * One limit as a method or a route uses it: evaluates the key, the permits, the condition, the tier and the class of a call.
 * Immutable.
 *
 * @param fixedPermits of a call where no expression states them
 * @param tierOfClients the expression of the tier if clients can choose its value; else null
 * @param tierOfNames the expression of the tier if its texts are names of tiers only; null if a bean returns them
 * @param once how this use of the limit charges a web request only once; null if it charges every call
 */
public record LimitUse(
        ConfiguredLimit limit,
        @Nullable CallExpression key,
        @Nullable CallExpression permits,
        long fixedPermits,
        @Nullable CallExpression when,
        @Nullable CallExpression tier,
        @Nullable String tierOfClients,
        @Nullable String tierOfNames,
        @Nullable CallExpression priority,
        @Nullable CallExpression charge,
        @Nullable CallExpression blockUnless,
        @Nullable Once once) {

    /** With one of these, callers can invent budgets, or take permits without one. */
    private static final Set<LimitProperty> OF_CALLERS =
            EnumSet.of(LimitProperty.KEY, LimitProperty.TIER, LimitProperty.PERMITS);

    /**
     * The handler method of a controller, which a web request may reach several times, by forwards for one.
     *
     * @param use names the use of the limit
     */
    public record Once(String use, Method handler) {}

    /**
     * Makes the use that properties describe.
     *
     * @param key the expression of its key, if it has one
     * @param place where the properties stand that state the permits
     * @param priorityPlace where those stand that state the class of calls
     * @param expressions makes the expression of an attribute from its text; null from none
     * @param once how this use of the limit charges a web request only once; null if it charges every call
     */
    public static LimitUse of(
            ConfiguredLimit limit,
            @Nullable CallExpression key,
            ResolvedLimit properties,
            String place,
            String priorityPlace,
            BiFunction<String, @Nullable String, @Nullable CallExpression> expressions,
            @Nullable Once once) {
        String permits = properties.text(LimitProperty.PERMITS);
        boolean fixed = permits == null || FixedPermits.isNumber(permits);
        if (key != null) {
            limit.usedWithKeys();
        }
        CallExpression tier = expressions.apply("tier", properties.text(LimitProperty.TIER));
        if (tier != null && invented(tier) == null) {
            limit.usedWithTiers();
        }
        CallExpression priority = expressions.apply("priority", properties.text(LimitProperty.PRIORITY));
        limit.classes().check(priority, priorityPlace);
        return new LimitUse(
                limit,
                key,
                fixed ? null : expressions.apply("permits", permits),
                permits != null && fixed ? limit.fixedPermits().read(permits, place) : 1,
                expressions.apply("when", properties.text(LimitProperty.WHEN)),
                tier,
                invented(tier),
                tier == null || (tier.looksUp() && !tier.canBeInvented()) ? null : tier.toString(),
                priority,
                expressions.apply("charge", properties.text(LimitProperty.CHARGE)),
                expressions.apply("blockUnless", properties.text(LimitProperty.BLOCK_UNLESS)),
                once);
    }

    /**
     * Lets the limit know of this use.
     *
     * @param where its place
     * @throws InvalidRateLimitException when the limit has blocks that have no meaning for it
     */
    public LimitUse declaredAt(String where) {
        limit.blockUses().add(key != null, charge != null, where);
        return this;
    }

    /** The expressions whose values callers can choose, as text. */
    public Map<LimitProperty, @Nullable String> invented() {
        Map<LimitProperty, @Nullable String> invented = new EnumMap<>(LimitProperty.class);
        invented.put(LimitProperty.KEY, invented(key));
        invented.put(LimitProperty.TIER, tierOfClients);
        invented.put(LimitProperty.WHEN, invented(when));
        invented.put(LimitProperty.PRIORITY, invented(priority));
        invented.put(LimitProperty.BLOCK_UNLESS, invented(blockUnless));
        if (charge == null && permits != null && !permits.isSize()) {
            invented.put(LimitProperty.PERMITS, invented(permits)); // nothing else says what the call costs
        }
        invented.values().removeIf(Objects::isNull);
        return invented;
    }

    private static @Nullable String invented(@Nullable CallExpression expression) {
        return expression != null && expression.canBeInvented() ? expression.toString() : null;
    }

    /**
     * Returns whether the limit bounds a caller who invents keys for other limits: how often it can call, or how many calls it
     * has in flight.
     */
    public boolean boundsEveryCaller() {
        boolean skips = key != null && limit.enforcement().missingKey() == MissingKey.SKIP;
        return !skips
                && when == null
                && Collections.disjoint(invented().keySet(), OF_CALLERS)
                && limit.policy() != Policy.SHADOW
                && !limit.limit().isUnlimited();
    }

    /** Returns whether an expression of the limit may read a word of requests. */
    public boolean reads(String word) {
        return Stream.of(key, permits, when, tier, priority, charge, blockUnless)
                .anyMatch(expression -> expression != null && expression.reads(word));
    }

    /** Returns whether every call makes the same request. */
    public boolean isSameForAll() {
        return key == null
                && permits == null
                && when == null
                && tier == null
                && priority == null
                && charge == null
                && blockUnless == null
                && once == null;
    }

    /** The request of every call, if it is the same for all. */
    public LimitRequest sameRequest() {
        return LimitRequest.of(limit, null, fixedPermits, null);
    }

    /** Returns whether the cost of a call is known only when it has ended. */
    public boolean charges() {
        return charge != null;
    }

    /**
     * Evaluates the expressions of the limit for a call.
     *
     * @return null when the limit does not apply to the call
     * @throws InvalidCallException when an expression fails, or yields an invalid value, because of what the caller has written
     * @throws IllegalStateException when an expression fails or yields an invalid value
     */
    @Nullable
    public LimitRequest request(@Nullable Object target, @Nullable Object[] args, @Nullable CurrentRequest current) {
        String charged = null;
        if (once != null && current != null && current.isOwnCall(once.use, once.handler)) {
            if (current.isCharged(once.use)) {
                return null;
            }
            charged = once.use;
        }
        if (when != null && !condition(when, when.value(target, args, current))) {
            return null;
        }
        ConfiguredLimit.Enforcement enforcement = limit.enforcement();
        RateLimiter limiter = tier == null ? limit.limiter() : limiterOf(tier.value(target, args, current));
        long weight = permits == null ? fixedPermits : weight(permits, target, args, current);
        Charge cost = charge == null ? null : new Charge(charge, target, args, current, weight);
        Object id = key == null ? null : key.key(target, args, current);
        boolean missing = key != null && id == null;
        if (missing && enforcement.missingKey() == MissingKey.SKIP) {
            return null;
        }
        RateLimiter ofCaller = limit.limiterOf(id, limiter);
        int rank = priority == null
                ? RateLimiter.NO_RANK
                : limit.classes().rank(ofCaller, priority.value(target, args, current));
        return new LimitRequest(
                limit,
                enforcement,
                ofCaller,
                id,
                weight,
                missing && enforcement.missingKey() == MissingKey.DENY,
                rank,
                charged,
                cost,
                enforcement.maxWaitNanos(),
                blockUnless != null && id != null && condition(blockUnless, blockUnless.value(target, args, current)));
    }

    private static boolean condition(CallExpression expression, @Nullable Object value) {
        if (value instanceof Boolean applies) {
            return applies;
        }
        String problem = problem(expression, "a boolean", LogText.of(value));
        throw value == null && expression.canBeInvented()
                ? expression.invalid(problem, null)
                : new IllegalStateException(problem);
    }

    /** The caller chooses which number it is. That it is a number is up to the application, unless it reads a caller's text. */
    private long weight(
            CallExpression expression,
            @Nullable Object target,
            @Nullable Object[] args,
            @Nullable CurrentRequest current) {
        Object value = expression.value(target, args, current);
        long weight = Charge.roundedUp(value, Long.MAX_VALUE);
        if (weight >= 0) {
            return weight;
        }
        String problem = problem(expression, "a number from 0 to 2^63 - 1", LogText.of(value));
        throw value == null || value instanceof Number || expression.canBeInvented()
                ? new InvalidCallException(expression, problem, "The number of permits must be 0 or greater.", null)
                : new IllegalStateException(problem);
    }

    private RateLimiter limiterOf(@Nullable Object value) {
        Object tierName = ObjectUtils.unwrapOptional(value);
        return tierName == null || tierName.toString().isBlank()
                ? limit.limiter()
                : limit.limiterOfTier(tierName, tierName instanceof CallerLimit ? tierOfClients : tierOfNames);
    }

    /** Returns whether no instance of a parameter's type can be a key. */
    public static boolean isNeverKey(Class<?> type) {
        return Modifier.isFinal(type.getModifiers()) && !CanonicalKey.isKey(type);
    }

    private static String problem(CallExpression expression, String wanted, String value) {
        return expression + " must be " + wanted + ", not " + value + "; the call was not made";
    }
}
