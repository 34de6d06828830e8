package io.ratelimited.spring;

import io.ratelimited.core.RateLimiter;
import java.security.Principal;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ObjectUtils;

/**
 * One limit on one method: the limit, and how the key, the weight, the condition and the tier of a call are found.
 * Immutable.
 */
final class MethodLimit {

    /** Whether instances of a class can be keys: those that only equal themselves would each have a budget of their own. */
    private static final ClassValue<Boolean> HAS_EQUALS = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            try {
                return type.isEnum() || type.getMethod("equals", Object.class).getDeclaringClass() != Object.class;
            } catch (NoSuchMethodException ex) {
                throw new IllegalStateException(ex);
            }
        }
    };

    private final NamedLimit limit;
    private final @Nullable CallExpression key;
    private final @Nullable CallExpression permits;
    private final long fixedPermits;
    private final @Nullable CallExpression when;
    private final @Nullable CallExpression tier;

    MethodLimit(
            NamedLimit limit,
            @Nullable CallExpression key,
            @Nullable CallExpression permits,
            long fixedPermits,
            @Nullable CallExpression when,
            @Nullable CallExpression tier) {
        this.limit = limit;
        this.key = key;
        this.permits = permits;
        this.fixedPermits = fixedPermits;
        this.when = when;
        this.tier = tier;
    }

    NamedLimit limit() {
        return limit;
    }

    /** Whether the limit asks nothing about the call but whether it may go. */
    boolean isPlain() {
        return key == null && permits == null && when == null && tier == null;
    }

    long fixedPermits() {
        return fixedPermits;
    }

    /**
     * What to ask for a call.
     *
     * @return null when the limit does not apply to the call
     * @throws io.ratelimited.core.RateLimitExceededException when the key is missing and the limit denies such calls
     * @throws IllegalStateException when an expression fails or yields what it may not
     */
    @Nullable
    Ask ask(@Nullable Object target, @Nullable Object[] args, @Nullable CurrentRequest request) {
        if (when != null && !condition(when.value(target, args, request))) {
            return null;
        }
        RateLimiter limiter = tier == null ? limit.limiter() : limiterOf(tier.value(target, args, request));
        long weight = permits == null ? fixedPermits : weight(permits.value(target, args, request));
        if (key == null) {
            return new Ask(limit, limiter, null, weight, false);
        }
        Object id = identity(key.value(target, args, request));
        if (id != null) {
            return new Ask(limit, limiter, id, weight, false);
        }
        return switch (limit.missingKey()) {
            case SHARED -> new Ask(limit, limiter, null, weight, false);
            case SKIP -> null;
            case DENY -> new Ask(limit, limiter, null, weight, true);
        };
    }

    private boolean condition(@Nullable Object value) {
        if (value instanceof Boolean applies) {
            return applies;
        }
        throw unusable("when", "a boolean", value);
    }

    private long weight(@Nullable Object value) {
        if (value instanceof Number number && number.longValue() >= 1 && number.doubleValue() == number.longValue()) {
            return number.longValue();
        }
        throw unusable("permits", "a whole number of at least 1", value);
    }

    private RateLimiter limiterOf(@Nullable Object value) {
        return value == null ? limit.limiter() : limit.limiterOfTier(value.toString());
    }

    /** What tells callers apart; null for a missing key. */
    private @Nullable Object identity(@Nullable Object value) {
        Object id = ObjectUtils.unwrapOptional(value);
        if (id instanceof CharSequence text) {
            String string = text.toString();
            return string.isBlank() ? null : string;
        }
        if (id instanceof Principal principal) {
            return principal.getName();
        }
        if (id == null) {
            return null;
        }
        if (id.getClass().isArray()) {
            return Arrays.asList(ObjectUtils.toObjectArray(id));
        }
        if (!HAS_EQUALS.get(id.getClass())) {
            throw unusable(
                    "key",
                    "something with an equals of its own, such as its id",
                    id.getClass().getName());
        }
        return id;
    }

    private IllegalStateException unusable(String attribute, String wanted, @Nullable Object value) {
        return new IllegalStateException(attribute + " of rate limit '" + limit.name() + "' must be " + wanted + ": "
                + value + "; the call was not made");
    }
}
