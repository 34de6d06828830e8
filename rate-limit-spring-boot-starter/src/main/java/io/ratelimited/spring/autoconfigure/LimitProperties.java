package io.ratelimited.spring.autoconfigure;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitProperty.OnFailure;
import io.ratelimited.spring.internals.limit.LimitProperty.ShownHeaders;
import io.ratelimited.spring.internals.text.PropertyText;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.time.Duration;
import java.time.ZoneId;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ReflectionUtils;

/**
 * The properties of a limit as Spring Boot binds and documents them: an entry of {@code rate-limit.limits}, a tier, or {@code
 * rate-limit.defaults}. Each is a row of {@link LimitProperty}, of the same name and type; {@link #values} hands them on. A
 * property that is null is left to the next place.
 *
 * @param algorithm Algorithm of the limit.
 * @param rate Permits per period, such as 100/s, 5/m, 20/500ms or 100/PT1M, for FIXED_WINDOW also 1000/week, month or year; "unlimited" exempts, 0/s closes.
 * @param burst Burst capacity: permits that an idle caller can use back to back; for a leaky bucket the capacity of the queue. Defaults to the number in the rate; for smooth-bursty to one second of it.
 * @param warmup Duration of the warm-up. WARM_UP only.
 * @param maxConcurrent Maximum number of concurrent calls, for CONCURRENCY; for ADAPTIVE the upper bound of its limit, 1000 if unset.
 * @param minConcurrent Lower bound of the limit, for ADAPTIVE.
 * @param lateAfter Response time above which a call counts as overload. ADAPTIVE only.
 * @param key SpEL expression that selects the caller: each key has its own limit.
 * @param permits Cost of a call in permits: a whole number from 1, or a SpEL expression that returns 0 or more.
 * @param when SpEL expression; if it is false, the limit does not apply to the call.
 * @param charge SpEL expression for the actual cost of a call in permits, evaluated when the call completes.
 * @param tier SpEL expression for the name of the caller's tier, or its own numbers.
 * @param priority SpEL expression for the priority of the call, one of the priorities. ADAPTIVE and CONCURRENCY only.
 * @param priorities Names of priorities, the highest first. ADAPTIVE and CONCURRENCY only.
 * @param shares Minimum share of permits for a priority, such as 5%, by its name.
 * @param policy How a call over the limit is handled. A leaky bucket waits by default, unless the defaults set shadow.
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
 * @param candidates Rates that are tried next to the limit, with calls without a tier or an override, and reject no call, such as 50/m, 100/m; or auto.
 * @param candidatesFor How long the candidates are tried after startup, from 1s to 31d.
 * @param httpHeaders Whether responses have the rate limit headers of the limit.
 * @param backend Backend that stores the state of the limit.
 * @param onFailure Policy while Redis is unavailable.
 * @param maxOvershoot Share of the limit, per period, by which all instances together can exceed it in exchange for fewer Redis calls, such as 5%.
 */
record LimitProperties(
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
        @Nullable List<String> candidates,
        @Nullable Duration candidatesFor,
        @Nullable ShownHeaders httpHeaders,
        @Nullable String backend,
        @Nullable OnFailure onFailure,
        @Nullable String maxOvershoot) {

    /** Found once: the JVM makes its means of reflection anew for each component that it is asked for. */
    private static final Map<LimitProperty, Method> ACCESSORS = new EnumMap<>(LimitProperty.class);

    static {
        for (RecordComponent component : LimitProperties.class.getRecordComponents()) {
            LimitProperty row = Objects.requireNonNull(LimitProperty.of(component.getName()), component.getName());
            ReflectionUtils.makeAccessible(component.getAccessor());
            ACCESSORS.put(row, component.getAccessor());
        }
    }

    /** Makes a record; the name of the backend is written in lower case. */
    LimitProperties {
        backend = backend == null ? null : backend.strip().toLowerCase(Locale.ROOT);
    }

    /**
     * The values of the properties that are set, in as little memory as an application of many limits wants.
     *
     * @param path of the properties
     * @throws InvalidRateLimitException for an algorithm or a policy that only the annotation has
     */
    static Map<LimitProperty, Object> values(String path, @Nullable LimitProperties properties) {
        if (properties == null) {
            return Map.of();
        }
        Map<LimitProperty, Object> values = new EnumMap<>(LimitProperty.class);
        ACCESSORS.forEach((property, accessor) -> {
            Object value = ReflectionUtils.invokeMethod(accessor, properties);
            if (value == Algorithm.DEFAULT || value == Policy.DEFAULT) {
                throw new InvalidRateLimitException(
                        "Property " + path + "." + property.kebab() + " is default, but must be "
                                + PropertyText.expected(property.type()),
                        "Correct it, or remove it to use the default. [RL-102]");
            }
            if (value != null) {
                values.put(property, value);
            }
        });
        if (properties.tiers != null) {
            values.put(LimitProperty.TIERS, values(path + ".tiers", properties.tiers));
        }
        return Map.copyOf(values);
    }

    /** The values of limits or tiers, by name. */
    static Map<String, Map<LimitProperty, Object>> values(
            String path, @Nullable Map<String, LimitProperties> properties) {
        Map<String, Map<LimitProperty, Object>> all = new LinkedHashMap<>();
        if (properties != null) {
            properties.forEach((name, own) -> all.put(name, values(path + PropertyText.element(name), own)));
        }
        return all;
    }
}
