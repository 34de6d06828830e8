package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.time.Duration;
import java.time.ZoneId;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ReflectionUtils;

/**
 * The properties of a limit that one place sets: the annotation, an entry of {@code rate-limit.limits}, a tier, or {@code
 * rate-limit.defaults}. A property that is null is left to the next place.
 *
 * @param algorithm Algorithm of the limit.
 * @param rate Permits per period, such as 100/s, 5/m, 20/500ms or 100/PT1M, for FIXED_WINDOW also 1000/week, month or year; "unlimited" exempts, 0/s closes.
 * @param burst Burst capacity: permits that an idle caller can use back to back; for a leaky bucket the capacity of the queue. Defaults to the number in the rate; for smooth-bursty to one second of it.
 * @param warmup Duration of the warm-up. WARM_UP only.
 * @param maxConcurrent Maximum number of concurrent calls, for CONCURRENCY; for ADAPTIVE the upper bound of its limit, 1000 if unset.
 * @param minConcurrent Lower bound of the limit, for ADAPTIVE.
 * @param lateAfter Response time above which a call counts as overload. ADAPTIVE only.
 * @param key SpEL expression that selects the caller: each key has its own limit.
 * @param permits Cost of a call in permits, a number or a SpEL expression.
 * @param when SpEL expression; if it is false, the limit does not apply to the call.
 * @param charge SpEL expression for the actual cost of a call in permits, evaluated when the call completes.
 * @param tier SpEL expression for the name of the caller's tier.
 * @param priority SpEL expression for the priority of the call, one of the priorities. ADAPTIVE and CONCURRENCY only.
 * @param priorities Names of priorities, the highest first. ADAPTIVE and CONCURRENCY only.
 * @param shares Minimum share of permits for a priority, such as 5%, by its name.
 * @param policy How a call over the limit is handled.
 * @param maxWait Maximum wait under WAIT; a call that would have to wait longer is rejected immediately.
 * @param fallback Method that is called instead of a rejected call.
 * @param block How long a key is blocked after its first violation; 0s for no blocks.
 * @param blockFactor Factor between consecutive blocks of a key, from 1 to 1000.
 * @param blockMax Longest block of a key, and the violation-free time after which its next block is short again; at least as long as the first block. With a charge, the default is 15m.
 * @param blockUnless SpEL expression; if it is true, a block does not reject the call, and the call starts none.
 * @param zone Time zone of the windows. FIXED_WINDOW only.
 * @param startsOn First day of the windows of a rate per week (MONDAY), month (15) or year (04-01), at midnight of the zone. Defaults to MONDAY, 1, 01-01.
 * @param slots Number of slots, from 1 to 1000. SLIDING_WINDOW only.
 * @param coldFactor Cost of a stored permit when cold, as a multiple of a fresh one. WARM_UP only.
 * @param lease Time after which a call in flight no longer counts. CONCURRENCY only.
 * @param maxWaiting Maximum number of waiting callers of the limit; at most half as many have the same key.
 * @param missingKey How a call with a null or blank key is handled.
 * @param tiers Limits of plans, by the name that the tier expression returns.
 * @param httpHeaders Whether responses have the rate limit headers of the limit.
 * @param backend Backend that stores the state of the limit.
 * @param onFailure Policy while Redis is unavailable.
 * @param maxOvershoot Share of the limit, per period, by which all instances together can exceed it in exchange for fewer Redis calls, such as 5%.
 */
