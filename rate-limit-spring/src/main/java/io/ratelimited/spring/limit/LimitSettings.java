package io.ratelimited.spring.limit;

import io.ratelimited.spring.LimitProperties;
import java.util.Map;

/**
 * What a configuration says of limits. Immutable.
 *
 * @param backend where limits live that name no backend themselves
 * @param onFailure what decides for limits that do not say so themselves when their backend does not answer
 * @param defaults what applies to limits that set a property nowhere else
 * @param limits the properties of limits, by name
 */
public record LimitSettings(
        String backend,
        LimitProperties.OnFailure onFailure,
        LimitProperties defaults,
        Map<String, LimitProperties> limits) {

    /** The properties of a limit; none if the configuration does not have it. */
    LimitProperties limit(String name) {
        return limits.getOrDefault(name, LimitProperties.NONE);
    }
}
