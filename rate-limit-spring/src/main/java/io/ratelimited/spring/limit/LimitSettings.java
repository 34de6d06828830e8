package io.ratelimited.spring.limit;

import io.ratelimited.spring.LimitProperties;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The settings of a configuration for all limits. Immutable.
 *
 * @param backend the backend of limits that name none
 * @param onFailure the source of decisions for limits that name none, while their backend does not answer
 * @param defaults the values that apply to limits that set a property nowhere else
 * @param limits the values of limits, by name
 */
public record LimitSettings(
        String backend,
        LimitProperties.OnFailure onFailure,
        Map<LimitProperty, Object> defaults,
        Map<String, Map<LimitProperty, Object>> limits) {

    /** The settings of properties as they are bound. */
    public static LimitSettings of(
            String backend,
            LimitProperties.OnFailure onFailure,
            @Nullable LimitProperties defaults,
            @Nullable Map<String, LimitProperties> limits) {
        Map<String, Map<LimitProperty, Object>> values = new HashMap<>();
        if (limits != null) {
            limits.forEach((name, properties) -> values.put(name, compact(properties)));
        }
        return new LimitSettings(backend, onFailure, defaults == null ? Map.of() : compact(defaults), values);
    }

    /** In as little memory as an application of many limits wants. */
    private static Map<LimitProperty, Object> compact(LimitProperties properties) {
        return Map.copyOf(LimitProperty.values(properties));
    }

    /** The values of a limit; none if the configuration does not have it. */
    Map<LimitProperty, Object> limit(String name) {
        return limits.getOrDefault(name, Map.of());
    }
}
