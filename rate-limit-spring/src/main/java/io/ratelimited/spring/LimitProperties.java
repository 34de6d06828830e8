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
 * @param burst Permits that may go at once; for a leaky bucket the capacity of the queue. Defaults to the number in the rate; for smooth-bursty to one second of it.
 * @param warmup Duration of the warm-up of WARM_UP.
 * @param maxConcurrent Calls in flight at once, for CONCURRENCY; for ADAPTIVE the upper bound of the limit that it finds, 1000 if unset.
 * @param minConcurrent Lower bound of the limit that ADAPTIVE finds.
 * @param lateAfter Time after which an answer is worth nothing, for ADAPTIVE.
 * @param key SpEL expression for whose budget a call uses.
 * @param permits Number or SpEL expression for how many permits a call takes.
 * @param when SpEL expression; when it is false the limit does not apply to the call.
 * @param charge SpEL expression for how many permits a call has really cost, evaluated when it has ended.
 * @param tier SpEL expression naming the tier of the caller.
 * @param priority SpEL expression naming the class of the call, one of the priorities, for ADAPTIVE and CONCURRENCY.
 * @param priorities Classes of calls, the best first, for ADAPTIVE and CONCURRENCY.
 * @param shares Share of the places that better classes leave to a class, such as 5%, by its name.
 * @param policy What becomes of a call over the limit.
 * @param maxWait Longest sleep under WAIT; a call that could not go by then is refused at once.
 * @param fallback Method called instead of a refused call.
 * @param block How long a key is blocked after its first violation; 0s for no blocks.
 * @param blockFactor By how much each block of a key is longer than the one before, from 1 to 1000.
 * @param blockMax Longest block of a key, and the time without a violation after which its blocks are short again; at least as long as the first block. With a charge the default is 15m.
 * @param blockUnless SpEL expression; a call for which it is true is not rejected by a block of its key and begins none.
 * @param zone Time zone whose days and hours the windows of FIXED_WINDOW follow.
 * @param startsOn First day of the windows of a rate per week (MONDAY), month (15) or year (04-01), at midnight of the zone. Defaults to MONDAY, 1, 01-01.
 * @param slots Slots of a SLIDING_WINDOW, from 1 to 1000.
 * @param coldFactor How many times dearer than a fresh permit the coldest stored one is, for WARM_UP.
 * @param lease Time after which a call in flight no longer counts, for CONCURRENCY.
 * @param maxWaiting Callers of the limit that may wait at once, and half as many of one key.
 * @param missingKey What becomes of a call whose key is null or blank.
 * @param tiers Limits of plans, by the name that the tier expression yields.
 * @param httpHeaders Whether responses have the rate limit headers of the limit.
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
     * Makes a record; names of backends are written in lower case.
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
        /** None: what is left of the limit is nobody else's business. A refusal has its status and {@code Retry-After}. */
        NONE
    }

    /** Source of decisions while Redis does not answer. */
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