public record LimitProperties(
        @Nullable Algorithm algorithm,
        @Nullable String rate,
        @Nullable Long burst,
        @Nullable Duration warmup,
        @Nullable Integer maxConcurrent,
        @Nullable Integer minConcurrent,
        @Nullable Duration lateAfter,
        @Nullable String key,
        @Nullable String permits,
        @Nullable String when,
        @Nullable String charge,
        @Nullable String tier,
        @Nullable String priority,
        @Nullable List<String> priorities,
        @Nullable Map<String, String> shares,
        @Nullable Policy policy,
        @Nullable Duration maxWait,
        @Nullable String fallback,
        @Nullable Duration block,
        @Nullable Double blockFactor,
        @Nullable Duration blockMax,
        @Nullable String blockUnless,
        @Nullable ZoneId zone,
        @Nullable String startsOn,
        @Nullable Integer slots,
        @Nullable Double coldFactor,
        @Nullable Duration lease,
        @Nullable Integer maxWaiting,
        @Nullable MissingKey missingKey,
        @Nullable Map<String, LimitProperties> tiers,
        @Nullable HttpHeaders httpHeaders,
        @Nullable String backend,
        @Nullable OnFailure onFailure,
        @Nullable String maxOvershoot) {

    /** Found once: the JVM makes its means of reflection anew for each component that it is asked for. */
    private static final Map<String, Method> ACCESSORS = new LinkedHashMap<>();

    private static final Constructor<LimitProperties> CONSTRUCTOR;

    static {
        RecordComponent[] components = LimitProperties.class.getRecordComponents();
        for (RecordComponent component : components) {
            ACCESSORS.put(component.getName(), component.getAccessor());
        }
        try {
            CONSTRUCTOR = LimitProperties.class.getDeclaredConstructor(
                    Stream.of(components).map(RecordComponent::getType).toArray(Class<?>[]::new));
        } catch (NoSuchMethodException ex) {
            throw new IllegalStateException(ex);
        }
    }

    /** No property is set. */
    public static final LimitProperties NONE = of(Map.of());

    /**
     * Creates a record; names of backends are written in lower case.
     *
     * @throws IllegalArgumentException for {@link Algorithm#DEFAULT} and {@link Policy#DEFAULT}, which only the annotation
     *     has
     */
    public LimitProperties {
        requireStated("algorithm", algorithm, algorithm != Algorithm.DEFAULT, Algorithm.all());
        requireStated("policy", policy, policy != Policy.DEFAULT, Policy.all());
        backend = backend == null ? null : backend.strip().toLowerCase(Locale.ROOT);
    }

    /**
     * Properties from their values.
     *
     * @param values by name of the property, in camel case; a property without a value is not set
     * @throws IllegalArgumentException when there is no property of a name, or a value has another type or is one that
     *     only the annotation has
     */
    public static LimitProperties of(Map<String, ?> values) {
        if (!ACCESSORS.keySet().containsAll(values.keySet())) {
            Set<String> unknown = new TreeSet<>(values.keySet());
            unknown.removeAll(ACCESSORS.keySet());
            throw new IllegalArgumentException("a limit has no property " + unknown);
        }
        Object[] arguments = new Object[ACCESSORS.size()];
        int i = 0;
        for (Map.Entry<String, Method> property : ACCESSORS.entrySet()) {
            Object value = values.get(property.getKey());
            requireType(property.getKey(), value, property.getValue().getReturnType());
            arguments[i++] = value;
        }
        try {
            return CONSTRUCTOR.newInstance(arguments);
        } catch (InvocationTargetException ex) {
            if (ex.getCause() instanceof IllegalArgumentException invalid) {
                throw invalid;
            }
            throw new IllegalStateException(ex);
        } catch (ReflectiveOperationException ex) {
            throw new IllegalStateException(ex);
        }
    }

    /** The constructor would only say that some argument has another type. */
    private static void requireType(String name, @Nullable Object value, Class<?> type) {
        if (value != null && !type.isInstance(value)) {
            throw new IllegalArgumentException(name + " must be of the type " + type.getSimpleName() + ", not "
                    + value.getClass().getSimpleName());
        }
    }

    private static void requireStated(String name, @Nullable Object value, boolean stated, List<?> all) {
        if (!stated) {
            throw new IllegalArgumentException(
                    name + " must be one of " + all + ", or left out to have the default: " + value);
        }
    }

    /** The values of the properties that are set, by name in camel case. */
    public Map<String, Object> values() {
        Map<String, Object> values = new LinkedHashMap<>();
        ACCESSORS.forEach((name, accessor) -> {
            Object value = ReflectionUtils.invokeMethod(accessor, this);
            if (value != null) {
                values.put(name, value);
            }
        });
        return values;
    }

    /** Whether responses have the rate limit headers of a limit. */
    public enum HttpHeaders {
        /** Those that {@code rate-limit.http.headers} chooses. */
        SHOWN,
        /** None: what is left of the limit is nobody else's business. A rejection has its status and {@code Retry-After}. */
        NONE
    }

    /** Source of decisions while Redis does not answer. */
    public enum OnFailure {
        /** A limiter in this process, with the limit divided by the number of instances. */
        LOCAL,
        /** Nobody: every call goes. */
        ALLOW,
        /** Nobody: every call is rejected. */
        DENY,
        /** The error of Redis is thrown. */
        THROW
    }
}
