package io.ratelimited.spring.internals.limit;

import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;

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
        LimitProperty.OnFailure onFailure,
        Map<LimitProperty, Object> defaults,
        Map<String, Map<LimitProperty, Object>> limits) {

    /** The names of the backends that limits have. */
    public Set<String> backends() {
        Set<String> names = new TreeSet<>(Set.of(backend));
        Stream.concat(Stream.of(defaults), limits.values().stream())
                .flatMap(values -> Stream.ofNullable(values.get(LimitProperty.BACKEND)))
                .forEach(name -> names.add(String.valueOf(name)));
        return names;
    }

    /** The values of a limit; none if the configuration does not have it. */
    Map<LimitProperty, Object> limit(String name) {
        return limits.getOrDefault(name, Map.of());
    }
}
